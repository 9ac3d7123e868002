"""The controller of vcjobs: from a Job to its PodGroup, pods and claims, and through its phases.

What to do is decided by pure modules from what is observed (``view`` ``members`` ``counts``
``events`` ``policies`` ``machine`` ``depends`` ``pods`` ``group`` ``status``); ``kill``, ``sync``,
``volumes`` and ``extras`` carry it out; ``controller`` holds them together.
"""
