"""An embedded cluster: enough Kubernetes to run, show and test Pumice on one machine.

Pieces, from the bottom:

* ``clock``: every piece takes its time from a ``Clock``; ``SimClock`` makes a day pass in a blink.
* ``apiserver``: the Kubernetes API in memory, over HTTP, good enough for stock ``kubectl``.
* ``kubelet``: plays the nodes. It needs only the small port ``KubeletApi``, so that the same code
  runs against the embedded API server and against a real one.
* ``orphans``: deletes the pods of nodes that are gone.
* ``old_events``: takes events away that are an hour old.
* ``scheduler``: a per-pod loop that treats our extender as the stock kube-scheduler does: the same
  order of calls, the same back-off, the same wake-ups, the same conditions and events.
* ``assembly``: ``build_sandbox`` puts them together.

Context: a first look at Pumice must not need Docker, root or Go, and scenario tests must not
need wall-clock time. Choice: imitate the *observable* behaviour (wire format, messages, order,
timing) and nothing behind it. Price: where the imitation and the real control plane differ, the
real one is right; the same behaviour tests run on both.
"""
