"""Where a task goes: which nodes fit it, which of them scores best, and why none does.

What depends only on the node table and a pod's shape (selectors, taints, images) is worked out once
per table generation and kept between cycles (:mod:`~app.core.placement.statics`). What depends on
free room follows the ledger row by row (:mod:`~app.core.placement.engine`). What depends on other
pods (ports, inter-pod rules, spread) follows the ledger's journal and is looked at only for shapes
it matters to.

*Choice*: exact floating-point scores and the first row of the highest one, where the stock
scheduler truncates to integers and throws dice. *Price*: none of its random spreading; *gain*: a
plan is a function of the snapshot.
"""
