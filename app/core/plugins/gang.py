"""gang: a group starts with its minimum of members, in all, per role and of whole sub-groups.

*Valid* asks whether enough members exist, *ready* whether enough have a place. Roles are looked at
only when ``minMember`` covers the sum of their minimums: a smaller ``minMember`` says that any
members will do. Members that request nothing count as ready while they wait, since any node takes
them.

A member may be evicted as long as its gang keeps its minimum. With ``enablePreemptable`` or
``enableReclaimable`` off the plugin has no say, and a gang may go, but only whole: the units of
:mod:`app.core.victims` see to that.
"""

from collections.abc import Mapping

from app.core.accounts import GangAccount
from app.core.gangs.need import Need
from app.core.ledger import Ledger
from app.core.policy import PERMIT, Ballot, Hooks, OpenPlugin, Session, Vote
from app.core.protection.gang_minimum import spares
from app.core.victim_rules import Candidate, EvictionRule, Preemptor, Trait
from app.model.amounts import PODS
from app.model.conf import PluginConf
from app.model.gang import Gang
from app.model.reason import Cause, Refusal, Shortfall

SUB_GROUPS = "sub-groups"
"""What a policy's shortfall is counted in."""

_TOO_FEW_OF_ROLE = "Not enough valid pods of each task for gang-scheduling"
_TOO_FEW_SUB_GROUPS = "Not enough valid subGroups of each task for gang-scheduling"
_TOO_FEW = "Not enough valid tasks for gang-scheduling, valid: {valid}, min: {minimum}"


def configure(_conf: PluginConf) -> OpenPlugin:
    """Open the plugin; it takes no arguments."""
    return _open


def _open(session: Session) -> Hooks:
    ledger = session.ledger

    def ready(gang: Gang) -> bool:
        return is_ready(gang, ledger)

    def starving(gang: Gang) -> bool:
        return not Need.of(gang, ledger.gang(gang)).met

    def pipelined(gang: Gang) -> Ballot:
        return PERMIT if is_ready(gang, ledger) else Ballot(Vote.REJECT)

    def may_go(preemptor: Preemptor, candidate: Candidate) -> bool:
        """Whether the gang keeps its minimum; its own members come in the stead of others."""
        gang = candidate.gang
        coming = preemptor.coming_to(gang.key)
        return spares(gang, ledger.gang(gang), (candidate.part,), coming=coming)

    rule = EvictionRule(
        "gang",
        may_go,
        "needed for the minimums of their groups",
        frozenset({Trait.GANG, Trait.PART}),
    )
    return Hooks(
        gang_order=ready,
        gang_valid=validity,
        gang_ready=ready,
        starving=starving,
        pipelined=pipelined,
        preemptable=rule,
        reclaimable=rule,
    )


def validity(gang: Gang) -> Refusal | None:
    """Why ``gang`` has too few members to become ready, or None; a slot counts as its member."""
    valid = gang.counts.pending + gang.counts.ready
    return _too_few_of_role(gang, {}) or _too_few_sub_groups(gang) or _enough_tasks(gang, valid)


def unmade(gang: Gang) -> Refusal | None:
    """Why ``gang`` has too few members that exist, whatever room is kept for others, or None."""
    valid = gang.counts.pending + gang.counts.ready_members
    return (
        _too_few_of_role(gang, gang.role_slots)
        or _too_few_sub_groups(gang)
        or _enough_tasks(gang, valid)
    )


def unseen(gang: Gang) -> Refusal | None:
    """Why a gang that has room for its minimum waits: for members that it has no place for.

    The members were not created, or foreign gates hold members that room is kept for. There is no
    such refusal either while the gang has no member at all: then its pods are about to be created.
    """
    if not (gang.counts.slots and gang.counts.tasks):
        return None
    refusal, able = unmade(gang), gang.able_members
    if refusal is not None or not gang.counts.gated or able >= gang.min_member:
        return refusal
    return behind_gates(gang, able=able)


def behind_gates(gang: Gang, *, able: int) -> Refusal:
    """The refusal of a gang with enough members, of which foreign gates let only ``able`` go."""
    minimum = gang.min_member
    numbers = Shortfall(resource=PODS, asked=minimum, free=able)
    return Refusal(Cause.GATED, where=gang.key, shortfalls=(numbers,), lacking=minimum - able)


def is_ready(gang: Gang, ledger: Ledger) -> bool:
    """Whether enough members have a place by now, what this cycle placed included."""
    account = ledger.gang(gang)
    waiting = gang.counts.pending_best_effort - sum(account.best_effort.values())
    if account.ready + waiting < gang.min_member:
        return False
    return _roles_ready(gang, account) and not gang.lacking_of_policies(account.sub_group_ready)


def _too_few_of_role(gang: Gang, slots: Mapping[str, int]) -> Refusal | None:
    """The refusal of the first role that has too few members besides ``slots``, or None."""
    for role, minimum in gang.role_minimums.items():
        valid = gang.role_valid.get(role, 0) - slots.get(role, 0)
        if valid < minimum:
            return _too_few(
                Cause.NOT_ENOUGH_PODS_OF_TASK,
                where=role,
                numbers=Shortfall(PODS, asked=minimum, free=valid),
                detail=_TOO_FEW_OF_ROLE,
            )
    return None


def _too_few_sub_groups(gang: Gang) -> Refusal | None:
    """The refusal of the first policy that lacks sub-groups which can be whole, or None.

    A sub-group that has too few members counts as missing, as it will not be placed; in Volcano
    such a group is valid and stays unready.
    """
    minimums = {policy.name: policy.least for policy in gang.sub_groups}
    for name, lacking in gang.lacking_of_policies(gang.sub_group_valid).items():
        return _too_few(
            Cause.NOT_ENOUGH_PODS_OF_TASK,
            where=name,
            numbers=Shortfall(SUB_GROUPS, asked=minimums[name], free=minimums[name] - lacking),
            detail=_TOO_FEW_SUB_GROUPS,
        )
    return None


def _enough_tasks(gang: Gang, valid: int) -> Refusal | None:
    if valid >= gang.min_member:
        return None
    return _too_few(
        Cause.NOT_ENOUGH_TASKS,
        where=gang.key,
        numbers=Shortfall(PODS, asked=gang.min_member, free=valid),
        detail=_TOO_FEW.format(valid=valid, minimum=gang.min_member),
    )


def _roles_ready(gang: Gang, account: GangAccount) -> bool:
    for role, minimum in gang.role_minimums.items():
        lacking = minimum - account.role_ready.get(role, 0)
        if lacking > 0 and lacking > _waiting_best_effort(gang, account, role=role):
            return False
    return True


def _waiting_best_effort(gang: Gang, account: GangAccount, *, role: str) -> int:
    if not gang.counts.pending_best_effort:
        return 0
    waiting = sum(task.best_effort and task.role == role for task in gang.waiting)
    return waiting - account.best_effort.get(role, 0)


def _too_few(cause: Cause, *, where: str, numbers: Shortfall, detail: str) -> Refusal:
    return Refusal(cause=cause, where=where, shortfalls=(numbers,), detail=detail)
