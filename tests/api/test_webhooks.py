"""AdmissionReviews over HTTP: answers, refusals, and nothing that breaks it."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from httpx2 import ASGITransport, AsyncClient, Response
from hypothesis import given
from hypothesis import strategies as st

from app.api import webhooks as edge
from app.api.webhooks import WebhookServices, create_webhooks_app
from app.telemetry.metrics import REGISTRY
from app.webhooks.admission import WEBHOOKS
from app.webhooks.cluster_facts import ClusterFacts
from app.webhooks.judging import Judge
from app.webhooks.world import Options
from app.wire.unstructured import Object
from tests.scale import examples
from tests.webhooks.objects import facts, group, job, new_queue, pod_spec, queue, task


class Reader:
    """The API server's queues; None: it cannot be reached."""

    def __init__(self, queues: Sequence[Object] | None = None) -> None:
        self.stored = queues
        self.asked = 0

    async def queues(self) -> Sequence[Object] | None:
        self.asked += 1
        return self.stored


class Stand:
    """The application over what the informers and the API server know."""

    def __init__(
        self, known: ClusterFacts | None = None, stored: Sequence[Object] | None = None
    ) -> None:
        self.reader = Reader(stored)
        self.judge = Judge(known or facts(), self.reader, Options())
        self.synced = asyncio.Event()
        self.synced.set()
        self.waits: list[str] = []
        services = WebhookServices(
            webhooks=WEBHOOKS,
            judge=self.judge,
            synced=self.synced,
            unready=lambda: self.waits,
            notices=lambda: ["something"],
            metrics=REGISTRY,
        )
        transport = ASGITransport(create_webhooks_app(services))
        self.client = AsyncClient(transport=transport, base_url="https://webhooks")

    async def post(self, path: str, body: object) -> Response:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return await self.client.post(
            path, content=content, headers={"content-type": "application/json"}
        )

    async def ask(self, path: str, body: Mapping[str, Any]) -> Any:
        """The response inside the answer."""
        response = await self.post(path, body)
        assert response.status_code == 200, response.text
        answer = response.json()
        assert (answer["apiVersion"], answer["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
        assert answer["response"]["uid"] == "u-1"
        return answer["response"]


@asynccontextmanager
async def running(made: Stand) -> AsyncIterator[Stand]:
    async with made.client:
        yield made


KINDS = {
    "Job": ("batch.volcano.sh", "v1alpha1", "jobs"),
    "Queue": ("scheduling.volcano.sh", "v1beta1", "queues"),
    "PodGroup": ("scheduling.volcano.sh", "v1beta1", "podgroups"),
    "Pod": ("", "v1", "pods"),
}


def review(item: Any, *, operation: str = "CREATE", old: Any = None, kind: str = "Job") -> Object:
    resource = dict(zip(("group", "version", "resource"), KINDS[kind], strict=True))
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u-1",
            "kind": {"group": resource["group"], "version": resource["version"], "kind": kind},
            "resource": resource,
            "operation": operation,
            "namespace": "default",
            "name": ((item or old).get("metadata") or {}).get("name", ""),
            "userInfo": {"username": "somebody"},
            "object": item,
            "oldObject": old,
            "dryRun": False,
        },
    }


async def test_a_good_job_is_allowed_and_says_nothing_else() -> None:
    async with running(Stand()) as at:
        assert await at.ask("/jobs/validate", review(job())) == {"uid": "u-1", "allowed": True}


async def test_a_bad_job_is_refused_with_a_status() -> None:
    async with running(Stand(stored=[])) as at:
        answer = await at.ask("/jobs/validate", review(job(tasks=[], queue="root")))
        assert not answer["allowed"]
        assert answer["status"] == {
            "status": "Failure",
            "message": "spec.tasks: No task specified in job spec; spec.queue: can not submit "
            "job to root queue; spec.tasks: Invalid value: 0: spec.tasks in body should have "
            "at least 1 items;",
            "reason": "Forbidden",
            "code": 403,
        }


async def test_a_refusal_is_a_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="app.api.webhooks"):
        async with running(Stand(stored=[])) as at:
            await at.ask("/jobs/validate", review(job(queue="root")))
            await at.ask("/jobs/mutate", review(job()))
    (record,) = caplog.records
    assert record.message == "object refused"
    assert vars(record)["object"] == "default/j"
    assert vars(record)["why"] == "spec.queue: can not submit job to root queue;"


