"""The services' ports over the API server's client: paths, and failures in the services' words."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from app.kube import errors
from app.kube.client import ApiClient
from app.kube.config import load
from app.kube.events import EventRecorder
from app.kube.writer import ClusterWriter
from app.main.serving.translation import ClusterPorts, Home, translated
from app.model.pod import Owner
from app.service.ports import Reaction, WriteError
from tests.kube.server import LOGIN_PAGE, ScriptedServer, answer, failure, page
from tests.wire.manifests import pod

POD = "/api/v1/namespaces/default/pods/p"
GROUP = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups/g"
HOME = Home("pumice-system", "volcano")
NODE = "/api/v1/nodes/n1"
EVICTION = f"{POD}/eviction"
CONFIG_MAPS = "/api/v1/namespaces/pumice-system/configmaps"
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"

Use = Callable[[ClusterPorts], Awaitable[object]]


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as running:
        yield running


def use(server: ScriptedServer, folder: Path, call: Use) -> object:
    """The outcome of one call of the ports."""

    async def opened() -> object:
        async with ApiClient(load(server.kubeconfig(folder))) as client:
            events = EventRecorder(
                client,
                component="pumice",
                now=lambda: datetime(2026, 1, 1, tzinfo=UTC),
                suffix=lambda: "s",
            )
            return await call(ClusterPorts(client, ClusterWriter(client, events=events), home=HOME))

    return asyncio.run(opened())


@pytest.mark.parametrize(
    ("error", "reaction"),
    [
        (errors.NotFound("m"), Reaction.GONE),
        (errors.Gone("m"), Reaction.GONE),
        (errors.Replaced("m"), Reaction.GONE),
        (errors.Conflict("m"), Reaction.CONFLICT),
        (errors.AlreadyExists("m"), Reaction.CONFLICT),
        (errors.Forbidden("m"), Reaction.REFUSED),
        (errors.Terminating("m"), Reaction.REFUSED),
        (errors.Protected("m", retry_after_s=10.0), Reaction.BUDGET),
        (errors.Invalid("m"), Reaction.REFUSED),
        (errors.Unauthorized("m"), Reaction.RETRY),
        (errors.Throttled("m", retry_after_s=3.0), Reaction.RETRY),
        (errors.ServerError("m"), Reaction.RETRY),
        (errors.Unreadable("m"), Reaction.RETRY),
        (errors.Transport("m", sent=True), Reaction.RETRY),
        (errors.Silence("m", sent=True), Reaction.RETRY),
        (errors.KubeError("m"), Reaction.RETRY),
    ],
)
def test_every_failure_has_a_reaction(error: errors.KubeError, reaction: Reaction) -> None:
    found = translated(error)
    assert found.reaction is reaction
    assert found.retry_after_s == error.retry_after_s
    assert str(found) == str(error)


def test_no_kind_of_failure_was_forgotten_above() -> None:
    def below(kind: type[errors.KubeError]) -> set[type[errors.KubeError]]:
        return {kind}.union(*(below(each) for each in kind.__subclasses__()))

    [parameters] = [
        mark.args[1]
        for mark in test_every_failure_has_a_reaction.pytestmark  # type: ignore[attr-defined]
    ]
    abstract = {errors.Refused, errors.Outdated, errors.Transient}
    assert {type(error) for error, _ in parameters} == below(errors.KubeError) - abstract


def test_a_pod_is_read_as_stored(server: ScriptedServer, tmp_path: Path) -> None:
    server.on("GET", POD, answer(pod(nodeName="n1")), failure(404), failure(503))
    found = use(server, tmp_path, lambda ports: ports.read_pod("default", "p"))
    assert getattr(found, "node", None) == "n1"
    assert use(server, tmp_path, lambda ports: ports.read_pod("default", "p")) is None
    with pytest.raises(WriteError) as away:
        use(server, tmp_path, lambda ports: ports.read_pod("default", "p"))
    assert away.value.reaction is Reaction.RETRY


def test_an_annotation_of_a_node_is_read_with_its_version_and_written_for_it(
    server: ScriptedServer, tmp_path: Path
) -> None:
    about = {"name": "n1", "resourceVersion": "7", "annotations": {"gpu": "t", "other/key": "x"}}
    server.on("GET", NODE, *(answer({"metadata": about}) for _ in range(3)))

    async def read(ports: ClusterPorts) -> object:
        return [
            await ports.read_node_annotation("n1", key) for key in ("gpu", "other/key", "hamivgpu")
        ]

    assert use(server, tmp_path, read) == [("7", "t"), ("7", "x"), ("7", None)]
    server.on("PATCH", NODE, answer({"metadata": about}), failure(409))

    def write(ports: ClusterPorts) -> Awaitable[object]:
        return ports.annotate_node("n1", {"gpu": None}, version="7")

    use(server, tmp_path, write)
    with pytest.raises(WriteError) as conflict:
        use(server, tmp_path, write)
    assert conflict.value.reaction is Reaction.CONFLICT
    [seen, _] = server.asked("PATCH", NODE)
    assert seen.json() == {"metadata": {"resourceVersion": "7", "annotations": {"gpu": None}}}


def test_all_pods_are_listed_and_those_that_cannot_be_read_left_out(
    server: ScriptedServer, tmp_path: Path
) -> None:
    broken = pod(meta={"name": "broken"}, containers="none")
    good = pod(meta={"name": "good"})
    server.on("GET", "/api/v1/pods", page([broken, good], version=5), failure(500))
    found = use(server, tmp_path, lambda ports: ports.list_pods())
    assert isinstance(found, list)
    assert [each.name for each in found] == ["good"]
    with pytest.raises(WriteError):
        use(server, tmp_path, lambda ports: ports.list_pods())


OWNER = Owner("apps/v1", "ReplicaSet", "rs", "u")
READS: dict[str, tuple[str, Use]] = {
    "pod": (POD, lambda p: p.read_pod("default", "p")),
    "intents": (CONFIG_MAPS, lambda p: p.list_intents()),
    "pods": ("/api/v1/pods", lambda p: p.list_pods()),
    "owner": (
        "/apis/apps/v1/namespaces/default/replicasets/rs",
        lambda p: p.read_least_members(OWNER, namespace="default"),
    ),
}


@pytest.mark.parametrize("name", READS)
def test_an_answer_from_somebody_else_is_asked_for_again(
    name: str, server: ScriptedServer, tmp_path: Path
) -> None:
    path, call = READS[name]
    server.on("GET", path, answer(LOGIN_PAGE))
    with pytest.raises(WriteError) as unreadable:
        use(server, tmp_path, call)
    assert unreadable.value.reaction is Reaction.RETRY


CALLS: dict[str, tuple[str, str, Use]] = {
    "bind": (
        "POST",
        f"{POD}/binding",
        lambda p: p.bind("default", "p", uid="u", node="n", annotations={}),
    ),
    "patch": ("PATCH", POD, lambda p: p.patch_pod("default", "p", [{"op": "remove"}])),
    "status": (
        "PATCH",
        f"{POD}/status",
        lambda p: p.patch_pod_status("default", "p", {"a": 1}, uid="u"),
    ),
    "wake": ("PATCH", POD, lambda p: p.wake_pod("default", "p", uid="u", token="7")),
    "mark": ("PATCH", POD, lambda p: p.mark_evicted("default", "p", uid="u", text="preempt")),
    "intent": ("POST", CONFIG_MAPS, lambda p: p.create_intent("i", "plan")),
    "intent done": ("DELETE", f"{CONFIG_MAPS}/i", lambda p: p.delete_intent("i")),
    "queue": ("POST", QUEUES, lambda p: p.create_queue({"metadata": {"name": "q"}})),
    "event": (
        "POST",
        "/api/v1/namespaces/default/events",
        lambda p: p.record_event(
            kind="PodGroup",
            api_version="scheduling.volcano.sh/v1beta1",
            namespace="default",
            name="g",
            uid="u",
            event_type="Normal",
            reason="R",
            message="m",
        ),
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_writes_go_where_they_belong_and_their_failures_are_translated(
    name: str, server: ScriptedServer, tmp_path: Path
) -> None:
    method, path, call = CALLS[name]
    server.on(method, path, answer({}, status=200), failure(409, "Conflict"))
    use(server, tmp_path, call)
    assert len(server.asked(method, path)) == 1
    with pytest.raises(WriteError) as conflict:
        use(server, tmp_path, call)
    assert conflict.value.reaction is Reaction.CONFLICT


def test_a_pod_is_woken_by_an_annotation_alone_and_no_other_pod_of_its_name(
    server: ScriptedServer, tmp_path: Path
) -> None:
    server.on("PATCH", POD, answer({}))
    use(server, tmp_path, lambda ports: ports.wake_pod("default", "p", uid="u", token="7"))
    [seen] = server.asked("PATCH", POD)
    assert seen.json() == {"metadata": {"uid": "u", "annotations": {"pumice.sh/wake": "7"}}}
    assert seen.headers["Content-Type"] == "application/merge-patch+json"


def test_statuses_of_our_kinds_are_merged(server: ScriptedServer, tmp_path: Path) -> None:
    kinds = [{"name": name} for name in ("podgroups", "podgroups/status", "queues/status")]
    discovered = answer({"kind": "APIResourceList", "resources": kinds})
    server.on("GET", "/apis/scheduling.volcano.sh/v1beta1", discovered)
    for path in (f"{GROUP}/status", f"{QUEUES}/q/status"):
        server.on("PATCH", path, answer({}))
    use(server, tmp_path, lambda ports: ports.patch_pod_group("default", "g", {"status": {}}))
    use(server, tmp_path, lambda ports: ports.patch_queue_status("q", {"status": {}}))
    assert server.asked("PATCH", f"{GROUP}/status")
    assert server.asked("PATCH", f"{QUEUES}/q/status")


def evict(ports: ClusterPorts) -> Awaitable[object]:
    return ports.evict("default", "p", uid="uid-1")


def failed(server: ScriptedServer, folder: Path) -> WriteError:
    """Why the eviction of ``p`` did not happen."""
    with pytest.raises(WriteError) as caught:
        use(server, folder, evict)
    return caught.value


def test_an_eviction_is_of_the_pod_with_that_uid_only(
    server: ScriptedServer, tmp_path: Path
) -> None:
    server.on("POST", EVICTION, answer({}, status=201))
    use(server, tmp_path, evict)
    [seen] = server.asked("POST", EVICTION)
    assert seen.json() == {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "p", "namespace": "default"},
        "deleteOptions": {"preconditions": {"uid": "uid-1"}},
    }


def test_an_eviction_that_a_budget_forbids_says_so_in_the_budget_s_words(
    server: ScriptedServer, tmp_path: Path
) -> None:
    cause = {"reason": "DisruptionBudget", "message": "The disruption budget b needs 3."}
    server.on("POST", EVICTION, failure(429, "TooManyRequests", "Cannot evict.", causes=[cause]))
    found = failed(server, tmp_path)
    assert found.reaction is Reaction.BUDGET
    assert "Cannot evict. The disruption budget b needs 3." in str(found)


def test_a_pod_of_several_budgets_is_protected_by_them(
    server: ScriptedServer, tmp_path: Path
) -> None:
    several = "This pod has more than one PodDisruptionBudget, which the eviction subresource ..."
    server.on("POST", EVICTION, failure(500, "", several))
    assert failed(server, tmp_path).reaction is Reaction.BUDGET


@pytest.mark.parametrize(("status", "reason"), [(429, "TooManyRequests"), (500, "InternalError")])
def test_a_server_that_is_overloaded_or_fails_is_no_budget(
    status: int, reason: str, server: ScriptedServer, tmp_path: Path
) -> None:
    server.on("POST", EVICTION, failure(status, reason, "Too many requests, please try again."))
    assert failed(server, tmp_path).reaction is Reaction.RETRY


def test_an_eviction_of_a_pod_that_is_gone_or_replaced_has_nothing_left_to_do(
    server: ScriptedServer, tmp_path: Path
) -> None:
    server.on("POST", EVICTION, failure(404), *[failure(409, "Conflict")] * 3)
    other, same = pod(meta={"uid": "other"}), pod(meta={"uid": "uid-1"})
    server.on("GET", POD, failure(404), answer(other), answer(same))
    found = [failed(server, tmp_path).reaction for _ in range(4)]
    assert found == [Reaction.GONE, Reaction.GONE, Reaction.GONE, Reaction.RETRY]


def test_a_pod_of_a_namespace_that_is_being_deleted_is_going_anyhow(
    server: ScriptedServer, tmp_path: Path
) -> None:
    cause = {"reason": "NamespaceTerminating", "field": "metadata.namespace"}
    refused = failure(403, "Forbidden", "it is being terminated", causes=[cause])
    server.on("POST", EVICTION, refused, failure(403, "Forbidden", "no right"))
    use(server, tmp_path, evict)
    assert failed(server, tmp_path).reaction is Reaction.REFUSED


def test_intents_are_kept_in_the_namespace_of_the_installation(
    server: ScriptedServer, tmp_path: Path
) -> None:
    server.on("POST", CONFIG_MAPS, answer({}, status=201), failure(409, "AlreadyExists"))
    server.on("DELETE", f"{CONFIG_MAPS}/i", answer({}), failure(404))
    use(server, tmp_path, lambda ports: ports.create_intent("i", "plan"))
    with pytest.raises(WriteError) as there:
        use(server, tmp_path, lambda ports: ports.create_intent("i", "plan"))
    assert there.value.reaction is Reaction.CONFLICT
    use(server, tmp_path, lambda ports: ports.delete_intent("i"))
    with pytest.raises(WriteError) as gone:
        use(server, tmp_path, lambda ports: ports.delete_intent("i"))
    assert gone.value.reaction is Reaction.GONE
    written: Any = server.asked("POST", CONFIG_MAPS)[0].json()
    kept = {**written, "metadata": {**written["metadata"], "uid": "u", "resourceVersion": "1"}}
    broken = {"metadata": {"name": 5, "resourceVersion": "1"}}
    server.on("GET", CONFIG_MAPS, page([kept, broken], version=5))
    found = use(server, tmp_path, lambda ports: ports.list_intents())
    assert found == {"i": "plan"}
    [asked] = server.asked("GET", CONFIG_MAPS)
    assert asked.query["labelSelector"] == "pumice.sh/intent-of=volcano"
