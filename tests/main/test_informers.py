"""From the bytes of an API server to the cache: good objects, broken ones and their deletion."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.cache.cluster import ClusterCache
from app.kube.config import load
from app.main.informers import KINDS, Informers, WatchedKind, pod_kinds, waiting_pods
from app.service.activity import Activity
from app.service.intake.feed import Feed, Malformed
from app.telemetry import metrics
from app.wire.objects.pods import decode_pod
from tests.kube.server import (
    PATIENCE_S,
    Handler,
    ScriptedServer,
    failure,
    line,
    lists_and_watches,
    page,
    watch,
)
from tests.wire.manifests import container, pod

PODS = "/api/v1/pods"
WHY = 'spec.containers[0].resources.requests.cpu: "lots" is not a quantity'

EVERYTHING = (*KINDS, WatchedKind("pods", PODS, decode_pod))


def running(name: str, *, cpu: str = "1") -> dict[str, Any]:
    return pod(meta={"name": name, "uid": f"uid-{name}"}, containers=[container(cpu=cpu)])


class Rig:
    """All informers of the process over one scripted server."""

    def __init__(self, server: ScriptedServer, folder: Path) -> None:
        self.cache = ClusterCache(schedulers=frozenset({"volcano"}))
        self.feed = Feed(
            self.cache, activity=nothing_elected(), clock=lambda: 0.0, settled=self._settled
        )
        self._changed = asyncio.Event()
        self.informers = Informers(
            EVERYTHING,
            connection=load(server.kubeconfig(folder)),
            feed=self.feed,
            listed=self.feed.note_listed,
        )

    def _settled(self, _groups: object) -> None:
        self._changed.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                self._changed.clear()
                await self._changed.wait()


def nothing_elected() -> Activity:
    return Activity(clock=lambda: 0.0, elected=False, namespace="", name="", identity="")


def serve(server: ScriptedServer, *, pods: list[Handler], watches: list[Handler]) -> None:
    for kind in EVERYTHING:
        empty = lists_and_watches([page([], version=1)], [watch()])
        server.on("GET", kind.path, empty)
    server.on("GET", PODS, lists_and_watches(pods, watches))


def follow(server: ScriptedServer, folder: Path, story: Callable[[Rig], Any]) -> None:
    async def scenario() -> None:
        rig = Rig(server, folder)
        rig.informers.start()
        try:
            await story(rig)
        finally:
            await rig.informers.stop()

    asyncio.run(scenario())


def counted() -> float:
    labels = {"kind": "pods"}
    return metrics.REGISTRY.get_sample_value("pumice_informer_malformed_total", labels) or 0.0


def test_a_broken_pod_is_counted_logged_once_and_shown_and_the_others_arrive(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(rig: Rig) -> None:
        await rig.informers.synced.wait()
        await rig.until(lambda: "uid-c" in rig.cache.members)
        assert set(rig.cache.members) == {"uid-a", "uid-c"}
        assert list(rig.feed.malformed.values()) == [
            Malformed(kind="pods", name="default/b", uid="uid-b", message=WHY)
        ]

    before = counted()
    with ScriptedServer() as server, caplog.at_level(logging.WARNING):
        serve(
            server,
            pods=[page([running("a"), running("b", cpu="lots")], version=1)],
            watches=[
                watch(
                    line("MODIFIED", running("b", cpu="lots")),
                    line("ADDED", running("c")),
                )
            ],
        )
        follow(server, tmp_path, story)
    assert counted() == before + 2
    said = [vars(r) for r in caplog.records if r.message == "object cannot be decoded"]
    assert [(r["kind"], r["key"], r["error"]) for r in said] == [("pods", "default/b", WHY)]


def test_an_object_that_cannot_be_taken_in_keeps_no_other_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is wrong with our own code: the rest of what the watch said stays true."""
    upsert = Feed.upsert

    def refuses_b(feed: Feed, kind: str, value: Any) -> None:
        if getattr(value, "name", "") == "b":
            raise RuntimeError("a bug")
        upsert(feed, kind, value)

    async def story(rig: Rig) -> None:
        await rig.informers.synced.wait()
        await rig.until(lambda: "uid-d" in rig.cache.members)
        assert set(rig.cache.members) == {"uid-a", "uid-c", "uid-d"}

    monkeypatch.setattr(Feed, "upsert", refuses_b)
    with ScriptedServer() as server:
        serve(
            server,
            pods=[page([running("a"), running("b"), running("c")], version=1)],
            watches=[watch(line("MODIFIED", running("b")), line("ADDED", running("d")))],
        )
        follow(server, tmp_path, story)
    said = [vars(r) for r in caplog.records if r.message == "object not taken in"]
    assert [r["kind"] for r in said] == ["pods", "pods"]
    assert all("uid-b" in r["object"] for r in said)


