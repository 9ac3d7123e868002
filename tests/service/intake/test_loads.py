"""Following how busy nodes are, in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from app.cache.cluster import ClusterCache
from app.model.ids import NodeName
from app.model.load import MetricsConf, NodeLoad
from app.service.configuration import Configuration
from app.service.intake.loads import LoadFollower
from app.service.ports import LoadError
from tests.builders import make_node
from tests.service import virtual_time

N, M = NodeName("n"), NodeName("m")
TEXT = """
actions: allocate
tiers: [{plugins: [{name: gang}, {name: usage}]}]
metrics: {type: %s, address: http://prometheus}
"""
PLAIN = "{actions: allocate, tiers: [{plugins: [{name: gang}]}]}"


class Reader:
    """Says what the test wrote down."""

    def __init__(self) -> None:
        self.cpu: float | str = 10.0
        """The load of all nodes, or why it cannot be read."""
        self.asked: list[MetricsConf] = []

    async def read_loads(self, conf: MetricsConf) -> Mapping[NodeName, NodeLoad]:
        self.asked.append(conf)
        if isinstance(self.cpu, str):
            raise LoadError(self.cpu)
        return {N: NodeLoad(self.cpu, 0.0, at=virtual_time.clock(), window_s=600.0)}


class Rig:
    def __init__(self, text: str) -> None:
        self.cache = ClusterCache(schedulers=frozenset({"volcano"}), clock=virtual_time.clock)
        self.cache.set_node(make_node("n"))
        self.cache.set_node(make_node("m"))
        self.reader = Reader()
        self.configuration = Configuration()
        assert self.configuration.load(text)
        self.follower = LoadFollower(
            self.cache,
            reader=self.reader,
            configuration=self.configuration,
            clock=virtual_time.clock,
        )

    @property
    def cpu(self) -> dict[NodeName, float]:
        return {name: load.cpu for name, load in self.cache.loads.known.items()}


def run(text: str, scenario: Callable[[Rig], Awaitable[None]]) -> None:
    async def whole() -> None:
        rig = Rig(text)
        task = asyncio.create_task(rig.follower.run())
        await scenario(rig)
        task.cancel()

    virtual_time.run(whole())


def test_loads_are_asked_for_at_once_and_after_each_interval() -> None:
    async def scenario(rig: Rig) -> None:
        await virtual_time.advance(1)
        assert rig.cpu == {N: 10.0}
        rig.reader.cpu = 20.0
        await virtual_time.advance(25)
        assert rig.cpu == {N: 10.0}
        await virtual_time.advance(10)
        assert rig.cpu == {N: 20.0}
        assert len(rig.reader.asked) == 2

    run(TEXT % "prometheus", scenario)


def test_nodes_of_unknown_load_are_told_of() -> None:
    async def scenario(rig: Rig) -> None:
        await virtual_time.advance(1)
        assert rig.follower.notices() == (
            "plugin usage has no effect on 1 of 2 nodes: their load is unknown or older than 5m0s",
        )

    run(TEXT % "prometheus", scenario)


def test_what_cannot_be_read_leaves_loads_until_they_are_stale_and_says_so() -> None:
    async def scenario(rig: Rig) -> None:
        await virtual_time.advance(1)
        rig.reader.cpu = "http://prometheus: HTTP 503"
        await virtual_time.advance(250)
        assert rig.cpu == {N: 10.0}
        await virtual_time.advance(100)
        assert rig.cpu == {}
        assert rig.follower.notices() == (
            "plugin usage has no effect on 2 of 2 nodes: their load is unknown or older than 5m0s "
            "(http://prometheus: HTTP 503)",
        )
        rig.reader.cpu = 30.0
        await virtual_time.advance(40)
        assert rig.cpu == {N: 30.0}

    run(TEXT % "prometheus", scenario)


def test_a_change_of_the_configuration_is_followed() -> None:
    async def scenario(rig: Rig) -> None:
        await virtual_time.advance(1)
        assert rig.configuration.load(PLAIN)
        await virtual_time.advance(2)
        assert rig.cpu == {}
        assert rig.follower.notices() == ()
        assert rig.configuration.load(TEXT % "metrics-server")
        await virtual_time.advance(2)
        assert rig.cpu == {N: 10.0}
        assert [conf.type.value for conf in rig.reader.asked] == ["prometheus", "metrics-server"]

    run(TEXT % "prometheus", scenario)


def test_without_the_plugin_nothing_is_asked() -> None:
    async def scenario(rig: Rig) -> None:
        await virtual_time.advance(100)
        assert rig.reader.asked == []

    run(PLAIN[:-1] + ", metrics: {address: http://prometheus}}", scenario)


def test_the_plugin_without_anything_to_ask_says_that_it_has_no_effect() -> None:
    configuration = Configuration()
    assert configuration.load("{actions: allocate, tiers: [{plugins: [{name: usage}]}]}")
    assert configuration.metrics is None
    assert configuration.notices() == ("plugin usage has no effect: metrics names nothing to ask",)


def test_annotations_of_nodes_are_read_without_asking() -> None:
    async def scenario(rig: Rig) -> None:
        load = NodeLoad(70.0, 5.0, at=virtual_time.clock(), window_s=300.0)
        rig.cache.set_node(make_node("m", load=load, resource_version="2"))
        await virtual_time.advance(35)
        assert rig.cpu == {M: 70.0}
        assert rig.reader.asked == []

    run(TEXT % "annotation", scenario)


MOVING = """
actions: "allocate, shuffle"
tiers:
- plugins:
  - name: gang
  - name: rescheduling
    arguments:
      metricsPeriod: 2m
      strategies: [{name: %s}]
  %s
metrics: {address: http://prometheus}
"""


def test_rescheduling_has_loads_averaged_over_its_period() -> None:
    async def scenario(rig: Rig) -> None:
        await virtual_time.advance(1)
        assert [conf.window_s for conf in rig.reader.asked] == [120.0]
        assert rig.follower.notices() == (
            "plugin rescheduling has no effect on 1 of 2 nodes: "
            "their load is unknown or older than 5m0s",
        )

    run(MOVING % ("lowNodeUtilization", ""), scenario)


def test_all_plugins_without_effect_on_a_node_are_named() -> None:
    async def scenario(rig: Rig) -> None:
        await virtual_time.advance(1)
        (said,) = rig.follower.notices()
        assert said.startswith("plugins usage and rescheduling have no effect on 1 of 2 nodes")

    run(MOVING % ("lowNodeUtilization", "- name: usage"), scenario)


def test_nothing_is_asked_for_strategies_that_look_at_no_loads() -> None:
    async def scenario(rig: Rig) -> None:
        await virtual_time.advance(100)
        assert rig.reader.asked == []

    run(MOVING % ("offlineOnly", ""), scenario)
