"""When a gang that waits will start: the planner asked about the times to come."""
