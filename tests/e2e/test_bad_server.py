"""The API server refuses, stalls or hangs up: bindings are repeated, watches go on, gangs whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from tests.clusters import workloads
from tests.clusters.controlplane import ControlPlane
from tests.clusters.partials import Partials
from tests.clusters.place import Place
from tests.clusters.processes import wait_until
from tests.clusters.proxy import Answer, Proxy, in_time, nothing
from tests.clusters.rig import NAMESPACE, Rig, Setting, Stage

pytestmark = pytest.mark.real

SIZE = 8
PARTIAL_S = 15
LATE_S = 1.0


@pytest.fixture(scope="module")
def proxy(installed: ControlPlane) -> Iterator[Proxy]:
    token = installed.service_account_token(NAMESPACE, "pumice-extender")
    with Proxy(installed, token=token) as running:
        yield running


@pytest.fixture
def behind(stage: Stage, proxy: Proxy) -> Rig:
    """An extender that sees the API server through the proxy."""
    return stage.rig(Setting(kubeconfig=proxy.kubeconfig))


@pytest.fixture
def place(behind: Rig, proxy: Proxy) -> Iterator[Place]:
    proxy.fault, proxy.late = nothing, in_time
    with Place(behind) as made:
        made.add_nodes(2, cpu="8")
        yield made
        proxy.fault, proxy.late = nothing, in_time


@dataclass
class Sometimes:
    """Answers every `nth` request whose path matches."""

    answer: Answer
    matches: Callable[[str, str], bool]
    nth: int = 2
    at_most: int = 10**6
    asked: list[str] = field(default_factory=list)
    answered: int = 0

    def __call__(self, method: str, path: str) -> Answer | None:
        if not self.matches(method, path):
            return None
        self.asked.append(path)
        if len(self.asked) % self.nth or self.answered >= self.at_most:
            return None
        self.answered += 1
        return self.answer


def is_binding(method: str, path: str) -> bool:
    return method == "POST" and path.endswith("/binding")


def is_watch(method: str, path: str) -> bool:
    return "watch=" in path


def is_write(method: str, path: str) -> bool:
    return method != "GET"


@pytest.mark.parametrize(
    "answer",
    [
        Answer(code=429, reason="TooManyRequests", retry_after_s=1),
        Answer(code=500, reason="InternalError"),
        Answer(code=503, reason="ServiceUnavailable"),
    ],
    ids=lambda answer: str(answer.code),
)
def test_bindings_that_fail_in_passing_are_repeated(
    place: Place, proxy: Proxy, answer: Answer
) -> None:
    proxy.fault = fault = Sometimes(answer, is_binding)
    with Partials(place.api, place.name, {"gang": SIZE}) as seen:
        place.add_gang("gang", SIZE)
        seen.wait_whole(timeout_s=40)
        assert seen.longest_s() < PARTIAL_S
    assert fault.answered


@pytest.mark.parametrize(
    "answer",
    [Answer(code=403, reason="Forbidden"), Answer(code=409, reason="Conflict")],
    ids=lambda answer: str(answer.code),
)
def test_bindings_that_are_refused_come_again_with_their_pods(
    place: Place, proxy: Proxy, answer: Answer
) -> None:
    proxy.fault = fault = Sometimes(answer, is_binding, at_most=3)
    with Partials(place.api, place.name, {"gang": SIZE}) as seen:
        place.add_gang("gang", SIZE)
        seen.wait_whole(timeout_s=40)
        assert seen.longest_s() < PARTIAL_S
    assert fault.answered == 3


def test_all_writes_may_fail_for_a_while(place: Place, proxy: Proxy) -> None:
    proxy.fault = fault = Sometimes(Answer(code=500, reason="InternalError"), is_write, nth=1)
    place.add_gang("gang", SIZE)
    wait_until(lambda: fault.answered > 3 * SIZE, timeout_s=20, what="many writes failed")
    assert not place.bound("gang")
    proxy.fault = nothing
    place.wait_bound("gang", SIZE, timeout_s=40)
    place.wait_phase("gang", "Running")


def test_a_slow_server_binds_whole_gangs(place: Place, proxy: Proxy) -> None:
    proxy.fault = Sometimes(Answer(delay_s=1), is_write, nth=1)
    place.add_gang("gang", SIZE)
    place.wait_bound("gang", SIZE, timeout_s=40)


def test_watches_that_are_cut_are_resumed(place: Place, proxy: Proxy) -> None:
    for number in range(3):
        proxy.cut()
        place.add_gang(f"gang-{number}", 4, cpu="500m")
        place.wait_bound(f"gang-{number}", 4)


def test_after_a_watch_that_is_gone_all_is_listed_again(place: Place, proxy: Proxy) -> None:
    def listed() -> float:
        seen = place.cluster.extender.metrics()
        lists = 'pumice_informer_lists_total{kind="pods'
        return sum(count for name, count in seen.items() if name.startswith(lists))

    before = listed()
    proxy.fault = gone = Sometimes(Answer(code=410, reason="Expired"), is_watch, nth=1, at_most=30)
    proxy.cut()
    place.add_gang("gang", SIZE)
    wait_until(lambda: listed() > before, timeout_s=20, what="pods are listed again")
    proxy.fault = nothing
    place.wait_bound("gang", SIZE)
    assert gone.answered


def test_what_was_deleted_while_the_watch_was_away_is_not_counted(
    place: Place, proxy: Proxy
) -> None:
    place.add_gang("first", SIZE, cpu="2")
    place.wait_bound("first", SIZE)
    proxy.fault = Sometimes(Answer(code=503, reason="ServiceUnavailable"), is_watch, nth=1)
    proxy.cut()
    place.delete_gang("first")
    place.wait_gone()
    place.add_gang("second", SIZE, cpu="2")
    proxy.fault = Sometimes(Answer(code=410, reason="Expired"), is_watch, nth=1, at_most=9)
    place.wait_bound("second", SIZE, timeout_s=40)


@dataclass
class Late:
    """Holds back the watches whose path contains that text."""

    watched: str
    held_back: set[str] = field(default_factory=set)

    def __call__(self, path: str) -> float:
        if self.watched not in path:
            return 0
        self.held_back.add(path)
        return LATE_S


@pytest.mark.parametrize(
    "watched",
    [
        "schedulerName%3Dvolcano",  # our pods
        "schedulerName%21%3Dvolcano",  # those of others
        "/podgroups",
    ],
)
def test_with_one_watch_late_one_of_two_gangs_runs_whole_and_the_other_follows(
    place: Place, proxy: Proxy, watched: str
) -> None:
    proxy.late = late = Late(watched)
    queue = place.add_queue("narrow", capability={"cpu": "10"})
    [full] = place.add_nodes(1, cpu="6")
    with Partials(place.api, place.name, {"a": SIZE, "b": SIZE}) as seen:
        place.submit_one(workloads.pod("foreign", cpu="6", scheduler="other", nodeName=full))
        for name in ("a", "b"):
            place.add_gang(name, SIZE, spec={"queue": queue})
        first, second = seen.wait_one_whole(timeout_s=20)
        place.wait_condition(second, "Reserved", "False")
        assert not seen.bound(second)
        place.delete_gang(first)
        place.wait_bound(second, SIZE)
        assert seen.longest_s() < PARTIAL_S
    assert late.held_back
