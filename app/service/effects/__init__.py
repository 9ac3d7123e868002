"""What is written to the API server: gates, nominations, statuses, events."""
