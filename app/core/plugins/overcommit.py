"""overcommit: admits groups only while their claims fit the cluster, stretched by a factor.

``idle = total x factor - used`` is fixed when the cycle opens: a group placed in the cycle moves
from the claims to the used, and counting either once is right. Claims are what admitted groups may
still take of their ``minResources``, in all queues.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from app.core.arguments import Arguments
from app.core.ledger import Ledger, QueueAccount
from app.core.plugins import limits
from app.core.policy import PERMIT, Ballot, Enqueueable, Hooks, OpenPlugin, Session, Vote
from app.model.amounts import UNLIMITED
from app.model.conf import PluginConf
from app.model.gang import Gang
from app.model.ids import ROOT_QUEUE
from app.model.reason import Cause, Refusal, Shortfall
from app.model.resources import Vector

CLUSTER = "cluster"
_FACTOR = 1.2


def configure(conf: PluginConf) -> OpenPlugin:
    """Reads ``overcommit-factor``; below 1 it would shrink the cluster, so the default is used."""
    factor = Arguments(conf).number("overcommit-factor", _FACTOR)
    if factor < 1:
        factor = _FACTOR

    def open_(session: Session) -> Hooks:
        return Hooks(enqueueable=_enqueueable(session.ledger, factor))

    return open_


def _enqueueable(ledger: Ledger, factor: float) -> Enqueueable:
    snapshot = ledger.snapshot
    total = snapshot.total
    stretched: Vector = np.minimum(total * factor, UNLIMITED).astype(np.int64)
    used = snapshot.used.sum(axis=0)
    root, strays = ledger.queues().get(ROOT_QUEUE), _strays(ledger)

    def enqueueable(gang: Gang) -> Ballot:
        asked = limits.missing(gang)
        if asked is None:
            return PERMIT
        held = used.copy()
        if root is not None:
            held += root.tree_inqueue
        for stray in strays:
            held += stray.inqueue
        short = limits.exceeding(asked, held=held, limit=stretched)
        if not short:
            return PERMIT
        lack = limits.shortfalls(short, axis=snapshot.axis, asked=asked, held=held, limit=stretched)
        there = {snapshot.axis.names[at]: int(total[at]) for at in short}
        return Ballot(Vote.REJECT, _overused(tuple(_told(each, there) for each in lack)))

    return enqueueable


def _strays(ledger: Ledger) -> tuple[QueueAccount, ...]:
    """Accounts of queues that do not hang below the root: its sums leave them out."""
    accounts = ledger.queues().items()
    return tuple(account for name, account in accounts if ledger.path(name)[-1] != ROOT_QUEUE)


def _told(lack: Shortfall, there: Mapping[str, int]) -> Shortfall:
    """``lack`` with what there really is, where that is less than its limit."""
    real = there[lack.resource]
    return lack if real == lack.limit else replace(lack, stretched_from=real)


def _overused(lack: tuple[Shortfall, ...]) -> Refusal:
    detail = "resource in cluster is overused: " + ", ".join(f"overused {s.resource}" for s in lack)
    return Refusal(Cause.CLUSTER_OVERUSED, where=CLUSTER, shortfalls=lack, detail=detail)
