"""Kinds as they are now: what a stream changes, what a new listing finds gone, and troubles."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.cli.cluster import Where
from app.cli.endings import CommandFailed
from app.cli.live_objects import Followed, LiveObjects, ObjectChange, follow
from app.kube import errors
from app.kube.stream import Added, Deleted, ListDone, ListStarted, Modified, PageListed
from app.wire.kinds import PODS, QUEUES
from app.wire.unstructured import Key, Object, labels
from tests.kube.informing import GONE_LINE
from tests.kube.server import (
    PATIENCE_S,
    Handler,
    ScriptedServer,
    answer,
    failure,
    item,
    line,
    lists_and_watches,
    page,
    watch,
)

Named = tuple[Key, str | None]


def at(name: str, value: str | None = "there") -> Named:
    return Key("", name), value


def change(name: str, value: str = "there", *, is_gone: bool = False) -> ObjectChange[str]:
    return ObjectChange(Key("", name), value, is_gone=is_gone)


class TestWhatAStreamChanges:
    """Batches of an informer, without one."""

    def followed(self) -> Followed[str]:
        return Followed(QUEUES, lambda _: "")

    def listed(self, *named: Named) -> Followed[str]:
        kind = self.followed()
        kind.take([ListStarted(), PageListed(list(named)), ListDone("1")])
        return kind

    def test_a_listing_is_new_and_what_follows_changes_it(self) -> None:
        kind = self.followed()
        assert kind.take([ListStarted(), PageListed([at("a")])]) == [change("a")]
        assert not kind.is_listed
        assert kind.take([ListDone("1"), Added(at("b"))]) == [change("b")]
        assert kind.is_listed
        assert kind.take([Modified(at("a", "else"))]) == [change("a", "else")]
        assert kind.take([Deleted(at("a", "last"))]) == [change("a", "last", is_gone=True)]
        assert kind.items == dict([at("b")])

    def test_a_listing_anew_tells_only_what_differs_and_what_is_gone(self) -> None:
        kind = self.listed(at("kept"), at("changed"), at("gone"))
        anew = [at("kept"), at("changed", "else"), at("new")]
        assert kind.take([ListStarted(), PageListed(anew), ListDone("9")]) == [
            change("changed", "else"),
            change("new"),
            change("gone", is_gone=True),
        ]
        assert kind.items == dict(anew)

    def test_a_listing_that_begins_again_has_nothing_gone_by_the_first(self) -> None:
        kind = self.listed(at("a"))
        kind.take([ListStarted(), PageListed([])])
        assert kind.take([ListStarted(), PageListed([at("a")]), ListDone("9")]) == []

    def test_what_is_not_wanted_any_more_is_gone(self) -> None:
        kind = self.listed(at("a"), at("unwanted", None))
        assert kind.take([Modified(at("a", None))]) == [change("a", is_gone=True)]
        assert kind.take([Deleted(at("unwanted", None)), Modified(at("other", None))]) == []
        assert kind.items == {}

    def test_objects_are_whole_and_say_their_kind(self) -> None:
        kind = Followed(PODS, lambda item: item)
        raw = msgspec.Raw(b'{"metadata": {"name": "p", "namespace": "n", "managedFields": []}}')
        assert kind.decode(raw) == (
            Key("n", "p"),
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n"}},
        )


class TestAgainstAServer:
    """The whole of it, over HTTP."""

    config: Path
    server: ScriptedServer

    @pytest.fixture(autouse=True)
    def started(self, tmp_path: Path) -> Iterator[None]:
        with ScriptedServer() as running:
            self.config = running.kubeconfig(tmp_path)
            self.server = running
            yield

    def serve(self, lists: list[Handler], watches: list[Handler]) -> None:
        self.server.on("GET", PODS.path(namespace="d"), lists_and_watches(lists, watches))

    def live(self, use: Callable[[LiveObjects, Followed[Any]], Awaitable[None]]) -> None:
        kind = Followed(PODS, colour, namespace="d", labels="app=a", fields="spec.nodeName!=")

        async def bounded(live: LiveObjects) -> None:
            async with asyncio.timeout(PATIENCE_S):
                await use(live, kind)

        follow(Where(self.config), [kind], bounded)

    def told(self, count: int) -> list[tuple[str, str, bool]]:
        """The first changes that are told."""
        changes: list[ObjectChange[str]] = []

        async def use(live: LiveObjects, _: Followed[Any]) -> None:
            live.told = changes.append
            while len(changes) < count:
                live.news.clear()
                await live.news.wait()

        self.live(use)
        return [(each.key.name, each.value, each.is_gone) for each in changes[:count]]

    def test_it_asks_for_the_chosen_objects_and_tells_each_change(self) -> None:
        self.serve(
            [page([pod("a", 1, "red")], version=2)],
            [watch(line("MODIFIED", pod("a", 3, "blue")), line("DELETED", pod("a", 4, "blue")))],
        )
        assert self.told(3) == [("a", "red", False), ("a", "blue", False), ("a", "blue", True)]
        for request in self.server.asked("GET", PODS.path(namespace="d")):
            assert request.query["labelSelector"] == "app=a"
            assert request.query["fieldSelector"] == "spec.nodeName!="

    def test_a_server_that_has_forgotten_is_listed_anew_without_a_word(self) -> None:
        self.serve(
            [
                page([pod("a", 1, "red"), pod("b", 1, "red")], version=2),
                page([pod("a", 1, "red"), pod("c", 8, "red")], version=9),
            ],
            [watch(GONE_LINE, then="end"), watch()],
        )
        assert self.told(4) == [
            ("a", "red", False),
            ("b", "red", False),
            ("c", "red", False),
            ("b", "red", True),
        ]

    def test_a_trouble_is_told_until_the_server_is_back(self) -> None:
        troubles: list[str] = []

        async def use(live: LiveObjects, _: Followed[Any]) -> None:
            await live.listed()
            while len(troubles) < 2:
                live.news.clear()
                await live.news.wait()
                trouble = live.trouble
                text = "" if trouble is None else trouble.message
                if text not in troubles[-1:] and (text or troubles):
                    troubles.append(text)

        self.serve(
            [page([], version=2)], [watch(then="drop"), failure(503, message="down"), watch()]
        )
        self.live(use)
        assert troubles in (["down", ""], [troubles[0], "down"])

    @pytest.mark.parametrize(
        ("first", "error"),
        [
            (failure(403, message="no pods for you"), errors.Forbidden),
            (answer({"kind": "Status"}, status=404), CommandFailed),
            (answer("hello"), CommandFailed),
            (failure(500), errors.ServerError),
        ],
    )
    def test_a_kind_that_cannot_be_listed_is_an_error(
        self, first: Handler, error: type[Exception]
    ) -> None:
        async def use(live: LiveObjects, kind: Followed[Any]) -> None:
            await live.listed()
            live.require(kind)

        self.serve([first], [watch()])
        with pytest.raises(error):
            self.live(use)


def pod(name: str, version: int, paint: str) -> Object:
    made = item(name, version)
    made["metadata"] = {**made["metadata"], "labels": {"colour": paint}}  # type: ignore[dict-item]
    return made


def colour(pod: Object) -> str:
    return labels(pod)["colour"]
