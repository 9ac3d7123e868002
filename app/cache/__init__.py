"""Live cluster state in memory: synchronous, owned by the event loop, no locks and no I/O.

Informers feed it, the planner gets immutable snapshots of it, the extender and the barrier move
members through their life in it. It holds every promise, so it is the one place that knows what is
taken: bound, assumed or only planned.
"""
