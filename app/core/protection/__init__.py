"""What protects running pods from being evicted for others.

Rules are functions of frozen values (:mod:`app.core.protection.victim`), one idea per module. Each
says whether something speaks against the victims; none looks at what the conf switches. The guard
of the stock preemption (:mod:`app.service.calls.preemption`) applies all of them, plugins use them
for what they allow.
"""
