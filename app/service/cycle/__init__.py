"""When to plan, on which snapshot, and how a plan becomes true."""
