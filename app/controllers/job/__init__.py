"""The controller of vcjobs: from a Job to its PodGroup, pods and claims, and through its phases.

A look at a job reads what exists (``reader``, ``catching_up``), decides, and writes (``job_writer``
``group_writer`` ``pod_writer``). What to do is decided by pure modules from what is observed
(``view`` ``members`` ``counts`` ``events`` ``policies`` ``machine`` ``sync`` ``depends`` ``pods``
``group`` ``status``); ``prepare``, ``syncing``, ``killing`` and ``commands`` carry it out;
``controller`` holds them together.
"""
