"""What a pod on a node is charged while it is resized: what the stock scheduler charges."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.model.pod import Pod
from app.wire.errors import DecodeError
from app.wire.objects.pods import decode_pod
from tests.wire.manifests import Json, container, decoded, encode, pod

GIB = 1 << 30

INFEASIBLE = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
DEFERRED = INFEASIBLE | {"reason": "Deferred"}
READY = {"type": "Ready", "status": "True", "reason": "Infeasible"}


def report(
    *, actual: Json | None = None, allocated: Json | None = None, name: str = "c", **fields: Any
) -> Json:
    """An entry of ``containerStatuses`` as a kubelet writes it; None leaves a part out."""
    parts = {} if actual is None else {"resources": {"requests": actual}}
    parts |= {} if allocated is None else {"allocatedResources": allocated}
    return {"name": name, "ready": True, "restartCount": 0, **parts, **fields}


def cpu_report(actual: object, allocated: object = None, *, name: str = "c") -> Json:
    given_cpu = None if allocated is None else {"cpu": allocated}
    return report(actual={"cpu": actual}, allocated=given_cpu, name=name)


def bound(
    *reports: Json, conditions: list[Json] | None = None, status: Json | None = None, **spec: Any
) -> Pod:
    """A running pod of whose containers a kubelet says this."""
    told = {"phase": "Running", "conditions": conditions, "containerStatuses": list(reports)}
    return decoded(status=told | (status or {}), nodeName="n", **spec)


def asking(cpu: object) -> list[Json]:
    return [container(cpu=cpu)]


def charge(found: Pod) -> dict[str, int]:
    return dict(found.shape.requests)


def cpu(found: Pod) -> int:
    return charge(found).get("cpu", 0)


# --- one container --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "allocated", "actual", "charged"),
    [
        pytest.param("1", "1", "1", 1000, id="at rest"),
        pytest.param("4", "1", "1", 4000, id="to grow, not accepted yet"),
        pytest.param("4", "4", "1", 4000, id="growing"),
        pytest.param("1", "4", "4", 4000, id="to shrink, not accepted yet"),
        pytest.param("1", "1", "4", 4000, id="shrinking"),
        pytest.param("1", "4", "1", 4000, id="accepted and taken back"),
        pytest.param("1", None, "4", 4000, id="nothing allocated is said"),
        pytest.param("1", "4", None, 1000, id="an older server says what is allocated only"),
    ],
)
def test_the_largest_of_asked_allocated_and_actual_is_charged(
    asked: str, allocated: str | None, actual: str | None, charged: int
) -> None:
    told = report(
        actual=None if actual is None else {"cpu": actual},
        allocated=None if allocated is None else {"cpu": allocated},
    )
    assert cpu(bound(told, containers=asking(asked))) == charged
    assert cpu(bound(told, containers=asking(asked), conditions=[DEFERRED])) == charged


@pytest.mark.parametrize(
    ("told", "charged"),
    [
        pytest.param(cpu_report("1", "1"), 1000, id="both are said"),
        pytest.param(cpu_report("1", "2"), 2000, id="allocated is more"),
        pytest.param(cpu_report("1"), 1000, id="nothing allocated is said"),
        pytest.param(report(actual={}), 0, id="it has nothing"),
        pytest.param(report(allocated={"cpu": "1"}), 1_000_000, id="an older server"),
    ],
)
def test_what_no_node_can_give_is_not_charged(told: Json, charged: int) -> None:
    found = bound(told, containers=asking("1000"), conditions=[READY, INFEASIBLE])
    assert cpu(found) == charged


def test_only_the_condition_of_a_pending_resize_makes_it_infeasible() -> None:
    told = cpu_report("1", "1")
    assert cpu(bound(told, containers=asking("1000"), conditions=[READY])) == 1_000_000
    first = [DEFERRED, INFEASIBLE]
    assert cpu(bound(told, containers=asking("1000"), conditions=first)) == 1_000_000


def test_resources_are_compared_one_by_one() -> None:
    asked = {"requests": {"cpu": "4", "memory": "1Gi", "nvidia.com/gpu": "1"}}
    told = report(
        actual={"cpu": "1", "memory": "2Gi"}, allocated={"cpu": "2", "ephemeral-storage": "5"}
    )
    assert charge(bound(told, containers=[container(resources=asked)])) == {
        "cpu": 4000,
        "memory": 2 * GIB,
        "nvidia.com/gpu": 1,
        "ephemeral-storage": 5,
        "pods": 1,
    }


def test_a_reported_limit_without_a_request_is_a_request() -> None:
    told = report(resources={"limits": {"cpu": "2"}})
    asked = [container(resources={"limits": {"cpu": "1000"}})]
    assert cpu(bound(told, containers=asked, conditions=[INFEASIBLE])) == 2000


def test_overhead_comes_on_top() -> None:
    found = bound(cpu_report("4"), containers=asking("1"), overhead={"cpu": "250m"})
    assert cpu(found) == 4250


def test_a_pod_without_a_node_is_charged_what_it_asks() -> None:
    told = {"containerStatuses": [cpu_report("4", "4")], "conditions": [INFEASIBLE]}
    assert cpu(decoded(status=told)) == 1000
    broken = {"containerStatuses": [report(actual={"cpu": "?"})]}
    assert cpu(decoded(status=broken)) == 1000


# --- several containers ---------------------------------------------------------------------------


def test_containers_are_told_apart_by_name() -> None:
    pair = [container(name="a", cpu="1"), container(name="b", cpu="2")]
    swapped = [cpu_report("2", "2", name="b"), cpu_report("5", "5", name="a")]
    assert cpu(bound(*swapped, containers=pair)) == 7000
    assert cpu(bound(cpu_report("5", "5", name="b"), containers=pair)) == 6000
    assert cpu(bound(cpu_report("5", "5", name="gone"), containers=pair)) == 3000


def test_of_an_infeasible_pod_containers_without_a_report_are_charged_what_they_ask() -> None:
    pair = [container(name="a", cpu="1000"), container(name="b", cpu="2")]
    told = cpu_report("1", "1", name="a")
    assert cpu(bound(told, containers=pair, conditions=[INFEASIBLE])) == 3000


def test_equal_reports_of_different_containers_are_told_apart() -> None:
    told = cpu_report("4", "4", name="a")
    one = [container(name="a", cpu="1"), container(name="b", cpu="3")]
    other = [container(name="b", cpu="1"), container(name="a", cpu="3")]
    assert cpu(bound(told, containers=one)) == 7000
    assert cpu(bound(told, containers=other)) == 5000


def test_sidecars_are_resized_and_what_runs_before_the_start_is_not() -> None:
    init = [
        container(name="s", cpu="1", restartPolicy="Always"),
        container(name="i", cpu="1"),
    ]
    told = {"initContainerStatuses": [cpu_report("3", name="s"), cpu_report("9", name="i")]}
    assert cpu(bound(status=told, initContainers=init)) == 4000
    heavy = [init[0], container(name="i", cpu="6")]
    assert cpu(bound(status=told, initContainers=heavy)) == 9000


# --- the pod as a whole ---------------------------------------------------------------------------


def whole(actual: Json | None, allocated: Json | None = None, *conditions: Json) -> Json:
    given_whole = {} if actual is None else {"resources": {"requests": actual}}
    return given_whole | {"allocatedResources": allocated, "conditions": list(conditions)}


@pytest.mark.parametrize(
    ("told", "charged"),
    [
        pytest.param(whole({"cpu": "4"}, {"cpu": "4"}), 4000, id="at rest"),
        pytest.param(whole({"cpu": "6"}, {"cpu": "4"}), 6000, id="shrinking"),
        pytest.param(whole({"cpu": "4"}, {"cpu": "6"}), 6000, id="allocated is more"),
        pytest.param(whole({"cpu": "2"}, {"cpu": "2"}), 4000, id="to grow"),
        pytest.param(whole({"cpu": "2"}, {"cpu": "3"}, INFEASIBLE), 3000, id="infeasible"),
        pytest.param(whole({"memory": "1Gi"}, None, INFEASIBLE), 0, id="it has no such request"),
        pytest.param(whole(None, {"cpu": "6"}), 4000, id="an older server"),
    ],
)
def test_requests_of_the_whole_pod_are_resized_as_those_of_containers(
    told: Json, charged: int
) -> None:
    found = bound(status=told, containers=asking("1"), resources={"requests": {"cpu": "4"}})
    assert charge(found) == {"cpu": charged, "pods": 1} if charged else {"pods": 1}


def test_of_the_whole_pod_only_what_it_asks_as_a_whole_counts() -> None:
    told = whole({"cpu": "6", "memory": "2Gi"})
    assert cpu(bound(status=told, containers=asking("1"))) == 1000
    found = bound(status=told, containers=asking("1"), resources={"requests": {"cpu": "4"}})
    assert charge(found) == {"cpu": 6000, "pods": 1}


# --- pods that nobody resizes ---------------------------------------------------------------------

REQUESTS = {"cpu": "1500m", "memory": "1Gi"}
BOTH = {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": REQUESTS}

AT_REST: dict[str, tuple[Json, Json]] = {
    "a server without resizes": ({"resources": BOTH}, {}),
    "a current one": ({"resources": BOTH}, {"resources": BOTH, "allocatedResources": REQUESTS}),
    "another order of fields": (
        {"resources": dict(reversed(BOTH.items()))},
        {"allocatedResources": dict(reversed(REQUESTS.items())), "resources": BOTH},
    ),
    "another spelling": (
        {"resources": BOTH},
        {"resources": {"requests": {"cpu": "1.5", "memory": "1024Mi"}}},
    ),
    "null": ({"resources": BOTH}, {"resources": None, "allocatedResources": {"cpu": "9"}}),
    "null for nothing": ({"resources": None}, {"resources": None, "allocatedResources": REQUESTS}),
    "nothing asked": ({"resources": {}}, {"resources": {}}),
    "nothing said of nothing": ({}, {"resources": {}}),
    "limits only": ({"resources": {"limits": REQUESTS}}, {"resources": {"limits": REQUESTS}}),
}


@pytest.mark.parametrize("asked", AT_REST.values(), ids=AT_REST.keys())
@pytest.mark.parametrize("conditions", [None, [INFEASIBLE]], ids=["plain", "infeasible"])
def test_a_report_that_says_what_is_asked_makes_no_other_shape(
    asked: tuple[Json, Json], conditions: list[Json] | None
) -> None:
    spec, told = asked
    waiting = decoded(containers=[container(**spec)])
    found = bound(report(**told), containers=[container(**spec)], conditions=conditions)
    assert found.shape is waiting.shape
    spaced = msgspec.json.format(
        encode(
            pod(
                status={"containerStatuses": [report(**told)], "conditions": conditions},
                nodeName="n",
                containers=[container(**spec)],
            )
        ),
        indent=2,
    )
    assert decode_pod(spaced).shape is waiting.shape


def test_a_pod_that_was_resized_has_the_shape_of_one_that_asked_for_that() -> None:
    assert (
        bound(cpu_report("4", "4"), containers=asking("1")).shape
        is decoded(containers=asking("4")).shape
    )


def test_the_same_number_as_a_limit_is_not_what_is_asked() -> None:
    asked = {"limits": {"cpu": "4"}, "requests": {"cpu": "1"}}
    told = report(resources=asked, allocatedResources={"cpu": "4"})
    assert cpu(bound(told, containers=[container(resources=asked)])) == 4000


# --- against the formula --------------------------------------------------------------------------

NAMES = ("cpu", "memory", "nvidia.com/gpu")
lists = st.dictionaries(st.sampled_from(NAMES), st.integers(0, 4))


@given(st.lists(st.tuples(lists, st.none() | lists, st.none() | lists), max_size=3), st.booleans())
def test_the_charge_is_that_of_the_stock_formula(
    played: list[tuple[dict[str, int], dict[str, int] | None, dict[str, int] | None]],
    infeasible: bool,
) -> None:
    expected = dict.fromkeys(NAMES, 0)
    for asked, actual, allocated in played:
        effective = stock(asked, actual, allocated, infeasible=infeasible)
        for name in NAMES:
            expected[name] += effective.get(name, 0) * (1000 if name == "cpu" else 1)
    found = bound(
        *(
            report(name=f"c{i}", actual=actual, allocated=allocated)
            for i, (_, actual, allocated) in reversed(list(enumerate(played)))
        ),
        containers=[
            container(name=f"c{i}", resources={"requests": asked})
            for i, (asked, _, _) in enumerate(played)
        ],
        conditions=[INFEASIBLE] if infeasible else None,
    )
    assert charge(found) == {name: n for name, n in expected.items() if n} | {"pods": 1}


def stock(
    asked: Mapping[str, int],
    actual: Mapping[str, int] | None,
    allocated: Mapping[str, int] | None,
    *,
    infeasible: bool,
) -> dict[str, int]:
    """``determineEffectiveRequests`` of component-helpers, where there are ``status.resources``."""
    if actual is None:
        return dict(asked)
    compared = [actual, allocated or {}] + ([] if infeasible else [asked])
    return {name: max(part.get(name, 0) for part in compared) for name in NAMES}


# --- what cannot be read --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (
            {"containerStatuses": [report(name="a"), report(actual={"cpu": "1x"})]},
            'status.containerStatuses[1].resources.requests.cpu: "1x" is not a quantity',
        ),
        (
            {"containerStatuses": [report(actual={}, allocated={"memory": "a"})]},
            'status.containerStatuses[0].allocatedResources.memory: "a" is not a quantity',
        ),
        (
            {"containerStatuses": [report(actual={}, allocated={"cpu": "-1"})]},
            "status.containerStatuses[0].allocatedResources.cpu: is less than nothing",
        ),
        (
            {"containerStatuses": [report(resources=[])]},
            "status.containerStatuses[0].resources: Expected `object | null`, got `array`",
        ),
        (
            {"initContainerStatuses": [report(name="s", actual={"cpu": "?"})]},
            'status.initContainerStatuses[0].resources.requests.cpu: "?" is not a quantity',
        ),
        (
            {"resources": {"requests": {"cpu": "?"}}},
            'status.resources.requests.cpu: "?" is not a quantity',
        ),
        (
            {"resources": {}, "allocatedResources": {"cpu": "?"}},
            'status.allocatedResources.cpu: "?" is not a quantity',
        ),
        (
            {"containerStatuses": {}},
            "status.containerStatuses: Expected `array | null`, got `object`",
        ),
    ],
)
def test_a_report_that_cannot_be_read_names_the_field(status: Json, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        bound(
            status=status,
            resources={"requests": {"cpu": "1"}},
            initContainers=[container(name="s", cpu="1", restartPolicy="Always")],
        )
    assert str(caught.value).startswith(message)
