"""The front: a process of its own that answers Filter where a pod has its place already.

kube-scheduler's loop stands still until Filter is answered. The extender's own loop plans, binds
and follows the cluster, so an answer that needs nothing of that would wait for it. The front is
told every place (:mod:`app.wire.front`), accepts the connections, answers what it can, and hands
everything else on to the extender as it came. It gives nobody a place: of equal pods it may let two
change theirs, and says so, and without one it has no answer.

It loads in a moment and stays small, so it imports nothing of the extender but the wire, and how
lines are logged.
"""
