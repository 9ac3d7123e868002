"""Who may be evicted for another pod, and which of several choices costs the least.

Rules are functions of frozen values (:mod:`app.core.victims.victim`), one idea per module. Each
says whether something speaks against the victims; none looks at what the conf switches. The guard
of the stock preemption (:mod:`app.service.calls.preemption`) applies all of them.
"""
