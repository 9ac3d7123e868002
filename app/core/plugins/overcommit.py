"""overcommit: admits groups only while their claims fit the cluster, times a factor.

``idle = total x factor - used`` is fixed when the cycle opens: a group placed in the cycle moves
from the claims to the used, and counting either once is right. Pods that were evicted before it
opens do not count. Claims are what admitted groups may still take of their ``minResources``, in all
queues.
"""

from dataclasses import replace

import numpy as np

from app.core.accounts import QueueAccount
from app.core.arguments import Arguments
from app.core.ledger import Ledger
from app.core.policy import PERMIT, Ballot, Hooks, OpenPlugin, Session, Vote
from app.core.shares import limits
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
        votes = _Votes(session.ledger, factor)
        return Hooks(enqueueable=votes.enqueueable, admissible=votes.admissible)

    return open_


class _Votes:
    """The votes of one cycle."""

    def __init__(self, ledger: Ledger, factor: float) -> None:
        snapshot = ledger.snapshot
        self._axis = snapshot.axis
        self._total = snapshot.total
        self._stretched: Vector = np.minimum(self._total * factor, UNLIMITED).astype(np.int64)
        self._used = ledger.staying
        self._terminating = snapshot.terminating()
        self._root, self._strays = ledger.queues().get(ROOT_QUEUE), _strays(ledger)

    def enqueueable(self, gang: Gang) -> Ballot:
        """Whether the stretched cluster has room beside all that is used and claimed."""
        held = self._used.copy()
        if self._root is not None:
            held += self._root.tree_inqueue
        for stray in self._strays:
            held += stray.inqueue
        return self._vote(gang, held=held)

    def admissible(self, gang: Gang) -> Ballot:
        """The vote on the gang when only groups with places claim anything."""
        held = self._used
        for account in (self._root, *self._strays):
            if account is not None and account.tree_committed is not None:
                held = held + account.tree_committed
        return self._vote(gang, held=held)

    def _vote(self, gang: Gang, *, held: Vector) -> Ballot:
        asked = limits.missing(gang)
        if asked is None:
            return PERMIT
        short = limits.exceeding(asked, held=held, limit=self._stretched)
        if not short:
            return PERMIT
        lack = limits.shortfalls(
            short, axis=self._axis, asked=asked, held=held, limit=self._stretched
        )
        told = (self._told(at, each) for at, each in zip(short, lack, strict=True))
        return Ballot(Vote.REJECT, _overused(tuple(told)))

    def _told(self, at: int, lack: Shortfall) -> Shortfall:
        """``lack`` with what there really is, where that is less than its limit."""
        lack = replace(lack, terminating=int(self._terminating[at]))
        real, idle = int(self._total[at]), max(int(self._total[at] - self._used[at]), 0)
        return lack if real == lack.limit else replace(lack, stretched_from=real, idle=idle)


def _strays(ledger: Ledger) -> tuple[QueueAccount, ...]:
    """Accounts of queues that do not hang below the root: its sums leave them out."""
    accounts = ledger.queues().items()
    return tuple(account for name, account in accounts if ledger.path(name)[-1] != ROOT_QUEUE)


def _overused(lack: tuple[Shortfall, ...]) -> Refusal:
    detail = "resource in cluster is overused: " + ", ".join(f"overused {s.resource}" for s in lack)
    return Refusal(Cause.CLUSTER_OVERUSED, where=CLUSTER, shortfalls=lack, detail=detail)
