"""Whatever the order of calls, time-outs, deletions and failures: a gang is let go whole.

The machine is kube-scheduler (calls Bind, hangs up), the API server (fails, shows what it stored)
and everybody else (deletes pods, cordons nodes, takes room, changes the PodGroup). Each step lets
everything happen that needs no time. Checked whenever a Binding is sent: its client is there, and
enough members of its gang are on nodes or at Bind at that moment; when it is sent again, one on a
node is enough, since the gang is to be finished then. At the end every call is answered, no hold is
left and the ledger agrees with the API server.
"""

import asyncio
from collections import Counter
from collections.abc import Coroutine, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from app.cache.gangs.members import Stage
from app.model.ids import NodeName
from app.model.parts import SubGroupPolicy
from app.model.pod import TASK_SPEC, Pod
from app.service.ports import WriteError
from tests.builders import make_node, make_shape
from tests.scale import examples
from tests.service.rig import CONFLICT, FAILING, REFUSED, Call, FakeApi, Rig
from tests.service.virtual_time import VirtualLoop, settle

T = TypeVar("T")

GANGS = ("a", "b")
PODS = tuple(f"{gang}-{i}" for gang in GANGS for i in range(4))
NODES = ("n1", "n2")
ROLES = ("ps", "worker")
PAIRS = SubGroupPolicy("pair", keys=("pair",), size=2, least=1)
LONGEST_S = 60.0


def role_of(name: str) -> str:
    return ROLES[int(name[-1]) % 2]


