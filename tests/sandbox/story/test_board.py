"""What is read from groups and pods: who runs, who waits and for what."""

from __future__ import annotations

from typing import Any

import pytest

from app.sandbox.story.board import GroupView, board
from app.wire.documents import Document


def group(name: str = "g", *, phase: str = "Inqueue", why: str | None = None) -> Document:
    held = {"type": "Reserved", "status": "False", "message": why}
    given = {"type": "Reserved", "status": "True", "message": "3 of 3"}
    return {
        "metadata": {"name": name},
        "spec": {"minMember": 2},
        "status": {"phase": phase, "conditions": [given if why is None else held]},
    }


def pod(of: str = "g", *, node: str = "", phase: str = "Pending") -> Document:
    return {
        "metadata": {"name": "p", "labels": {"volcano.sh/job-name": of}},
        "spec": {"nodeName": node} if node else {},
        "status": {"phase": phase},
    }


def only(*pods: Document, **of_group: Any) -> GroupView:
    return board([group(**of_group)], pods)["g"]


def test_pods_are_counted_for_their_own_group() -> None:
    seen = board(
        [group("a"), group("b")],
        [pod("a"), pod("a", node="n", phase="Running"), pod("b", node="n"), pod("other")],
    )
    assert [(view.name, view.pods, view.on_nodes, view.running) for view in seen.values()] == [
        ("a", 2, 1, 1),
        ("b", 1, 1, 0),
    ]


def test_a_group_without_status_is_a_new_one() -> None:
    view = board([{"metadata": {"name": "g"}, "spec": {}}], [])["g"]
    assert (view.phase, view.why, view.queue, view.runs(0)) == ("", "", "default", False)


@pytest.mark.parametrize(
    ("phase", "ends", "runs"),
    [
        ("Running", ["Running", "Running"], True),
        ("Completed", ["Succeeded", "Succeeded"], True),
        ("Running", ["Running", "Succeeded"], True),
        ("Running", ["Running", "Pending"], False),
        ("Running", ["Running", "Failed"], False),
        ("Inqueue", ["Running", "Running"], False),
        ("Running", ["Running"], False),
    ],
)
def test_a_group_runs_when_all_its_pods_do_and_it_says_so(
    phase: str, ends: list[str], runs: bool
) -> None:
    assert only(*(pod(node="n", phase=end) for end in ends), phase=phase).runs(2) is runs


@pytest.mark.parametrize(
    ("pods", "of_group", "waits_for"),
    [
        ([], {"phase": "Pending", "why": "cpu asked 2, free 1"}, "cpu asked 2, free 1"),
        ([pod(), pod()], {"why": "no room"}, "no room"),
        ([pod()], {"why": "no room"}, ""),
        ([pod(), pod(node="n")], {"why": "no room"}, ""),
        ([pod(), pod()], {}, ""),
    ],
    ids=["not let in", "let in, complete", "still created", "on a node", "reserved"],
)
def test_what_a_group_waits_for(
    pods: list[Document], of_group: dict[str, str], waits_for: str
) -> None:
    view = only(*pods, **of_group)
    assert view.waits_for == waits_for
    assert view.waits_with_numbers is any(char.isdigit() for char in waits_for)


@pytest.mark.parametrize(("bound", "is_partial"), [(0, False), (1, True), (2, False)])
def test_less_than_the_minimum_on_nodes_is_partial(bound: int, is_partial: bool) -> None:
    pods = [pod(node="n" if number < bound else "") for number in range(3)]
    assert only(*pods).is_partial is is_partial
