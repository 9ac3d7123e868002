"""The answers to the calls of kube-scheduler: Filter, Prioritize, Preempt and Bind."""
