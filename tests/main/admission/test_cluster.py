"""What informers bring becomes facts; queues are read from the API server."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from app.kube.client import ApiClient
from app.kube.config import load
from app.main.admission.cluster import FactsFeed, StoredQueues
from app.webhooks.cluster_facts import ClusterFacts
from app.wire.kinds import NODES, QUEUES
from app.wire.unstructured import Object
from tests.kube.server import LOGIN_PAGE, ScriptedServer, answer
from tests.webhooks.objects import node, queue

QUEUE, NODE = str(QUEUES), str(NODES)


def test_what_is_listed_changed_and_deleted_is_in_the_facts() -> None:
    facts = ClusterFacts()
    feed = FactsFeed(facts)
    feed.begin_listing(QUEUE)
    feed.upsert(QUEUE, queue("a"))
    feed.upsert(QUEUE, queue("b"))
    feed.end_listing(QUEUE)
    feed.upsert(NODE, node("n", cpu=1))
    feed.upsert(QUEUE, queue("a", state="Closed"))
    feed.remove(QUEUE, queue("b"))
    feed.batch_done()
    found = facts.queue("a")
    assert found is not None
    assert found["status"]["state"] == "Closed"
    assert facts.queue("b") is None
    assert [size["cpu"] for size in facts.node_sizes()] == [1000]


def test_what_a_later_listing_lacks_has_gone() -> None:
    facts = ClusterFacts()
    feed = FactsFeed(facts)
    for names in ("abc", "ac"):
        feed.begin_listing(QUEUE)
        for name in names:
            feed.upsert(QUEUE, queue(name))
        if names == "ac":
            feed.remove(QUEUE, queue("c"))
        feed.end_listing(QUEUE)
    assert {each["metadata"]["name"] for each in facts.queues()} == {"a"}


def test_what_cannot_be_read_is_left_out() -> None:
    facts = ClusterFacts()
    FactsFeed(facts).reject(QUEUE, "q", "no object", uid="u", deleted=True)
    assert list(facts.queues()) == []


def test_queues_that_somebody_else_answers_for_were_not_read(tmp_path: Path) -> None:
    async def read(server: ScriptedServer) -> Sequence[Object] | None:
        async with ApiClient(load(server.kubeconfig(tmp_path))) as client:
            return await StoredQueues(client).queues()

    with ScriptedServer() as server:
        server.on("GET", QUEUES.path(), answer(b'{"items": ["caf\xe9"]}'), answer(LOGIN_PAGE))
        assert asyncio.run(read(server)) is None
        assert asyncio.run(read(server)) is None