async def test_a_mutation_is_a_json_patch() -> None:
    async with running(Stand()) as at:
        answer = await at.ask("/jobs/mutate", review(job(task("", 2))))
        patch = json.loads(base64.b64decode(answer["patch"]))
        assert answer["patchType"] == "JSONPatch"
        assert {"op": "add", "path": "/spec/minAvailable", "value": 2} in patch
        assert {"op": "replace", "path": "/spec/tasks/0/name", "value": "default0"} in patch


async def test_warnings_are_lines_of_their_own() -> None:
    async with running(Stand()) as at:
        template = {"spec": pod_spec(priorityClassName="a\nb")}
        many = [task(f"t{n}", template=template) for n in range(12)]
        answer = await at.ask("/jobs/validate", review(job(*many)))
        assert answer["allowed"]
        assert len(answer["warnings"]) == 11
        assert answer["warnings"][-1] == "and 2 more warnings"
        assert not any("\n" in warning for warning in answer["warnings"])


async def test_nothing_is_refused_on_queues_that_are_only_remembered() -> None:
    stored = [queue("default"), queue("new")]
    async with running(Stand(facts(), stored)) as at:
        assert (await at.ask("/jobs/validate", review(job(queue="new"))))["allowed"]
        body = review(group(queue="new"), kind="PodGroup")
        assert (await at.ask("/podgroups/validate", body))["allowed"]
        assert at.reader.asked == 2
        assert (await at.ask("/jobs/validate", review(job())))["allowed"]
        assert at.reader.asked == 2


async def test_queues_are_judged_by_what_is_stored() -> None:
    known = facts(queue("p"), queue("gone", parent="p"))
    async with running(Stand(known, [queue("p")])) as at:
        deletion = review(None, operation="DELETE", old=queue("p"), kind="Queue")
        assert (await at.ask("/queues/validate", deletion))["allowed"]
        at.reader.stored = [queue("p"), queue("made", parent="p")]
        answer = await at.ask("/queues/validate", deletion)
        assert "has 1 child queues: made" in answer["status"]["message"]


async def test_when_queues_cannot_be_read_what_is_remembered_counts() -> None:
    async with running(Stand(facts(queue("known")))) as at:
        assert (await at.ask("/jobs/validate", review(job(queue="known"))))["allowed"]
        assert not (await at.ask("/jobs/validate", review(job(queue="other"))))["allowed"]


async def test_a_request_waits_until_the_cluster_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(Stand()) as at:
        at.synced.clear()
        waiting = asyncio.create_task(at.ask("/jobs/validate", review(job())))
        await asyncio.wait({waiting}, timeout=0.05)
        assert not waiting.done()
        at.synced.set()
        assert (await waiting)["allowed"]
        at.synced.clear()
        monkeypatch.setattr(edge, "READY_S", 0.01)
        response = await at.post("/jobs/validate", review(job()))
        assert (response.status_code, response.text) == (503, "not ready, see /readyz\n")


def without(body: Object, *path: str) -> Object:
    copied: Object = json.loads(json.dumps(body))
    holder = copied
    for key in path[:-1]:
        holder = holder[key]
    del holder[path[-1]]
    return copied


def having(body: Object, value: Any, *path: str) -> Object:
    copied: Object = json.loads(json.dumps(body))
    holder = copied
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    return copied


