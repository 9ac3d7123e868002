"""drf: the group with the smaller dominant share of the cluster goes first.

With ``enableHierarchy`` queues are ordered too, by the hierarchical shares of
:mod:`app.core.shares.hdrf`.
"""

from app.core.policy import Hooks, OpenPlugin, Session
from app.core.shares.borrowing import borrowing_of
from app.core.shares.hdrf import ShareTree
from app.core.shares.shares import share_of
from app.model.conf import PluginConf
from app.model.gang import Gang


def configure(conf: PluginConf) -> OpenPlugin:
    """Reads ``borrowing`` and ``borrowing.patience``; ``enableHierarchy`` orders queues too."""
    borrowing = borrowing_of(conf)
    hierarchical = conf.enabled("enableHierarchy")

    def open_(session: Session) -> Hooks:
        ledger = session.ledger
        share = share_of(ledger.snapshot.total)

        def order(gang: Gang) -> float:
            return share(ledger.gang(gang).allocated)

        compare = ShareTree(ledger).compare if hierarchical else None
        return Hooks(gang_order=order, queue_order=compare, borrowing=borrowing)

    return open_
