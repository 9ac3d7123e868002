"""Discovery on the tests' API server, in virtual time; servers of topologies are played."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import yaml

from app.controllers.hypernode.controller import INDEXES, HyperNodeController
from app.controllers.hypernode.discoverer import Discoverer
from app.controllers.ports import WebError, WebRequest
from app.controllers.runtime import Controller
from app.wire.kinds import CONFIG_MAPS, HYPER_NODES, NODES
from app.wire.unstructured import Key, labels, name, spec
from tests.controllers import play
from tests.controllers.hypernode.shapes import members
from tests.controllers.play import Play, item

CONF = Key("pumice-system", "volcano-controller-configmap")
T = TypeVar("T")


class FakeWeb:
    """Implements :class:`app.controllers.ports.Web`: says what the test wrote down."""

    def __init__(self) -> None:
        self.answer: bytes | str = "no answer within 30 s"
        """A body, or why there is none."""
        self.requests: list[WebRequest] = []
        self.silent: asyncio.Event | None = None
        """Answers come when this is set."""

    async def get(self, request: WebRequest, read: Callable[[bytes], T]) -> T:
        """What the test wrote down."""
        self.requests.append(request)
        answer = self.answer
        if self.silent is not None:
            await self.silent.wait()
        if isinstance(answer, str):
            raise WebError(answer)
        return read(answer)


def run(scenario: Callable[[Play, FakeWeb], Awaitable[None]]) -> Play:
    """Play a scenario."""
    web = FakeWeb()

    def build(stage: Play) -> list[Controller]:
        return [
            HyperNodeController(stage.stores, api=stage.api, clock=stage.clock),
            Discoverer(
                stage.stores,
                api=stage.api,
                events=stage.events,
                web=web,
                clock=stage.clock,
                config_map=CONF,
            ),
        ]

    return play.run(lambda stage: scenario(stage, web), follows=INDEXES, build=build)


def node(stage: Play, node_name: str, **node_labels: str) -> None:
    """A node that is there, with these labels."""
    stage.fake.put(NODES, item(NODES, node_name, metadata={"labels": node_labels}))


def hyper_node(stage: Play, hyper_name: str, pattern: str) -> None:
    """A HyperNode that was made by hand."""
    member = {"type": "Node", "selector": {"regexMatch": {"pattern": pattern}}}
    stage.fake.put(
        HYPER_NODES, item(HYPER_NODES, hyper_name, spec={"tier": 1, "members": [member]})
    )


def configure(stage: Play, *entries: Mapping[str, Any], text: str = "") -> None:
    """Write the ConfigMap."""
    conf = text or yaml.safe_dump({"networkTopologyDiscovery": list(entries)})
    data = {"volcano-controller.conf": conf}
    stage.fake.put(CONFIG_MAPS, item(CONFIG_MAPS, CONF.name, namespace=CONF.namespace, data=data))


def discovered(stage: Play, source: str) -> dict[str, tuple[int, list[str]]]:
    """Tier and members by name of what a source has discovered."""
    return {
        name(each): (spec(each)["tier"], members(each))
        for each in stage.fake.all(HYPER_NODES)
        if labels(each).get("volcano.sh/network-topology-source") == source
    }
