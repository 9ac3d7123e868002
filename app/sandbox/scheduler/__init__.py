"""A per-pod scheduling loop that calls an HTTP extender as the stock kube-scheduler does.

``loop`` takes one pod at a time from ``queue``, asks ``filters`` (and its friends ``affinity``
and ``spread``) over ``cluster``, then the extender, assumes the pod and binds it in a task of its
own. ``preemption`` is what follows when nothing fits; ``messages`` words the outcome.

Invariant: one scheduling cycle at a time; any number of bindings. Nothing here decides for a gang.
"""
