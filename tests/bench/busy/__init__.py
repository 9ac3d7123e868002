"""How much of an overloaded cluster is in use, and by whom: a simulation in virtual time.

``python -m tests.bench.busy`` runs the real planner on the real cache; only the clock, the pods and
kube-scheduler are simulated. :mod:`.load` makes the arrivals, :mod:`.simulation` runs them,
:mod:`.baselines` runs the same arrivals without queues, :mod:`.figures` says what came of them.
"""
