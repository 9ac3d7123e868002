"""Keeps the HyperNodes of discovery as its sources tell them.

The configuration is a ConfigMap that is followed. One that cannot be meant is told of and changes
nothing. Each source is worked on by itself, so that a server that is slow to answer holds up no
other source. Only HyperNodes that carry the mark of a source are touched; when a source is switched
off its HyperNodes stay as they are, as running gangs may be bound to them.
"""

import logging
from collections.abc import Iterable, Mapping
from typing import Final

from app.controllers.hypernode import by_labels
from app.controllers.hypernode.controller import NAME
from app.controllers.hypernode.making import SOURCE, Known, TopologyError, differs
from app.controllers.hypernode.polling import Build, Poll, PollError
from app.controllers.ports import Api, ApiError, Clock, Events, EventType, Failure, Web
from app.controllers.requests import GONE, unless
from app.controllers.runtime import ObjectChange
from app.controllers.store import Store
from app.kit.workqueue import Again
from app.telemetry import metrics
from app.wire.controller_conf import (
    KEY,
    LABEL,
    SOURCES,
    ControllerConfError,
    Discovery,
    Server,
    parse_controller_conf,
)
from app.wire.kinds import CONFIG_MAPS, HYPER_NODES, NODES, Resource
from app.wire.unstructured import Key, Object, key_of, labels, name, spec, uid, version

log = logging.getLogger(__name__)

_CONF: Final = Key("", "configuration")
_EACH: Final = {source: Key("", source) for source in SOURCES}
_AGAIN_S: Final = 2.0
"""After how long it is looked whether the watch shows what was in the way."""
_REFUSED_S: Final = 60.0
_TOLD: Final = 5
"""Of many warnings so many are told."""


