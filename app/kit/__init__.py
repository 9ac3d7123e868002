"""What belongs to no part of the system: queues of work, listings, cron, certificates, text."""
