"""What rules about other pods see of pods that have no such rules themselves.

Pods without rules share one shape whatever their labels are, as mostly no rule asks for them. Where
a rule does, the planner gets such pods with shapes of their own, which have the namespace and the
labels that some rule asks for. Not all labels: pods of many jobs that differ in nothing that
matters go on sharing a shape.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from app.cache.gangs.groups import Group
from app.model.gang import Gang, Task
from app.model.ids import GroupKey, PodUid
from app.model.shape import PodShape
from app.wire.interning import Interned

_SHAPES_KEPT = 32_768

Labels = Mapping[str, str]


class Identities:
    """Views of gangs whose shapes say whose they are; made anew only where something changed."""

    def __init__(self) -> None:
        self._asked: frozenset[str] = frozenset()
        self._views: dict[GroupKey, tuple[Gang, Gang]] = {}
        """Views made last, each behind the view that it was made of."""
        self._shapes: Interned[object, tuple[PodShape, PodShape]] = Interned(limit=_SHAPES_KEPT)
        """Shapes made last; the first is kept so that its id is not used again."""

    def of(
        self, gangs: Iterable[Gang], groups: Mapping[GroupKey, Group], *, asked: frozenset[str]
    ) -> dict[GroupKey, Gang]:
        """``gangs`` by key, their shapes with what the label keys ``asked`` see of them."""
        if asked != self._asked:
            self._asked = asked
            self._views.clear()
            self._shapes.clear()
        before, self._views = self._views, {}
        for gang in gangs:
            known = before.get(gang.key)
            if known is None or known[0] is not gang:
                known = (gang, self._view(gang, groups[gang.key]))
            self._views[gang.key] = known
        return {key: view for key, (_, view) in self._views.items()}

    def _view(self, gang: Gang, group: Group) -> Gang:
        labels: dict[PodUid, Labels] = {uid: m.pod.labels for uid, m in group.waiting.items()}
        tasks = {task: self._task(task, gang, labels[task.uid]) for task in gang.waiting}
        siblings: dict[str, Labels] = {role: t.labels for role, t in group.templates.items()}
        siblings.update({m.pod.role: m.pod.labels for m in group.members.values()})
        return replace(
            gang,
            waiting=tuple(tasks.values()),
            queue_first=tuple(tasks[task] for task in gang.queue_first),
            role_shapes={
                role: self._shape(shape, gang.namespace, siblings.get(role, {}))
                for role, shape in gang.role_shapes.items()
            },
        )

    def _task(self, task: Task, gang: Gang, labels: Labels) -> Task:
        shape = self._shape(task.shape, gang.namespace, labels)
        return task if shape is task.shape else replace(task, shape=shape)

    def _shape(self, shape: PodShape, namespace: str, labels: Labels) -> PodShape:
        if shape.spread_identity is not None:
            return shape
        seen = tuple(sorted((key, labels[key]) for key in self._asked & labels.keys()))
        key = (id(shape), namespace, seen)
        known = self._shapes.get(key)
        if known is None:
            made = replace(shape, spread_identity=(namespace, seen))
            known = self._shapes.keep(key, (shape, made))
        return known[1]