GOOD = review(job())
WRONG: dict[str, tuple[object, str]] = {
    "empty": (b"", "AdmissionReview: not JSON: "),
    "not JSON": (b"{", "AdmissionReview: not JSON: "),
    "a list": ([], "AdmissionReview: "),
    "nested too deeply": (b"[" * 100_000, "AdmissionReview: "),
    "not UTF-8": (b'{"kind": "\xff"}', "AdmissionReview: "),
    "no keys": ({}, "AdmissionReview: "),
    "another kind": (having(GOOD, "Review", "kind"), "expected admission.k8s.io/v1 Admission"),
    "another version": (
        having(GOOD, "admission.k8s.io/v1beta1", "apiVersion"),
        "got admission.k8s.io/v1beta1 AdmissionReview",
    ),
    "no request": (without(GOOD, "request"), "AdmissionReview: request: is missing"),
    "no uid": (having(GOOD, "", "request", "uid"), "request.uid: is empty"),
    "no operation": (having(GOOD, "EAT", "request", "operation"), '"EAT" is no operation'),
    "no object": (having(GOOD, None, "request", "object"), "request.object: is missing"),
    "an object that is text": (having(GOOD, "x", "request", "object"), "AdmissionReview: "),
    "an update of nothing": (
        having(GOOD, "UPDATE", "request", "operation"),
        "request.oldObject: is missing",
    ),
    "metadata that is text": (
        having(GOOD, "x", "request", "object", "metadata"),
        "request.object.metadata: is not an object",
    ),
    "labels that are numbers": (
        having(GOOD, {"a": 1}, "request", "object", "metadata", "labels"),
        "request.object.metadata.labels: does not map texts to texts",
    ),
    "about another kind": (
        review(new_queue(), kind="Queue"),
        "expect resource to be jobs.batch.volcano.sh/v1alpha1, got "
        "queues.scheduling.volcano.sh/v1beta1",
    ),
}


@pytest.mark.parametrize(("body", "line"), WRONG.values(), ids=WRONG)
async def test_what_is_no_question_is_refused_in_one_line(body: object, line: str) -> None:
    async with running(Stand()) as at:
        response = await at.post("/jobs/validate", body)
        assert response.status_code == 400
        assert response.headers["content-type"].startswith("text/plain")
        assert line in response.text
        assert response.text.count("\n") == 1


@pytest.mark.parametrize("part", ["spec", "status"])
@pytest.mark.parametrize("path", ["/jobs/mutate", "/jobs/validate"])
async def test_a_part_that_is_no_object_is_left_to_the_schema(path: str, part: str) -> None:
    """An answer that is none would stand before the user as an internal error."""
    body = having(GOOD, "...", "request", "object", part)

    async with running(Stand()) as at:
        response = (await at.post(path, body)).json()["response"]
        assert response["allowed"]
        assert "patch" not in response


async def test_other_requests_are_refused_in_one_line() -> None:
    async with running(Stand()) as at:
        assert (await at.client.get("/jobs/validate")).status_code == 405
        assert (await at.client.post("/nowhere")).status_code == 404
        plain = await at.client.post("/jobs/validate", content=b"{}")
        assert plain.status_code == 415
        assert plain.text == "contentType=, expect application/json\n"
        large = await at.post("/jobs/validate", b" " * (edge.MAX_REVIEW + 1))
        assert (large.status_code, large.text) == (413, "request body too large\n")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inside: st.lists(inside) | st.dictionaries(st.text(), inside),
    max_leaves=10,
)


@examples(60)
@given(
    st.sampled_from([webhook.path for webhook in WEBHOOKS]),
    st.sampled_from([("request",), ("request", "object"), ("request", "oldObject"), ("kind",)]),
    JSON,
)
async def test_nothing_is_answered_with_a_fault(
    path: str, where: tuple[str, ...], value: Any
) -> None:
    async with running(Stand()) as at:
        for body in (having(GOOD, value, *where), value):
            assert (await at.post(path, body)).status_code in {200, 400}


async def test_probes_and_metrics() -> None:
    async with running(Stand()) as at:
        assert (await at.client.get("/livez")).text == "ok\n"
        ready = await at.client.get("/readyz")
        assert (ready.status_code, ready.text) == (200, "ok\nnote: something\n")
        at.waits.append("queues")
        waiting = await at.client.get("/healthz")
        assert (waiting.status_code, waiting.text) == (
            503,
            "waiting for queues\nnote: something\n",
        )
        await at.ask("/jobs/validate", review(job()))
        text = (await at.client.get("/metrics")).text
        assert 'pumice_admission_answers_total{outcome="allowed",path="/jobs/validate"}' in text


async def test_every_webhook_is_described_with_its_refusals() -> None:
    async with running(Stand()) as at:
        paths = (await at.client.get("/openapi.json")).json()["paths"]
        for webhook in WEBHOOKS:
            call = paths[webhook.path]["post"]
            schema = call["requestBody"]["content"]["application/json"]["schema"]
            assert schema["title"] == "AdmissionReview"
            assert set(call["responses"]) == {"200", "400", "413", "415", "503"}
