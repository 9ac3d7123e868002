"""What the next snapshot looks like when a plan came true."""

from collections.abc import Iterable
from dataclasses import replace

from app.model.gang import Gang
from app.model.ids import GroupKey
from app.model.plan import Placement, Plan
from app.model.snapshot import Snapshot
from app.model.workload import GroupPhase
from tests.core.worlds import placed_pods_of, pod_of, sum_of, with_gangs
from tests.placed_pods import PlacedPod, make_placed_pods


def applied(snapshot: Snapshot, plan: Plan) -> Snapshot:
    """``snapshot`` with all that ``plan`` decided published; slots are no pods yet."""
    used, placed_pods = snapshot.used.copy(), placed_pods_of(snapshot)
    ports = dict(snapshot.ports)
    given: dict[GroupKey, list[Placement]] = {}
    for decided in plan.placed:
        given.setdefault(decided.gang, []).extend(decided.placements)
        for placement in decided.placements:
            task, row = placement.task, snapshot.table.index[placement.node]
            used[row] += task.request
            ports[row] = ports.get(row, frozenset()) | frozenset(task.shape.host_ports)
            placed_pods.append(PlacedPod.of(pod_of(f"{decided.gang}/{task.name}", task.shape), row))
    admitted = set(plan.admitted)
    after = [
        _after(gang, given.get(gang.key, ()), snapshot, admitted=gang.key in admitted)
        for gang in snapshot.gangs.values()
    ]
    return with_gangs(
        replace(
            snapshot,
            generation=snapshot.generation + 1,
            used=used,
            placed_pods=make_placed_pods(placed_pods),
            ports=ports,
        ),
        after,
    )


def _after(
    gang: Gang, placements: Iterable[Placement], snapshot: Snapshot, *, admitted: bool
) -> Gang:
    tasks = [placement.task for placement in placements]
    pods = {task.uid for task in tasks if not task.is_slot}
    ready, valid = dict(gang.role_ready), dict(gang.role_valid)
    for task in tasks:
        ready[task.role] = ready.get(task.role, 0) + 1
        valid[task.role] = valid.get(task.role, 0) + task.is_slot
    parted = dict(gang.sub_group_ready)
    for sub_group in (gang.sub_group_of[uid] for uid in pods & gang.sub_group_of.keys()):
        parted[sub_group] = parted.get(sub_group, 0) + 1
    slots = len(tasks) - len(pods)
    left = tuple(task for task in gang.waiting if task.uid not in pods)
    took = sum_of([task.request for task in tasks], snapshot)
    new = sum_of([task.request for task in tasks if task.is_slot], snapshot)
    return replace(
        gang,
        phase=GroupPhase.INQUEUE if admitted else gang.phase,
        waiting=left,
        queue_first=tuple(task for task in left if task.queue_first),
        allocated=gang.allocated + took,
        kept=gang.kept + new,
        request=gang.request + new,
        role_ready=ready,
        role_valid=valid,
        sub_group_ready=parted,
        sub_group_of={uid: of for uid, of in gang.sub_group_of.items() if uid not in pods},
        counts=replace(
            gang.counts,
            pending=gang.counts.pending - len(pods),
            pending_best_effort=sum(task.best_effort for task in left),
            placed=gang.counts.placed + len(pods),
            slots=gang.counts.slots + slots,
        ),
    )
