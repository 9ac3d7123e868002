"""The front: a process of its own that answers Filter where a pod has its place already.

kube-scheduler's loop stands still until Filter is answered. The extender's own loop plans, binds
and follows the cluster, so an answer that needs nothing of that would wait for it. The front is
told every place (:mod:`app.wire.front`), accepts the connections, answers what it can, and hands
everything else on to the extender as it came. The front gives no pod a place: it may let two equal
pods exchange their places, and says so. Of a pod without a place it has no answer.

The process loads in a moment and stays small, so it imports nothing of the extender but the wire,
and how lines are logged.
"""