def pair_of(name: str) -> str:
    return str(int(name[-1]) // 2)


class Machine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = VirtualLoop()
        self.calls: list[tuple[str, Call]] = []
        self.gone: set[Call] = set()
        self.sent: set[Call] = set()
        self.present: set[Call] = set()
        """Calls that were under way when the step began, or came in it."""
        self.refused: set[Call] = set()
        """Of those sent: calls whose Binding the API server refused when it was sent last."""
        self.births = 0

    def do(self, step: Coroutine[Any, Any, T]) -> T:
        """Run one step, and everything it leads to without time passing."""

        self.present = {call for _, call in self.calls if self._lives(call)}

        async def whole() -> T:
            outcome = await step
            await settle()
            for _, call in self.calls:
                if call.done:
                    call.task.result()  # raises what was found when it sent its Binding
            return outcome

        return self.loop.run_until_complete(whole())

    def teardown(self) -> None:
        try:
            if hasattr(self, "rig"):
                self.do(self._end())
        finally:
            self.loop.run_until_complete(self._cancel())
            self.loop.close()

    async def _cancel(self) -> None:
        tasks = [call.task for _, call in self.calls]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _end(self) -> None:
        if self.rig.api.slow is not None:
            self.rig.api.slow.set()
        await asyncio.sleep(LONGEST_S)
        assert all(call.done for _, call in self.calls), "every call is answered in time"
        assert self.rig.parts.barrier.held() == {}
        assert {m.stage for m in self.rig.cache.members.values()} <= {
            Stage.WAITING,
            Stage.PLANNED,
            Stage.BINDING,
        }
        self.rig.show_bindings()
        assert (await self.rig.parts.audit()).drifts == ()

    # --- the world -------------------------------------------------------------------------------

    @initialize(
        minimums=st.tuples(st.integers(1, 4), st.integers(1, 4)),
        by_role=st.booleans(),
        in_pairs=st.booleans(),
    )
    def begin(self, minimums: tuple[int, int], by_role: bool, in_pairs: bool) -> None:
        async def step() -> None:
            self.rig = Rig()
            self.rig.api = self._watched(self.rig.api)
            self.rig.node(*NODES, cpu=6000)
            for gang, minimum in zip(GANGS, minimums, strict=True):
                roles = {"ps": 1, "worker": 1} if by_role and minimum >= 2 else {}
                pairs = (PAIRS,) if in_pairs else ()
                self.rig.group(gang, minimum=minimum, role_minimum=roles, sub_groups=pairs)
            for name in PODS:
                self._create(name)
            await self.rig.cycle()

        self.do(step())

    def _watched(self, api: FakeApi) -> FakeApi:
        plain = api.bind

        async def bind(
            namespace: str, name: str, *, uid: str, node: str, annotations: Mapping[str, str]
        ) -> None:
            self._check_room(name, node)
            self._check_sent(name)
            mine = {call for pod, call in self.calls if pod == name and not call.done}
            self.refused -= mine
            try:
                await plain(namespace, name, uid=uid, node=node, annotations=annotations)
            except WriteError:
                self.refused |= mine
                raise

        api.bind = bind  # type: ignore[method-assign]
        return api

    def _check_room(self, name: str, node: str) -> None:
        """It fits beside all that are there or may be on their way there."""
        on_their_way = {
            pod: call.node
            for pod, call in self.calls
            if call in self.sent - self.refused
            and not call.done
            and self._stored_uid(pod) == call.uid
        }
        there = {pod.name for pod in self.rig.api.pods.values() if pod.node == node}
        there |= {pod for pod, target in on_their_way.items() if target == node} | {name}
        asked = sum(self._cpu(self.rig.api.pods[f"default/{pod}"]) for pod in there)
        known = self.rig.cache.node_usage.nodes[NodeName(node)]
        assert asked <= dict(known.allocatable)["cpu"]

    def _stored_uid(self, name: str) -> str:
        pod = self.rig.api.pods.get(f"default/{name}")
        return pod.uid if pod else ""

    def _cpu(self, pod: Pod) -> int:
        return dict(pod.shape.requests)["cpu"]

    def _check_sent(self, name: str) -> None:
        calls = {call for pod, call in self.calls if pod == name and not call.done}
        live = calls - self.gone
        assert live, "nobody is there to hear of it"
        stored = self.rig.api.pods.get(f"default/{name}")
        gang = name.partition("-")[0]
        is_bound = stored is not None and bool(stored.node)
        is_sent_again = not calls.isdisjoint(self.sent) or is_bound
        self.sent |= live
        if is_sent_again and self._is_begun(gang):
            return
        self._check_members(gang, is_sent_again=is_sent_again)

    def _check_members(self, gang: str, *, is_sent_again: bool) -> None:
        group = self.rig.cache.groups[self.rig.key(gang)]
        assert group.known or not is_sent_again
        there = [pod for pod in PODS if pod.startswith(gang) and self._is_there(pod)]
        assert len(there) >= group.min_member
        for role, least in group.role_minimum.items():
            assert sum(role_of(pod) == role for pod in there) >= least
        if group.sub_groups:
            assert max(Counter(map(pair_of, there)).values()) >= PAIRS.size

    def _is_begun(self, gang: str) -> bool:
        pods = self.rig.api.pods.values()
        return any(pod.node and pod.group == self.rig.key(gang) for pod in pods)

    def _lives(self, call: Call) -> bool:
        return call not in self.gone and not call.done

    def _is_there(self, name: str) -> bool:
        """On a node, or at Bind; one that was let go in this step may have failed already."""
        stored = self.rig.api.pods.get(f"default/{name}")
        if stored is None:
            return False
        return bool(stored.node) or any(self._counts(call) for p, call in self.calls if p == name)

    def _counts(self, call: Call) -> bool:
        """Its client waits, or its Binding is on its way although nobody waits any more."""
        on_its_way = call in self.sent and not call.done
        return on_its_way or (call in self.present and call not in self.gone)

    def _create(self, name: str) -> None:
        self.births += 1
        self.rig.pod(
            name,
            group=name.partition("-")[0],
            uid=f"uid-{name}-{self.births}",
            annotations={TASK_SPEC: role_of(name)},
            labels={"pair": pair_of(name)},
        )

    def _place(self, name: str) -> str:
        pod = self.rig.api.pods.get(f"default/{name}")
        member = self.rig.cache.members.get(pod.uid) if pod else None
        return member.node if member is not None and not member.pod.node else ""

    def _call(self, name: str, node: str) -> None:
        call = self.rig.bind(name, node)
        self.calls.append((name, call))
        self.present.add(call)

    # --- kube-scheduler --------------------------------------------------------------------------

    @rule(name=st.sampled_from(PODS))
    def call_bind(self, name: str) -> None:
        async def step() -> None:
            if node := self._place(name):
                self._call(name, node)

        self.do(step())

    @rule(gang=st.sampled_from(GANGS))
    def call_all(self, gang: str) -> None:
        async def step() -> None:
            for name in PODS:
                if name.startswith(gang) and (node := self._place(name)):
                    self._call(name, node)

        self.do(step())

    @precondition(lambda self: any(self._lives(call) for _, call in self.calls))
    @rule(data=st.data())
    def hang_up(self, data: st.DataObject) -> None:
        live = [call for _, call in self.calls if self._lives(call)]
        call = data.draw(st.sampled_from(live))

        async def step() -> None:
            self.gone.add(call)
            call.hang_up()

        self.do(step())

    @rule()
    def scheduler_dies(self) -> None:
        async def step() -> None:
            for _, call in self.calls:
                if self._lives(call):
                    self.gone.add(call)
                    call.hang_up()

        self.do(step())

    # --- the API server and everybody else -------------------------------------------------------

    @rule(errors=st.lists(st.sampled_from([FAILING, REFUSED, CONFLICT]), max_size=4))
    def api_fails(self, errors: list[WriteError]) -> None:
        self.rig.api.fails["bind"] = errors

    @rule(count=st.integers(1, 3))
    def api_loses_answers(self, count: int) -> None:
        self.rig.api.loses = count

    @rule(down=st.booleans())
    def api_is_slow(self, down: bool) -> None:
        async def step() -> None:
            if self.rig.api.slow is not None:
                self.rig.api.slow.set()
            self.rig.api.slow = asyncio.Event() if down else None

        self.do(step())

    @rule()
    def watch_catches_up(self) -> None:
        async def step() -> None:
            self.rig.show_bindings()

        self.do(step())

    @rule(name=st.sampled_from(PODS))
    def delete(self, name: str) -> None:
        async def step() -> None:
            if f"default/{name}" in self.rig.api.pods:
                self.rig.delete(name)

        self.do(step())

    @rule(name=st.sampled_from(PODS))
    def recreate(self, name: str) -> None:
        async def step() -> None:
            if f"default/{name}" not in self.rig.api.pods:
                self._create(name)

        self.do(step())

    @rule(name=st.sampled_from(PODS))
    def delete_softly(self, name: str) -> None:
        async def step() -> None:
            pod = self.rig.api.pods.get(f"default/{name}")
            if pod is not None:
                self.rig.store(replace(pod, deleting=True))

        self.do(step())

    @rule(
        name=st.sampled_from(NODES), cordoned=st.booleans(), cpu=st.sampled_from([1000, 2000, 6000])
    )
    def change_node(self, name: str, cordoned: bool, cpu: int) -> None:
        async def step() -> None:
            self.rig.see("nodes", make_node(name, cpu=cpu, unschedulable=cordoned))

        self.do(step())

    @rule(name=st.sampled_from(NODES))
    def drop_node(self, name: str) -> None:
        async def step() -> None:
            self.rig.unsee("nodes", make_node(name))

        self.do(step())

    @rule(node=st.sampled_from(NODES), cpu=st.sampled_from([1000, 4000, 5000]))
    def take_room(self, node: str, cpu: int) -> None:
        async def step() -> None:
            self.rig.pod(
                f"foreign-{node}",
                scheduler="default-scheduler",
                node=NodeName(node),
                shape=make_shape(cpu=cpu),
            )

        self.do(step())

    @rule(gang=st.sampled_from(GANGS), minimum=st.integers(1, 4))
    def set_minimum(self, gang: str, minimum: int) -> None:
        async def step() -> None:
            self.rig.group(gang, minimum=minimum)

        self.do(step())

    @rule(gang=st.sampled_from(GANGS))
    def drop_group(self, gang: str) -> None:
        async def step() -> None:
            group = self.rig.cache.groups.get(self.rig.key(gang))
            if group is not None and group.pod_group is not None:
                self.rig.unsee("podgroups", group.pod_group)

        self.do(step())

    # --- ourselves -------------------------------------------------------------------------------

    @rule()
    def plan(self) -> None:
        self.do(self.rig.cycle())

    @rule(seconds=st.sampled_from([0.1, 5.0, 20.0, 40.0]))
    def wait(self, seconds: float) -> None:
        self.do(asyncio.sleep(seconds))

    @rule()
    def lose_the_lead(self) -> None:
        async def step() -> None:
            self.rig.planning.leadership.stand_by()

        self.do(step())

    @rule()
    def stop(self) -> None:
        async def step() -> None:
            self.rig.parts.barrier.drain()

        self.do(step())

    @invariant()
    def held_calls_are_those_of_assumed_members(self) -> None:
        if not hasattr(self, "rig"):
            return
        held = sum(self.rig.parts.barrier.held().values())
        assumed = sum(m.stage is Stage.ASSUMED for m in self.rig.cache.members.values())
        assert held == assumed


Machine.TestCase.settings = examples(80, stateful_step_count=30)
TestBarrier = Machine.TestCase
