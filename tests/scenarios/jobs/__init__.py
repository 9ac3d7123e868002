"""Whole jobs on both clusters: the state machine, policies and plugins as users see them."""
