"""Chains and cycles of thousands of queues: planning goes on, and says what does not count."""

from collections.abc import Sequence

import pytest

from app.core.planner import plan
from app.core.policy import Policies
from app.model.conf import PluginConf
from app.model.ids import QueueName
from app.model.reason import Cause
from app.model.workload import DEEPEST_QUEUE, Queue
from tests.builders import make_queue, make_snapshot
from tests.core.actions.rigs import HELM, Outcome, cores, gang_of, policies

LENGTH = 5_000
FLAT = policies(HELM)
TREE = policies(
    (("gang",), ("predicates", PluginConf("capacity", switches={"enableHierarchy": True})))
)
SHARES = policies(
    (("gang",), (PluginConf("drf", switches={"enableHierarchy": True}), "predicates"))
)


def chain(length: int, *, top: str = "") -> list[Queue]:
    """Queues ``q0``, ``q1``, … each below the one before; the first is below ``top``."""
    parents = [top, *(f"q{number}" for number in range(length))]
    return [make_queue(f"q{i}", parent=QueueName(parents[i])) for i in range(length)]


def planned(queues: Sequence[Queue], by: Policies, *, ask: str) -> Outcome:
    """A gang in the queue ``ask``, and one in the queue ``default``."""
    gangs = gang_of("deep", 1, queue=QueueName(ask)), gang_of("other", 1)
    snapshot = make_snapshot(nodes=cores(8), gangs=gangs, queues=tuple(queues))
    return Outcome(plan(snapshot, by, now=1.0, shapes=None))


def test_where_queues_form_no_tree_their_depth_is_nothing() -> None:
    found = planned(chain(LENGTH), FLAT, ask=f"q{LENGTH - 1}")
    assert set(found.order) == {"deep", "other"}


def test_a_tree_that_is_too_deep_is_refused_with_the_queue_to_mend() -> None:
    found = planned(chain(LENGTH), TREE, ask=f"q{LENGTH - 1}")
    assert found.refusal("deep").cause is Cause.QUEUE_BROKEN
    assert found.text("deep").endswith("is more than 64 levels below the root")


def test_a_tree_that_is_just_as_deep_as_may_be_takes_groups() -> None:
    found = planned(chain(DEEPEST_QUEUE), TREE, ask=f"q{DEEPEST_QUEUE - 1}")
    assert "deep" in found.order


def test_a_cycle_of_queues_is_refused_as_one() -> None:
    found = planned(chain(3, top="q2"), TREE, ask="q2")
    assert found.refusal("deep").cause is Cause.QUEUE_BROKEN
    assert "its own ancestor" in found.text("deep")


@pytest.mark.parametrize("by", [FLAT, TREE, SHARES])
def test_a_cycle_of_thousands_of_queues_ends_no_plan(by: Policies) -> None:
    found = planned(chain(LENGTH, top=f"q{LENGTH - 1}"), by, ask="q7")
    assert ("other" in found.order) is (by is not TREE)


def test_a_path_of_thousands_of_names_counts_as_deep_as_may_be() -> None:
    path, weights = "/".join(["root", *"x" * LENGTH]), "/".join("1" * (LENGTH + 1))
    annotations = {"volcano.sh/hierarchy": path, "volcano.sh/hierarchy-weights": weights}
    queues = [make_queue(f"q{i}", annotations=annotations) for i in range(3)]
    found = planned(queues, SHARES, ask="q1")
    assert set(found.order) == {"deep", "other"}
    assert len(queues[0].way) == DEEPEST_QUEUE
