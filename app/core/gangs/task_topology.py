"""Which tasks of a group belong together, and which do not, as annotations of the PodGroup say.

``volcano.sh/task-topology-affinity`` and ``-anti-affinity`` name tasks, ``ps,worker;chief``: those
between two semicolons belong together, or apart; a task that stands alone there is meant with
itself. ``-task-order`` names tasks in the order in which they get places.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from app.model.workload import AFFINITY, ANTI_AFFINITY, TASK_ORDER, TASK_TOPOLOGY

Sets = tuple[tuple[str, ...], ...]

_SELF_APART: Final = 4
_TOGETHER: Final = 3
_SELF_TOGETHER: Final = 2
_APART: Final = 1


@dataclass(frozen=True, slots=True, eq=False)
class TaskTopology:
    """What the annotations say.

    ``pull`` and ``push`` are, for each task, those that it belongs beside, or not; a task may be
    among its own. ``weight`` tells tasks with either by what binds them most: those that are apart
    from themselves first, then those together with others, with themselves, and apart from others.
    ``turn`` is higher the earlier a task stands in the order.
    """

    pull: Mapping[str, frozenset[str]]
    push: Mapping[str, frozenset[str]]
    weight: Mapping[str, int]
    turn: Mapping[str, int] = field(default_factory=dict)

    def rank(self, role: str) -> tuple[int, int]:
        """Sort key of a task: the smaller gets places first."""
        return -self.turn.get(role, 0), -self.weight.get(role, 0)

    def attraction(self, role: str, there: Mapping[str, int]) -> int:
        """How many pods a pod of ``role`` belongs beside, less those it does not, of ``there``."""
        pull = self.pull.get(role, frozenset())
        return sum(there.get(other, 0) for other in pull) - self.repulsion(role, there)

    def repulsion(self, role: str, there: Mapping[str, int]) -> int:
        """How many pods of ``there`` a pod of ``role`` does not belong beside."""
        return sum(there.get(other, 0) for other in self.push.get(role, frozenset()))


def topology_of(annotations: Mapping[str, str]) -> TaskTopology | None:
    """What ``annotations`` say; None: nothing, or nothing that can be read."""
    if not tells_tasks_apart(annotations) or any(problems(annotations)):
        return None
    together, apart = _sets(annotations, AFFINITY), _sets(annotations, ANTI_AFFINITY)
    weight: Counter[str] = Counter()
    for sets, alone, beside in (
        (together, _SELF_TOGETHER, _TOGETHER),
        (apart, _SELF_APART, _APART),
    ):
        for names in sets:
            for name in names:
                weight[name] = max(weight[name], alone if len(names) == 1 else beside)
    order = _names(annotations.get(TASK_ORDER, ""))
    return TaskTopology(
        pull=_pairs(together),
        push=_pairs(apart),
        weight=weight,
        turn={name: len(order) - at for at, name in enumerate(order)},
    )


def tells_tasks_apart(annotations: Mapping[str, str]) -> bool:
    """Whether any of the three annotations is there."""
    return not annotations.keys().isdisjoint(TASK_TOPOLOGY)


def problems(annotations: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """Annotations that cannot be read, and what is wrong with each."""
    for key in (AFFINITY, ANTI_AFFINITY):
        for names in _sets(annotations, key):
            twice = _twice(names)
            if twice:
                yield key, f"task {twice} is named twice in {','.join(names)}"
    order = annotations.get(TASK_ORDER, "")
    if ";" in order:
        yield TASK_ORDER, "the order is one list, without semicolons"
    elif twice := _twice(_names(order)):
        yield TASK_ORDER, f"task {twice} is named twice"


def named(annotations: Mapping[str, str], key: str) -> list[str]:
    """The tasks that one of the annotations names, each once, in the order of their names."""
    return sorted({name for names in _sets(annotations, key) for name in names})


def _sets(annotations: Mapping[str, str], key: str) -> Sets:
    found = (_names(part) for part in annotations.get(key, "").split(";"))
    return tuple(names for names in found if names)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for part in text.split(",") if (name := part.strip()))


def _twice(names: Sequence[str]) -> str:
    return next((name for name, count in Counter(names).items() if count > 1), "")


def _pairs(sets: Sets) -> dict[str, frozenset[str]]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for names in sets:
        for name in names:
            found[name] |= set(names) - {name} if len(names) > 1 else {name}
    return {name: frozenset(others) for name, others in found.items()}
