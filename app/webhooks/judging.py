"""Judging a request on what is known, and not refusing on what is known too late.

The informers lag behind: a queue made a moment ago may not be there yet, a child deleted a moment
ago may still be. So nothing is refused because of queues without reading them from the API server,
and changes of queues, which are rare, are always judged on what was read.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from app.webhooks.admission import Verdict, Webhook, decide
from app.webhooks.cluster_facts import ClusterFacts
from app.webhooks.resource_groups import ResourceGroup
from app.webhooks.world import Options, Request, World
from app.wire import kinds
from app.wire.unstructured import Object

_NAME_QUEUES = frozenset({kinds.JOBS, kinds.POD_GROUPS})


class QueueReader(Protocol):
    """Reads queues from the API server."""

    async def queues(self) -> Sequence[Object] | None:
        """All queues as stored now; None when they cannot be read. Never raises."""


class Judge:
    """Verdicts on requests; another part keeps ``facts`` up to date."""

    def __init__(self, facts: ClusterFacts, reader: QueueReader, options: Options) -> None:
        self._facts = facts
        self._reader = reader
        self._options = options

    def use_groups(self, groups: tuple[ResourceGroup, ...]) -> None:
        """Take these resource groups from now on."""
        self._options = replace(self._options, resource_groups=groups)

    async def verdict(self, webhook: Webhook, request: Request) -> Verdict:
        """The answer."""
        if webhook.mutate is not None:
            return decide(webhook, request, self._world(self._facts))
        if webhook.resource == kinds.QUEUES:
            return decide(webhook, request, await self._fresh())
        known = decide(webhook, request, self._world(self._facts))
        if known.allowed or webhook.resource not in _NAME_QUEUES:
            return known
        return decide(webhook, request, await self._fresh())

    async def _fresh(self) -> World:
        queues = await self._reader.queues()
        return self._world(self._facts if queues is None else self._facts.with_queues(queues))

    def _world(self, facts: ClusterFacts) -> World:
        return World(facts, self._options)
