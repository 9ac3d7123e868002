"""Follows how busy nodes are, as the configuration says: asked in the background, again and again.

What cannot be read leaves the loads as they were; each counts as long as it is fresh, and then the
plugins that look at loads have no effect on its node. That is told.
"""

import asyncio
import logging
from collections.abc import Mapping

from app.cache.cluster import ClusterCache
from app.kit.durations import format_duration
from app.model.ids import NodeName
from app.model.load import FRESH_S, MetricsConf, MetricsType, NodeLoad
from app.service.configuration import Configuration
from app.service.ports import Clock, LoadError, LoadReader
from app.telemetry import metrics

log = logging.getLogger(__name__)

LOOK_EVERY_S = 1.0
"""How often it is seen that the configuration asks for something else."""


class LoadFollower:
    """One task, :meth:`run`."""

    def __init__(
        self,
        cache: ClusterCache,
        *,
        reader: LoadReader,
        configuration: Configuration,
        clock: Clock,
    ) -> None:
        self._cache = cache
        self._reader = reader
        self._configuration = configuration
        self._clock = clock
        self._problem = ""

    async def run(self) -> None:
        """Follow for ever; cancel to stop."""
        asked: MetricsConf | None = None
        due = 0.0
        while True:
            conf = self._configuration.metrics
            if conf != asked or (conf is not None and self._clock() >= due):
                asked = conf
                await self._look(conf)
                due = self._clock() + (0.0 if conf is None else conf.interval_s)
            await asyncio.sleep(LOOK_EVERY_S)

    def notices(self) -> tuple[str, ...]:
        """What an operator should know."""
        conf = self._configuration.metrics
        if conf is None:
            return ()
        names = self._cache.node_usage.nodes
        known = self._cache.loads.known
        now = self._clock()
        stale = sum(name not in known or not known[name].is_fresh(now) for name in names)
        if not stale:
            return ()
        why = f" ({self._problem})" if self._problem else ""
        limit, plugins = format_duration(FRESH_S), self._configuration.load_plugins
        subject = (
            f"plugin {plugins[0]} has"
            if len(plugins) == 1
            else f"plugins {' and '.join(plugins)} have"
        )
        return (
            f"{subject} no effect on {stale} of {len(names)} nodes: their load is unknown "
            f"or older than {limit}{why}",
        )

    async def _look(self, conf: MetricsConf | None) -> None:
        if conf is None:
            self._cache.set_loads({})
            return
        try:
            found = await self._read(conf)
        except LoadError as error:
            metrics.LOAD_FAILURES.inc()
            if str(error) != self._problem:
                log.warning("loads of nodes not read", extra={"why": str(error)})
            self._problem = str(error)
            found = {**self._cache.loads.known}
        else:
            self._problem = ""
        now = self._clock()
        fresh = {name: load for name, load in found.items() if load.is_fresh(now)}
        metrics.LOADS_KNOWN.set(len(fresh))
        self._cache.set_loads(fresh)

    async def _read(self, conf: MetricsConf) -> Mapping[NodeName, NodeLoad]:
        if conf.type is not MetricsType.ANNOTATION:
            return await self._reader.read_loads(conf)
        nodes = self._cache.node_usage.nodes.values()
        return {node.name: node.load for node in nodes if node.load is not None}
