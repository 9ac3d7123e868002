"""What the planner would say if pods were evicted."""

import pytest

from app.core.policy import Policies
from app.model.ids import NodeName, PodUid
from app.model.pod import QUEUE_ANNOTATION
from app.service.cycle.what_if import WhatIf
from tests.builders import make_amounts, make_node, make_queue, make_shape
from tests.cache.snapshots.test_snapshotter import Rig
from tests.core.actions.rigs import policies

WAITS, RUNS = PodUid("uid-waits"), PodUid("uid-runs")


@pytest.fixture
def what_if() -> WhatIf:
    """A queue may hold one core, which a pod has; another one waits for a core."""
    rig = Rig()
    rig.cache.set_queue(make_queue("root"))
    rig.cache.set_queue(make_queue("x", capability=make_amounts(cpu=1000)))
    rig.cache.set_node(make_node("a", cpu=4000))
    alone = {QUEUE_ANNOTATION: "x"}
    one = make_shape(cpu=1000)
    rig.pod("runs", annotations=alone, node=NodeName("a"), phase="Running", shape=one)
    rig.pod("waits", annotations=alone, shape=one)
    return WhatIf(rig.now(running=True), by(), gone=(), now=0.0)


def by() -> Policies:
    return policies((("capacity",),), ("enqueue", "allocate"))


@pytest.mark.parametrize(
    ("without", "has"),
    [((), False), ((RUNS,), True), ((PodUid("unheard-of"),), False), ((RUNS, WAITS), True)],
    ids=["nothing", "the one that runs", "an unknown pod", "one that has no room"],
)
def test_a_pod_has_its_place_once_its_queue_holds_less(
    what_if: WhatIf, without: tuple[PodUid, ...], has: bool
) -> None:
    placed = what_if.would_have({WAITS: NodeName("a")}, without=without)
    assert (WAITS in placed) is has


def test_a_node_that_does_not_exist_is_no_place(what_if: WhatIf) -> None:
    assert not what_if.would_have({WAITS: NodeName("gone")}, without=(RUNS,))
