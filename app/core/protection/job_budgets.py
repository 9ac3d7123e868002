"""Job disruption budgets: how many members of a job may be missing at once (volcano.md §3.6, tdm).

They are annotations of the group, or of its pods: ``volcano.sh/jdb-max-unavailable`` or
``volcano.sh/jdb-min-available``, each a number or a percentage of all members.
"""

from collections.abc import Mapping

from app.core.accounts import GangAccount
from app.model.disruption import BUDGETS
from app.model.gang import Gang

_MIN_AVAILABLE, _MAX_UNAVAILABLE = BUDGETS


def has_budget(*annotations: Mapping[str, str]) -> bool:
    """Whether a group or a pod with these ``annotations`` has a budget."""
    return any(said and not said.keys().isdisjoint(BUDGETS) for said in annotations)


def may_be_missing(gang: Gang, account: GangAccount, pod: Mapping[str, str]) -> int | None:
    """How many members more may go as ``account`` stands; None: no budget says so.

    ``pod`` are the annotations of one of them. A value that cannot be read protects nothing.
    """
    said = gang.annotations if has_budget(gang.annotations) else pod
    members = gang.counts.tasks
    lost = 0 if account.losses is None else account.losses.members
    running = gang.counts.bound + gang.counts.running - lost
    allowed = [
        limit
        for limit in (
            _over(running, _number(said.get(_MIN_AVAILABLE), of=members)),
            _over(_number(said.get(_MAX_UNAVAILABLE), of=members), members - running),
        )
        if limit is not None
    ]
    return max(min(allowed), 0) if allowed else None


def _over(most: int | None, least: int | None) -> int | None:
    return None if most is None or least is None else most - least


def _number(text: str | None, *, of: int) -> int | None:
    """A whole number, or that part of ``of``, rounded up as Kubernetes does."""
    digits = (text or "").strip().removesuffix("%")
    if text is None or not (digits.isascii() and digits.isdecimal()):
        return None
    return -(-int(digits) * of // 100) if text.strip().endswith("%") else int(digits)
