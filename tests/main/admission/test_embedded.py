"""The webhooks inside the sandbox."""

from __future__ import annotations

import copy

import pytest

from app.main.admission.embedded import EmbeddedWebhooks
from app.sandbox.apiserver.errors import ApiError
from app.sandbox.apiserver.patches import MERGE_PATCH
from app.sandbox.apiserver.server import ApiServer
from app.sandbox.clock import WallClock
from app.sandbox.story.jobs import manifests as story_manifests
from app.webhooks.world import Options
from app.wire import manifests
from app.wire.documents import ObjectName
from tests.webhooks import test_schema_words
from tests.webhooks.objects import job, new_queue, pod, task

QUEUES = "scheduling.volcano.sh/queues"


@pytest.fixture
def server() -> ApiServer:
    """A server that asks the webhooks and has the default queue."""
    webhooks = EmbeddedWebhooks(Options(gate_pods=True))
    made = ApiServer(clock=WallClock(), crds=manifests.crd_documents(), admission=(webhooks,))
    made.create(new_queue("default"))
    webhooks.follow(made.store)
    return made


def refused(server: ApiServer, item: object) -> str:
    assert isinstance(item, dict)
    with pytest.raises(ApiError) as error:
        server.create(item)
    return str(error.value)


def test_objects_are_completed(server: ApiServer) -> None:
    stored = server.create(job(task("", 2), plugins={"tensorflow": []}))
    assert stored["spec"]["minAvailable"] == 2
    assert stored["spec"]["tasks"][0]["name"] == "default0"
    assert stored["spec"]["plugins"] == {"tensorflow": [], "svc": []}


def test_a_refusal_has_the_schema_s_words_too(server: ApiServer) -> None:
    for given, ours, theirs in test_schema_words.BEYOND.values():
        message = refused(server, given)
        assert ours in message
        assert theirs in message


def test_a_job_can_be_made_smaller_that_says_no_minimum(server: ApiServer) -> None:
    made = copy.deepcopy(server.create(job(task("w", 5))))
    made["spec"]["tasks"][0]["replicas"] = 1
    jobs = server.target("batch.volcano.sh/jobs", ObjectName("default", "j"))
    change = {"spec": {"tasks": made["spec"]["tasks"]}}
    stored = server.operations.patch(jobs, change, content_type=MERGE_PATCH).document
    assert stored["spec"]["minAvailable"] == 1
    assert stored["spec"]["tasks"][0]["minAvailable"] == 1


def test_clients_are_warned(server: ApiServer) -> None:
    jobs = server.target("batch.volcano.sh/jobs", ObjectName("default", ""))
    written = server.operations.create(jobs, job(priorityClassName="none"))
    assert written.warnings == ("spec.priorityClassName: there is no PriorityClass none",)


def test_a_pod_of_ours_gets_the_gate(server: ApiServer) -> None:
    assert server.create(pod())["spec"]["schedulingGates"] == [{"name": "pumice.sh/plan"}]


def test_objects_are_judged_by_what_is_stored(server: ApiServer) -> None:
    message = refused(server, job(queue="later"))
    assert 'admission webhook "validatejob.volcano.sh" denied the request: ' in message
    assert "unable to find job queue" in message
    server.create(new_queue("later"))
    server.create(job(queue="later"))
    closed = {"status": {"state": "Closed"}}
    server.patch(QUEUES, ObjectName("", "later"), closed, subresource="status")
    assert "status is `Closed`" in refused(server, job(called="k", queue="later"))
    server.delete(QUEUES, ObjectName("", "later"))
    assert "unable to find job queue" in refused(server, job(called="k", queue="later"))


def test_queues_that_are_needed_stay(server: ApiServer) -> None:
    with pytest.raises(ApiError, match="`default` queue can not be deleted"):
        server.delete(QUEUES, ObjectName("", "default"))


def test_what_has_the_wrong_shape_is_left_to_the_schema(server: ApiServer) -> None:
    assert "spec" in refused(server, {**job(), "spec": "text"})


def test_other_kinds_pass(server: ApiServer) -> None:
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}
    assert server.create(space)["metadata"]["name"] == "n"


def test_the_story_s_jobs_are_taken_as_they_are() -> None:
    webhooks = EmbeddedWebhooks(Options(gate_pods=True, loose_volumes=True))
    server = ApiServer(clock=WallClock(), crds=manifests.crd_documents(), admission=(webhooks,))
    webhooks.follow(server.store)
    server.create(new_queue("default"))
    for document in story_manifests().values():
        assert server.create(document)["metadata"]["name"]
