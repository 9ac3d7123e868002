"""Use cases: what the scheduler's side does with the cluster, through ports.

* ``intake`` puts what informers saw into the cache.
* ``cycle`` runs planning cycles, plans single gangs on demand, and makes plans true.
* ``calls`` answers the four calls of kube-scheduler.
* ``telling`` says why a pod, a gang or a job waits.
* ``effects`` writes what was decided to the API server.

Nothing here knows HTTP or the API server's client: :mod:`app.service.ports` says what is needed of
them.
"""
