"""Scheduling decisions, pure: ``(Snapshot, Policies, now) -> Plan``.

No clock, no I/O, no logging, no randomness: ``now`` is an argument, ties are broken by name.
"""
