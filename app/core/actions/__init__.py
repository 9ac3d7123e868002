"""The actions of a cycle, each over the same desk: enqueue, allocate, backfill."""
