"""Informers of pods over a scripted server, and what they brought."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from app.kube.config import Connection
from app.kube.decode import decoder
from app.kube.informer import Informer, Watched
from app.kube.stream import Batch, Decoder, Event
from app.telemetry import metrics
from tests.kube.server import (
    PATIENCE_S,
    Handler,
    ScriptedServer,
    line,
    lists_and_watches,
    status_body,
)

PODS = "/api/v1/pods"
KIND = "pods"


def named(raw: msgspec.Raw) -> str:
    obj = json.loads(bytes(raw))
    if "broken" in obj:
        raise ValueError("spec.broken: must not be there")
    return str(obj["metadata"]["name"])


class Collector:
    """A sink that remembers, and can be waited on."""

    def __init__(self) -> None:
        self.batches: list[Batch[str]] = []
        self._changed = threading.Condition()

    @property
    def events(self) -> list[Event[str]]:
        return [event for batch in self.batches for event in batch]

    def __call__(self, batch: Batch[str]) -> None:
        with self._changed:
            self.batches.append(batch)
            self._changed.notify_all()

    def wait(self, enough: Callable[[list[Event[str]]], bool]) -> list[Event[str]]:
        with self._changed:
            arrived = self._changed.wait_for(lambda: enough(self.events), PATIENCE_S)
            assert arrived, self.events
            return self.events

    def wait_for(self, event: Event[str]) -> list[Event[str]]:
        return self.wait(lambda events: event in events)


@contextmanager
def informing(
    connection: Connection,
    sink: Callable[[Batch[str]], None],
    *,
    decode: Decoder[str] | None = None,
    silence_s: float = 60.0,
    selectors: dict[str, str] | None = None,
    optional: bool = False,
) -> Iterator[Informer[str]]:
    watched = Watched(
        kind=KIND,
        path=PODS,
        decoder=decode or decoder(named),
        page_limit=2,
        silence_s=silence_s,
        selectors=selectors or {},
        optional=optional,
    )
    informer = Informer(watched, connection=connection, sink=sink, random=lambda: 0.0)
    informer.start()
    try:
        yield informer
    finally:
        informer.stop()
        assert not any(t.name == "informer-pods" for t in threading.enumerate())


def script(server: ScriptedServer, lists: list[Handler], watches: list[Handler]) -> None:
    server.on("GET", PODS, lists_and_watches(lists, watches))


def versions(server: ScriptedServer) -> list[str]:
    """The versions that watches were begun from."""
    return [s.query["resourceVersion"] for s in server.asked("GET", PODS) if "watch" in s.query]


def is_listed_once(server: ScriptedServer) -> bool:
    """Whether nothing was listed any more once a watch had begun."""
    watches = ["watch" in seen.query for seen in server.asked("GET", PODS)]
    return watches == sorted(watches)


def restarts(cause: str) -> float:
    labels = {"kind": KIND, "cause": cause}
    return metrics.REGISTRY.get_sample_value("pumice_informer_restarts_total", labels) or 0.0


GONE_LINE = line("ERROR", json.loads(status_body(410, "Expired", "too old resource version")))