class Discoverer:
    """See the module. There is one key for what is told of the configuration, one a source."""

    name = NAME
    kinds = (CONFIG_MAPS, NODES, HYPER_NODES)

    def __init__(
        self,
        stores: Mapping[Resource, Store],
        *,
        api: Api,
        events: Events,
        web: Web,
        clock: Clock,
        config_map: Key,
    ) -> None:
        self._stores = stores
        self._api = api
        self._events = events
        self._web = web
        self._clock = clock
        self._config_map = config_map
        self._seen = ""
        """The version that was read last; empty: there is none."""
        self._conf = Discovery()
        self._problem = ""
        self._polls: dict[str, Poll] = {}
        self._told: dict[str, str] = {}

    def keys(self, change: ObjectChange) -> Iterable[Key]:
        """Everything, when the configuration or labels change; a source for its HyperNodes."""
        if change.resource is CONFIG_MAPS:
            if key_of(change.item) != self._config_map:
                return ()
            return (_CONF, *_EACH.values())
        if change.resource is NODES:
            both = change.old is not None and change.new is not None
            changed = not both or labels(change.old or {}) != labels(change.new or {})
            return _EACH.values() if changed else ()
        mine = {labels(item).get(SOURCE) for item in (change.old, change.new) if item is not None}
        return [key for source, key in _EACH.items() if source in mine]

    async def reconcile(self, key: Key) -> None:
        """Tell of the configuration, or make, change and delete HyperNodes of one source."""
        self._follow()
        if key == _CONF:
            await self._tell_of_configuration()
        elif key.name == LABEL:
            await self._from_labels()
        else:
            await self._from_server(key.name)

    def _follow(self) -> None:
        """Read the configuration if it has changed; what cannot be meant leaves the last one."""
        config_map = self._stores[CONFIG_MAPS].get(self._config_map)
        now = f"{uid(config_map)}/{version(config_map)}" if config_map is not None else ""
        if now == self._seen:
            return
        self._seen = now
        try:
            conf, self._problem = _conf_of(config_map), ""
        except ControllerConfError as error:
            self._problem = f"{KEY}: {error}"
            log.warning("discovery is not configured anew", extra={"why": self._problem})
            return
        if conf != self._conf:
            log.info("discovery is configured", extra={"sources": ", ".join(conf.sources)})
        self._conf = conf
        for source in list(self._polls):
            if conf.server(source) != self._polls[source].server:
                del self._polls[source]

    async def _tell_of_configuration(self) -> None:
        conf = self._conf
        problem = self._problem
        kept = f"{problem}; the configuration before it holds" if problem else ""
        await self._tell("conf", "InvalidConfiguration", kept)
        asked = ", ".join(conf.unsupported)
        unsupported = f"no HyperNodes are discovered from {asked}; there are {', '.join(SOURCES)}"
        await self._tell("unsupported", "UnsupportedSource", unsupported if asked else "")
        await self._tell("warnings", "NoEffect", "; ".join(conf.warnings[:_TOLD]))
        insecure = "; ".join(filter(None, map(_insecure, conf.servers)))
        await self._tell("insecure", "InsecureSource", insecure)

    async def _tell(self, topic: str, reason: str, said: str) -> None:
        """Say something about a topic once; empty: there is nothing more to say about it."""
        if self._told.get(topic, "") != said:
            self._told[topic] = said
            if said:
                await self._record("Warning", reason, said)

    async def _record(self, event_type: EventType, reason: str, said: str) -> None:
        about = self._stores[CONFIG_MAPS].get(self._config_map)
        if about is not None:
            await self._events.record(about, event_type, reason, said)

    async def _from_labels(self) -> None:
        topologies = self._conf.topologies
        if topologies is None:
            return
        try:
            wanted = by_labels.hyper_nodes(
                topologies, self._stores[NODES].all(), self._known(LABEL)
            )
        except TopologyError as error:
            await self._failed(LABEL, str(error))
            return
        await self._bring_about(LABEL, wanted)
        await self._succeeded(LABEL, self._clock())

    async def _from_server(self, source: str) -> None:
        server = self._conf.server(source)
        if server is None:
            return
        poll = self._polls.get(source)
        if poll is None:
            poll = Poll(
                server,
                home=self._config_map.namespace,
                api=self._api,
                web=self._web,
                clock=self._clock,
            )
            self._polls[source] = poll
        if poll.is_due():
            try:
                await poll.ask()
            except PollError as error:
                await self._failed(source, str(error))
            if self._polls.get(source) is not poll:
                return  # another configuration, which has asked for this key
        if poll.build is not None:
            await self._build(poll, poll.build)
        raise Again("the network may have changed", after_s=max(poll.due - self._clock(), 0.0))

    async def _build(self, poll: Poll, build: Build) -> None:
        source = poll.server.source
        try:
            wanted = build(self._stores[NODES].all(), self._known(source))
        except TopologyError as error:
            await self._failed(source, f"{poll.server.url}: {error}")
            return
        await self._bring_about(source, wanted)
        if poll.has_answered:
            await self._succeeded(source, poll.answered_at)

    def _known(self, source: str) -> Known:
        return Known.of(source, self._stores[HYPER_NODES].all())

    async def _failed(self, source: str, why: str) -> None:
        metrics.DISCOVERY_FAILURES.labels(source).inc()
        log.warning("topology not discovered", extra={"source": source, "why": why})
        said = f"{source}: {why}; its HyperNodes stay as they are"
        await self._tell(source, "DiscoveryFailed", said)

    async def _succeeded(self, source: str, at: float) -> None:
        metrics.DISCOVERY_SUCCESS.labels(source).set(at)
        if self._told.get(source):
            log.info("topology discovered again", extra={"source": source})
            await self._tell(source, "DiscoveryFailed", "")
            await self._record("Normal", "Discovered", f"{source}: the topology is known again")

    async def _bring_about(self, source: str, wanted: Mapping[str, Object]) -> None:
        existing = self._known(source).ours
        refused = ""
        late = False
        for item in sorted(wanted.values(), key=lambda each: (spec(each)["tier"], name(each))):
            try:
                late = not await self._put(item, existing.get(name(item))) or late
            except ApiError as error:
                if error.failure is not Failure.REFUSED:
                    raise
                refused = refused or f"HyperNode {name(item)}: {error}"
        for gone in sorted(existing.keys() - wanted.keys()):
            await self._delete(existing[gone])
        if refused:
            await self._failed(source, refused)
            raise Again("the API server may take it later", after_s=_REFUSED_S)
        if late:
            raise Again("the watch is behind", after_s=_AGAIN_S)

    async def _put(self, item: Object, stored: Object | None) -> bool:
        """Whether nothing was in the way that the store does not show yet."""
        try:
            if stored is None:
                await self._api.create(HYPER_NODES, item)
            elif differs(stored, item):
                metadata = {"labels": labels(item), "uid": uid(stored)}
                body = {"metadata": metadata, "spec": spec(item)}
                await self._api.patch(HYPER_NODES, key_of(item), body)
        except ApiError as error:
            if error.failure not in (Failure.EXISTS, Failure.NOT_FOUND, Failure.CONFLICT):
                raise
            return False
        return True

    async def _delete(self, item: Object) -> None:
        with unless(*GONE):
            await self._api.delete(HYPER_NODES, key_of(item), uid=uid(item))


def _conf_of(config_map: Object | None) -> Discovery:
    """Without a ConfigMap nothing is discovered."""
    if config_map is None:
        return Discovery()
    text = (config_map.get("data") or {}).get(KEY)
    if text is None:
        raise ControllerConfError("the ConfigMap has no such key")
    return parse_controller_conf(text)


def _insecure(server: Server) -> str:
    if server.url.startswith("http:"):
        return f"{server.source}: what {server.url} says and is sent is not encrypted"
    if server.insecure:
        return (
            f"{server.source}: insecureSkipVerify: the certificate of {server.url} is not checked"
        )
    return ""
