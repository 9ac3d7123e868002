"""What each queue holds, asks for, and may have: the numbers behind the decisions, for people."""

from dataclasses import dataclass

import numpy as np

from app.core.accounts import QueueAccount
from app.core.ledger import Ledger
from app.core.points import Opened
from app.core.policy import Policies, QueueShare
from app.core.shares.loans import without_pods
from app.core.tiers import open_policies
from app.model.ids import QueueName
from app.model.resources import Vector
from app.model.snapshot import Snapshot


@dataclass(frozen=True, slots=True, eq=False)
class QueueFigures:
    """Vectors of shape ``(R,)``, on the axis of the snapshot.

    With ``enableHierarchy`` a queue's sums are its children's too, else only its own.
    A queue that holds nothing is not ``overused``, though it may deserve nothing.
    ``deserved``, ``real_capability`` (never more than there is) and ``share`` are None when no
    plugin shares the cluster among the queues, and while their tree is broken.
    """

    allocated: Vector
    request: Vector
    inqueue: Vector
    overused: bool
    deserved: Vector | None = None
    real_capability: Vector | None = None
    share: float | None = None
    borrowed: Vector | None = None
    """What the queue's own groups hold beyond what it deserves."""


def queue_figures(
    snapshot: Snapshot, policies: Policies, *, now: float
) -> dict[QueueName, QueueFigures]:
    """The figures of all queues, by name; ``now`` is seconds since the epoch."""
    ledger = Ledger(snapshot)
    opened = open_policies(policies, ledger, now=now)
    return {name: _figures(name, ledger, opened) for name in sorted(snapshot.queues)}


def _figures(name: QueueName, ledger: Ledger, opened: Opened) -> QueueFigures:
    account = ledger.queue(name)
    overused = bool(account.allocated.any()) and opened.overused(name) is not None
    if opened.queue_shares is None:
        return QueueFigures(*_own(account), overused=overused)
    queue_share = opened.queue_shares(name)
    return QueueFigures(
        *(_with_children(account) if queue_share.with_children else _own(account)),
        overused=overused,
        deserved=queue_share.deserved,
        real_capability=np.minimum(queue_share.real_capability, ledger.snapshot.total),
        share=queue_share.share,
        borrowed=_borrowed(account, queue_share),
    )


def _borrowed(account: QueueAccount, queue_share: QueueShare) -> Vector | None:
    if not queue_share.deserved.any():
        return None
    return without_pods(np.maximum(account.allocated - queue_share.deserved, 0))


def _own(account: QueueAccount) -> tuple[Vector, Vector, Vector]:
    return account.allocated, account.request, account.inqueue


def _with_children(account: QueueAccount) -> tuple[Vector, Vector, Vector]:
    return account.tree_allocated, account.tree_request, account.tree_inqueue
