"""Use cases: what the scheduler's side does with the cluster, through ports.

``feed`` puts what informers saw into the cache; ``planning`` runs cycles and plans single gangs on
demand; ``filtering``, ``barrier``, ``binding`` and ``preemption`` answer kube-scheduler's four
calls; ``actuator`` carries out what was decided; ``explanations`` says why. Nothing here knows HTTP
or the API server's client: :mod:`app.service.ports` says what is needed of them.
"""
