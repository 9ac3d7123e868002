"""What a pod asks for, of the scheduler and of quotas."""

from __future__ import annotations

from typing import Any

import pytest

from app.sandbox.pod_resources import limits_of, requests_of
from app.wire.documents import Document
from tests.sandbox.documents import cpu


def spec(*containers: Document, inits: tuple[Document, ...] = (), **fields: Any) -> Document:
    return {
        "containers": [{"resources": one} for one in containers],
        "initContainers": [{"resources": one} for one in inits],
        **fields,
    }


def test_containers_add_up_unless_the_start_asks_for_more() -> None:
    assert requests_of(spec(cpu("1"), cpu("2")))["cpu"] == 3000
    assert requests_of(spec(cpu("1"), inits=(cpu("4"), cpu("3"))))["cpu"] == 4000


@pytest.mark.parametrize(
    ("whole", "asked"),
    [
        (cpu("5"), {"cpu": 5000}),
        ({"limits": {"cpu": "5"}}, {"cpu": 1000}),
        ({"limits": {"cpu": "5", "memory": "1Ki"}}, {"cpu": 1000, "memory": 1024000}),
        ({"limits": {"cpu": "5"}, "requests": {"cpu": "2"}}, {"cpu": 2000}),
    ],
)
def test_what_a_pod_asks_for_the_whole_of_it_stands_for_its_containers(
    whole: Document, asked: dict[str, int]
) -> None:
    assert requests_of(spec(cpu("1"), resources=whole)) == asked


def test_overhead_comes_on_top() -> None:
    assert requests_of(spec(cpu("1"), resources=cpu("2"), overhead={"cpu": "250m"})) == {
        "cpu": 2250
    }


def test_limits_of_the_whole_pod_stand_for_those_of_its_containers() -> None:
    own = {"limits": {"cpu": "1", "memory": "1Ki"}}
    whole = {"limits": {"cpu": "3"}}
    assert limits_of(spec(own, resources=whole)) == {"cpu": 3000, "memory": 1024000}
