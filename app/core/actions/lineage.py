"""Which queues move together: those below a common ancestor.

When a queue gets something, the shares of its ancestors move with its own, and so does its
relatives' position in an order that compares ancestors. There are two trees: hierarchical drf goes
by annotation (``root/research/vision``), capacity by ``spec.parent``.
"""

from collections.abc import Callable

from app.core.actions.turns import Line
from app.core.ledger import Ledger
from app.model.conf import SchedulerConf
from app.model.ids import ROOT_QUEUE, QueueName


def lines(ledger: Ledger, conf: SchedulerConf) -> Callable[[QueueName], Line]:
    """The line of a queue in the tree that ``conf`` orders queues by."""
    drf = conf.plugin("drf")
    by_annotation = drf is not None and drf.enabled("enableHierarchy")
    queues = ledger.snapshot.queues

    def annotated(queue: QueueName) -> Line:
        return queues[queue].way

    def parents(queue: QueueName) -> Line:
        above = reversed(ledger.path(queue)[1:])
        return tuple(name for name in above if name != ROOT_QUEUE)

    return annotated if by_annotation else parents
