"""Live cluster state in memory: synchronous, owned by the event loop, no locks and no I/O.

Informers feed it, the planner gets immutable snapshots of it, the extender and the barrier move
members through their life in it. It holds every reservation, so it is the one place that knows what
is taken: bound, assumed or only planned.

* ``nodes``: what every node has, and what is taken of it.
* ``gangs``: groups and their members.
* ``neighbours``: pods by node, as rules about other pods see them.
* ``reserved``: room reserved for members and slots.
* ``decisions``: the one door: a member changes here only, and its story is told.
* ``pods``, ``cluster``: what the API server says.
* ``snapshots``: what the planner is given.
"""
