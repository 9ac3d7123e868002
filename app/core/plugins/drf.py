"""drf: the group with the smaller dominant share of the cluster goes first.

A gang takes room of another one in its queue if its share, with all that it asks for, gets no
larger than that of the other one without the pod: what two of the same size hold stays with them.

With ``enableHierarchy`` queues are ordered too, by the hierarchical shares of
:mod:`app.core.shares.hdrf`, and take room from one another by the same rule where their paths part.
"""

from dataclasses import replace

from app.core.policy import Hooks, OpenPlugin, Session
from app.core.shares.borrowing import borrowing_of
from app.core.shares.hdrf import Exchanges, ShareTree
from app.core.shares.shares import share_of
from app.core.victim_rules import Candidate, EvictionRule, Preemptor, Trait
from app.model.conf import PluginConf
from app.model.gang import Gang

EQUAL = 1e-6
"""Shares that differ by no more are equal."""
_LOOKS_AT = frozenset({Trait.GANG, Trait.REQUEST})


def configure(conf: PluginConf) -> OpenPlugin:
    """Reads ``borrowing`` and ``borrowing.patience``; ``enableHierarchy`` orders queues too."""
    borrowing = borrowing_of(conf)
    hierarchical = conf.enabled("enableHierarchy")

    def open_(session: Session) -> Hooks:
        ledger = session.ledger
        share = share_of(ledger.snapshot.total)

        def order(gang: Gang) -> float:
            return share(ledger.gang(gang).allocated)

        def may_go(preemptor: Preemptor, candidate: Candidate) -> bool | None:
            if candidate.gang.key == preemptor.gang.key:
                return None
            mine = share(ledger.gang(preemptor.gang).allocated + preemptor.asked)
            its = share(ledger.gang(candidate.gang).allocated - candidate.request)
            return mine <= its + EQUAL

        spares = "of groups with no larger share"
        hooks = Hooks(
            gang_order=order,
            borrowing=borrowing,
            preemptable=EvictionRule("drf", may_go, spares, _LOOKS_AT, among_equals=True),
        )
        return _with_queues(hooks, ShareTree(ledger)) if hierarchical else hooks

    return open_


def _with_queues(hooks: Hooks, tree: ShareTree) -> Hooks:
    """``hooks``, and queues that are ordered and give room by their places in the ``tree``."""
    exchanges = Exchanges(tree, margin=EQUAL)
    spares = "of queues with no larger share"
    reclaimable = EvictionRule("drf", exchanges.may_go, spares, _LOOKS_AT, binds=True)

    def evictable(preemptor: Preemptor, candidate: Candidate) -> bool | None:
        return exchanges.may_go(preemptor, candidate) if preemptor.action.reclaims else None

    return replace(
        hooks,
        queue_order=tree.compare,
        reclaimable=reclaimable,
        unified_evictable=EvictionRule("drf", evictable, spares, _LOOKS_AT, binds=True),
    )
