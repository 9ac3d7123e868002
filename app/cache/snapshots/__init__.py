"""Immutable snapshots of the cache for the planner."""