@pytest.mark.parametrize("step", ["begin_listing", "end_listing", "reject", "note_listed"])
def test_a_step_that_fails_keeps_no_other_object_out(
    step: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on = getattr(Feed, step)

    def fails(feed: Feed, kind: str, *args: Any, **more: Any) -> None:
        if kind == "pods":
            raise RuntimeError("a bug")
        goes_on(feed, kind, *args, **more)

    async def story(rig: Rig) -> None:
        await rig.informers.synced.wait()
        await rig.until(lambda: "uid-d" in rig.cache.members)
        assert set(rig.cache.members) == {"uid-a", "uid-c", "uid-d"}

    monkeypatch.setattr(Feed, step, fails)
    with ScriptedServer() as server:
        serve(
            server,
            pods=[page([running("a"), running("b", cpu="lots"), running("c")], version=1)],
            watches=[watch(line("ADDED", running("d")))],
        )
        follow(server, tmp_path, story)
    assert [vars(r)["kind"] for r in caplog.records if r.message == "object not taken in"] == [
        "pods"
    ]
    assert not [r for r in caplog.records if r.message == "mailbox handler failed"]


def test_a_broken_pod_that_is_deleted_is_taken_out(tmp_path: Path) -> None:
    async def story(rig: Rig) -> None:
        await rig.until(lambda: "uid-last" in rig.cache.members)
        assert set(rig.cache.members) == {"uid-last"}
        assert rig.feed.malformed == {}

    with ScriptedServer() as server:
        serve(
            server,
            pods=[page([running("a")], version=1)],
            watches=[
                watch(
                    line("MODIFIED", running("a", cpu="lots")),
                    line("DELETED", running("a", cpu="lots")),
                    line("ADDED", running("last")),
                )
            ],
        )
        follow(server, tmp_path, story)


def test_after_gone_what_vanished_meanwhile_is_taken_out(tmp_path: Path) -> None:
    async def story(rig: Rig) -> None:
        await rig.until(lambda: "uid-late" in rig.cache.members)
        assert set(rig.cache.members) == {"uid-stays", "uid-late", "uid-new"}

    with ScriptedServer() as server:
        serve(
            server,
            pods=[
                page([running("stays"), running("goes")], version=1),
                page([running("stays")], version=9, token="more"),
                page([running("new")], version=9),
            ],
            watches=[
                watch(line("ADDED", running("brief")), then="end"),
                failure(410, "Expired", "too old resource version"),
                watch(line("ADDED", running("late"))),
            ],
        )
        follow(server, tmp_path, story)


def test_every_kind_is_waited_for(tmp_path: Path) -> None:
    async def story(rig: Rig) -> None:
        assert rig.informers.unsynced() == [kind.name for kind in EVERYTHING]
        await rig.until(lambda: rig.informers.unsynced() == ["queues"])
        assert not rig.informers.synced.is_set()

    with ScriptedServer() as server:
        serve(server, pods=[page([], version=1)], watches=[watch()])
        queues = next(kind.path for kind in KINDS if kind.name == "queues")
        server.on("GET", queues, failure(500))
        follow(server, tmp_path, story)


def test_a_cluster_without_device_classes_is_not_waited_for(tmp_path: Path) -> None:
    async def story(rig: Rig) -> None:
        await rig.informers.synced.wait()
        assert rig.cache.device_claims.classes == {}

    with ScriptedServer() as server:
        serve(server, pods=[page([], version=1)], watches=[watch()])
        server.on("GET", "/apis/resource.k8s.io/v1/deviceclasses", failure(404))
        follow(server, tmp_path, story)


@pytest.mark.parametrize(("status", "known"), [(200, True), (403, False), (404, False)])
def test_volumes_are_known_where_claims_may_be_read(
    tmp_path: Path, status: int, *, known: bool
) -> None:
    async def story(rig: Rig) -> None:
        await rig.informers.synced.wait()
        assert rig.cache.volumes.volumes().storage.known is known

    with ScriptedServer() as server:
        serve(server, pods=[page([], version=1)], watches=[watch()])
        if status != 200:
            server.on("GET", "/api/v1/persistentvolumeclaims", failure(status))
        follow(server, tmp_path, story)


def test_pods_of_others_are_asked_for_only_while_they_take_room_or_claim_it() -> None:
    asked = {kind.name: kind.fields for kind in pod_kinds({"volcano", "batch"})}
    assert asked == {
        "pods/batch": "spec.schedulerName=batch",
        "pods/volcano": "spec.schedulerName=volcano",
        "pods/*": "spec.schedulerName!=batch,spec.schedulerName!=volcano,spec.nodeName!=,"
        "status.phase!=Succeeded,status.phase!=Failed",
        "nominated": "spec.schedulerName!=batch,spec.schedulerName!=volcano,spec.nodeName=,"
        "status.nominatedNodeName!=",
    }


def test_pods_of_others_that_wait_are_a_kind_of_their_own() -> None:
    assert waiting_pods({"volcano", "batch"}).fields == (
        "spec.schedulerName!=batch,spec.schedulerName!=volcano,spec.nodeName=,"
        "status.nominatedNodeName=,status.phase=Pending"
    )


def test_a_kind_that_is_followed_later_comes_in_once_and_is_not_waited_for(tmp_path: Path) -> None:
    waiting = WatchedKind("waiting", "/waiting", decode_pod)

    async def story(rig: Rig) -> None:
        await rig.informers.synced.wait()
        rig.informers.follow(waiting)
        rig.informers.follow(waiting)
        assert rig.informers.unsynced() == []
        await rig.until(lambda: "uid-w" in rig.cache.pods.waiting)

    with ScriptedServer() as server:
        serve(server, pods=[page([], version=1)], watches=[watch()])
        alone = pod(meta={"name": "w", "uid": "uid-w"}, containers=[container()])
        server.on("GET", "/waiting", lists_and_watches([page([alone], version=1)], [watch()]))
        follow(server, tmp_path, story)
        lists = [seen for seen in server.asked("GET", "/waiting") if "watch" not in seen.query]
        assert len(lists) == 1
