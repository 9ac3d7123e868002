"""Scheduling decisions, pure: ``(Snapshot, Policies, now) -> Plan``.

No clock, no I/O, no logging, no randomness: ``now`` is an argument, ties are broken by name.
:mod:`app.core.planner` runs ``actions`` over a ``ledger``. What actions ask is answered by plugins
(``plugins``, combined by ``tiers``), by ``placement`` (which node), ``shares`` (what a queue may
hold) and ``gangs`` (what a gang lacks). ``victims`` says which pods may be evicted.
"""
