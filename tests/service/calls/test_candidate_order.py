"""How many nodes the planner is asked about before a Preempt call is refused."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest

from app.model.ids import NodeName, PodUid
from app.model.pod import QUEUE_ANNOTATION
from app.service.calls.candidate_order import LEAST, QUESTIONS, questions_with
from app.service.calls.preemption import Candidate
from app.service.cycle.what_if import WhatIf
from tests.builders import make_amounts, make_queue, make_shape
from tests.service.rig import Rig

STOCK = "default-scheduler"


class FullQueue:
    """A pod of a full queue, and victims of the stock scheduler's or of that queue."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rig = Rig()
        self.rig.queue(make_queue("small", capability=make_amounts(cpu=4000)))
        self.candidates: dict[NodeName, Candidate] = {}
        self.asked: list[str] = []
        monkeypatch.setattr(WhatIf, "would_have", self._counting(WhatIf.would_have))

    def _counting(self, would_have: Callable[..., frozenset[PodUid]]) -> Callable[..., Any]:
        def counted(
            what_if: WhatIf, places: Mapping[PodUid, NodeName], *, without: Iterable[PodUid]
        ) -> frozenset[PodUid]:
            self.asked.append(places[PodUid("uid-asking")])
            return would_have(what_if, places, without=without)

        return counted

    def victim(self, node: str, *, cpu: int, memory: int = 0, queue: str = "") -> None:
        """A pod that runs there, more important when it is of a queue."""
        self.rig.node(node, cpu=8000)
        self.rig.pod(
            f"on-{node}",
            node=NodeName(node),
            phase="Running",
            priority=1 if queue else 0,
            scheduler="volcano" if queue else STOCK,
            annotations={QUEUE_ANNOTATION: queue} if queue else {},
            shape=make_shape(cpu=cpu, memory=memory),
        )
        self.candidates[NodeName(node)] = Candidate((PodUid(f"uid-on-{node}"),))

    def chosen(self, *, cpu: int) -> list[NodeName]:
        """The node for a pod of the queue that asks for so much."""
        shape = make_shape(cpu=cpu)
        pod = self.rig.pod("asking", annotations={QUEUE_ANNOTATION: "small"}, shape=shape)
        return list(self.rig.parts.preemption.guard(pod, self.candidates).nodes)


@pytest.fixture(name="full")
def full_queue(monkeypatch: pytest.MonkeyPatch) -> FullQueue:
    return FullQueue(monkeypatch)


async def test_a_node_whose_victims_give_back_no_more_than_those_that_were_not_enough_is_left_out(
    full: FullQueue,
) -> None:
    for number in range(50):
        full.victim(f"n{number:02}", cpu=4000 - 10 * number)
    full.victim("own", cpu=4000, queue="small")
    assert full.chosen(cpu=4000) == ["own"]
    assert full.asked == ["n00", "own"]


async def test_what_the_queue_lacks_is_found_behind_many_that_are_of_no_use(
    full: FullQueue,
) -> None:
    for number in range(50):
        full.victim(f"n{number:02}", cpu=4000 - 10 * number, memory=1 + number)
    full.victim("x-little", cpu=1000, queue="small")
    full.victim("y-enough", cpu=3000, queue="small")
    assert full.chosen(cpu=3000) == ["y-enough"]
    assert full.asked == ["n00", "n01", "n02", "n03", "y-enough"]


async def test_no_more_nodes_are_tried_than_the_limit(full: FullQueue) -> None:
    full.rig.pod(
        "beside",
        node=NodeName("elsewhere"),
        phase="Running",
        annotations={QUEUE_ANNOTATION: "small"},
        shape=make_shape(cpu=4000),
    )
    for number in range(50):
        full.victim(f"n{number:02}", cpu=4000 - 10 * number, memory=1 + number)
    assert full.chosen(cpu=3000) == []
    assert len(full.asked) == QUESTIONS
    assert len(set(full.asked)) == QUESTIONS


def test_the_more_rivals_each_question_is_about_the_fewer_are_asked() -> None:
    assert questions_with(0) == QUESTIONS
    assert LEAST < questions_with(50) < QUESTIONS
    assert questions_with(10_000) == LEAST


async def test_what_goes_in_any_case_gives_nothing_back_a_second_time(full: FullQueue) -> None:
    full.rig.queue(make_queue("small", capability=make_amounts(cpu=7000)))
    full.victim("n1", cpu=4000, queue="small")
    full.victim("n2", cpu=3000, queue="small")
    full.rig.pod("another", scheduler=STOCK)
    assert full.rig.preempt("another", n1=["on-n1"]) is None
    assert full.chosen(cpu=5000) == ["n2"]
    assert full.asked == ["n1", "n2"]
