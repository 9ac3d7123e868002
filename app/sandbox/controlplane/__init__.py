"""The stock control plane on this machine: etcd and the Kubernetes programs as child processes.

``programs`` knows where they lie, ``plane`` starts and ends them, ``processes`` is one of them,
``certificates`` and ``kubeconfigs`` make their identities, ``ports`` finds places to listen at.
Nothing here speaks to the API server beyond asking whether it is ready.

Context: `pumice sandbox --control-plane real` and the tests need the same cluster. Choice: one
launcher for both, here; how the programs are compiled is the tests' business. Price: it blocks
while it waits, so it is called before an event loop runs or from a thread.
"""
