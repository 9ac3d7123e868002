"""What the API server may say of PodGroups, of their vcjobs and of queues."""

from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from app.model.ids import QueueName, group_key
from app.model.job import JobTemplate, Template
from app.model.parts import Policies
from app.model.pod import QUEUE_ANNOTATION
from app.model.workload import GroupPhase, Namespace, PodGroup, PriorityClass
from tests.builders import make_amounts, make_queue
from tests.cache.machine import (
    GROUPS,
    ODD,
    QUEUES,
    ROLE,
    SUB_GROUPS,
    TERMINAL,
    Machine,
    shapes,
)
from tests.cache.naive import Reservations


class GroupEvents(Machine):
    """Rules that change those objects."""

    @rule(
        name=st.sampled_from(GROUPS),
        least=st.integers(0, 4),
        role_least=st.sampled_from([{}, {"a": 1}, {"a": 1, "b": 2}]),
        sub_groups=st.sampled_from([(), (), *SUB_GROUPS]),
        phase=st.sampled_from(list(GroupPhase)),
        queue=st.sampled_from(QUEUES),
        deleting=st.sampled_from([False] * 9 + [True]),
        anew=st.sampled_from([False] * 5 + [True]),
    )
    def set_group(
        self,
        *,
        name: str,
        least: int,
        role_least: dict[str, int],
        sub_groups: Policies,
        phase: GroupPhase,
        queue: str,
        deleting: bool,
        anew: bool,
    ) -> None:
        """Made, or its minimum raised or lowered; a stored phase counts only the first time.

        ``anew``: another one of the name, the end of the first was not seen.
        """
        old = self.api.groups.get(group_key("default", name))
        self.births += anew
        group = PodGroup(
            namespace="default",
            name=name,
            uid=f"uid-{name}-{self.births}" if anew or old is None else old.uid,
            resource_version="1",
            created=0.0,
            min_member=least,
            role_minimum=role_least,
            sub_groups=sub_groups,
            queue=QueueName(queue),
            min_resources=make_amounts(cpu=1000 * least) if least != 1 else None,
            priority_class="high" if least == 2 else "",
            phase=phase,
            deleting=deleting,
            owner_uid=f"uid-job-{name}",
        )
        if old is None or anew:
            self.phases[group.key] = phase
        self.api.groups[group.key] = group
        with self.taking_over(old, group):
            self.feed.upsert("podgroups", group)

    @precondition(lambda self: any(map(self.under_way, self.api.groups)))
    @rule(data=st.data())
    def a_group_moves_while_bindings_are_under_way(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from([k for k in sorted(self.api.groups) if self.under_way(k)]))
        old = self.api.groups[key]
        [queue] = {QueueName(name) for name in QUEUES} - {old.queue}
        self.api.groups[key] = moved = replace(old, queue=queue)
        with self.taking_over(old, moved):
            self.feed.upsert("podgroups", moved)
        assert self.void >= self.under_way(key) > set()

    @rule(queue=st.sampled_from(("", *QUEUES)))
    def the_namespace_names_a_queue(self, queue: str) -> None:
        before, self.named_queue = self.queue_alone, queue
        moves = before != self.queue_alone
        keys = {m.group for m in self.cache.members.values()} - self.api.groups.keys()
        names = {QUEUE_ANNOTATION: queue} if queue else {}
        with self.step(asked=set().union(*map(self.held_by, keys)) if moves else ()):
            self.feed.upsert("namespaces", Namespace("default", {}, names))
        if moves:
            assert not any(map(self.held_by, keys))
            self.void |= set().union(*map(self.under_way, keys))

    @contextmanager
    def taking_over(self, old: PodGroup | None, new: PodGroup) -> Iterator[None]:
        """Nothing is kept for another group or another queue, nor more slots than are needed."""
        held, before = self.held_by(new.key), Reservations.read(self.cache)
        if old is not None and (old.uid, old.queue) != (new.uid, new.queue):
            with self.step(asked=held):
                yield
            assert not self.held_by(new.key)
            self.void |= self.under_way(new.key)
            return
        lower = old is not None and old.minimum != new.minimum
        slots = {holder for holder, slot in before.slots.items() if slot.group == new.key}
        with self.step(asked=slots if lower else ()):
            yield
        left = slots & set(Reservations.read(self.cache).slots)
        needed = self.slots_needed(new)
        assert len(left) == (min(len(slots), needed) if lower else len(slots))
        if lower:
            self.roles_have_what_they_lack(new, before, left)

    def roles_have_what_they_lack(
        self, group: PodGroup, before: Reservations, left: Collection[str]
    ) -> None:
        had = Counter(s.role for s in before.slots.values() if s.group == group.key)
        has = Counter(before.slots[holder].role for holder in left)
        for role, lacks in self.lacking(group).items():
            assert has[role] >= min(had[role], lacks)

    @precondition(lambda self: self.api.groups)
    @rule(data=st.data())
    def drop_group(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.api.groups)))
        gone = self.api.groups.pop(key)
        self.phases.pop(key)
        with self.step(asked=self.held_by(key)):
            self.feed.remove("podgroups", gone)
        members = self.cache.groups[key].members.values() if key in self.cache.groups else ()
        assert not any(m.pod.status in TERMINAL for m in members)
        self.void |= self.under_way(key)
        assert not self.held_by(key)

    @rule(data=st.data())
    def groups_are_listed_again(self, data: st.DataObject) -> None:
        gone = [key for key in sorted(self.api.groups) if data.draw(ODD)]
        for key in gone:
            del self.api.groups[key], self.phases[key]
        with self.step(asked={holder for key in gone for holder in self.held_by(key)}):
            self.feed.begin_listing("podgroups")
            for group in self.api.groups.values():
                self.feed.upsert("podgroups", group)
            self.feed.end_listing("podgroups")

    @rule(name=st.sampled_from(GROUPS), there=st.booleans(), role=ROLE, data=st.data())
    def job_changes(self, name: str, there: bool, role: str, data: st.DataObject) -> None:
        """The vcjob that owns a group: its templates are the shapes of members not seen yet.

        They may ask for what nobody has named so far.
        """
        uid = f"uid-job-{name}"
        template = Template(data.draw(shapes(self.extended + 1)), {})
        job = JobTemplate(uid, "default", name, {role: template})
        if there:
            self.templates[uid] = job.roles
        else:
            self.templates.pop(uid, None)
        with self.step():
            (self.feed.upsert if there else self.feed.remove)("jobs", job)

    @rule(name=st.sampled_from(QUEUES), there=st.booleans(), value=st.integers(1, 3))
    def queues_and_classes_change(self, name: str, there: bool, value: int) -> None:
        change = self.feed.upsert if there else self.feed.remove
        with self.step():
            change("queues", make_queue(name, capability=make_amounts(cpu=1000 * value)))
        with self.step():
            change("priorityclasses", PriorityClass("high", value))
