"""What the extender believes, for people with curl."""

import asyncio
from typing import Any, Final

from fastapi import APIRouter, Depends, Response

from app.api.application import Router
from app.api.body import BadRequest, json_value, refusals
from app.api.services import ExtenderServices
from app.cache.gangs.groups import Group
from app.core.figures import QueueFigures
from app.kit.shared import Shared
from app.model.ids import QueueName
from app.model.resources import ResourceAxis, Vector
from app.service.ports import WriteError
from app.service.telling.domains import domain_facts, page
from app.service.telling.evicting import state_of_evictions, view_of
from app.service.telling.explanations import slots_of

_MOST_DOMAINS: Final = 1_000
_LAST_DOMAIN: Final = 1_000_000
_MANY_NODES: Final = 1_000
"""From so many nodes on domains are worked out beside the event loop."""


def debug_router(services: ExtenderServices) -> APIRouter:
    """``/debug/*``."""
    router = Router(
        prefix="/debug", tags=["debug"], dependencies=[Depends(services.access.operator)]
    )
    cache, planning = services.cache, services.planning
    audit = Shared(services.audit)

    @router.get("/snapshot")
    async def snapshot() -> Response:
        """Nodes with what is free, quotas, HyperNodes, and how much of everything is known."""
        node_usage = cache.node_usage
        nodes = {
            name: {
                "free": dict(node_usage.axis.amounts(node_usage.idle(name))),
                "allocatable": dict(node.allocatable),
                "takesPods": node.ready and not node.unschedulable,
                "charges": len(node_usage.holders(name)),
            }
            for name, node in sorted(node_usage.nodes.items())
        }
        totals = {
            "nodes": len(node_usage.nodes),
            "members": len(cache.members),
            "foreign": len(cache.pods.foreign),
            "groups": len(cache.groups),
            "pending": len(cache.registry.pending),
            "setAside": len(cache.registry.aside),
        }
        quotas = {
            key: {"hard": dict(quota.hard), "used": dict(quota.used)}
            for key, quota in sorted(cache.quotas.items())
        }
        malformed = list(services.feed.malformed.values())
        return json_value(
            {
                "totals": totals,
                "malformed": malformed,
                "nodes": nodes,
                "quotas": quotas,
                "hyperNodes": sorted(cache.network.names),
            }
        )

    @router.get("/queues")
    async def queues() -> Response:
        """Every queue: limits, state, what its groups hold, ask and may still claim, and its share.

        ``terminating`` is what its terminating pods have; it is in none of the other sums.
        ``entitled`` is what it deserves at this moment, whichever plugin works that out; null: no
        plugin does.
        """
        figures = planning.queries.queue_figures()
        return json_value({name: _queue(services, name, each) for name, each in figures.items()})

    @router.get("/ledger", responses=refusals({502: "the API server did not list"}))
    async def ledger() -> Response:
        """Compare what is counted with a fresh listing of the API server."""
        try:
            return json_value(await audit.get())
        except WriteError as error:
            raise BadRequest(str(error), status=502) from error

    @router.get("/plan")
    async def plan() -> Response:
        """The last cycle: its places, and why each refused group was refused."""
        return json_value({"cycle": planning.log, "refused": planning.last_plan.refusals})

    @router.get("/gangs")
    async def gangs() -> Response:
        """Groups with reservations or held Bind calls."""
        held = services.barrier.held()
        groups = {key: cache.groups.get(key) for key in sorted({*cache.registry.reserved, *held})}
        return json_value(
            {key: _gang(group, held.get(key, 0)) for key, group in groups.items() if group}
        )

    @router.get("/vetoes")
    async def vetoes() -> Response:
        """Nodes the stock filters refused for a shape, while that is remembered."""
        active = planning.vetoes.active(now=planning.queries.clock())
        return json_value([{"node": v.node, "requests": dict(v.shape.requests)} for v in active])

    _tell_of_evictions(router, services)
    _tell_of_domains(router, services)
    return router


def _tell_of_evictions(router: APIRouter, services: ExtenderServices) -> None:
    cache, planning = services.cache, services.planning

    @router.get("/evictions")
    async def evictions() -> Response:
        """Eviction plans under way, for which groups no pods are evicted, and pods that stay."""
        now = planning.queries.clock()
        return json_value(state_of_evictions(cache, planning.evictions, now=now))

    @router.get("/certificates")
    async def certificates() -> Response:
        """The latest decisions to evict, each with what ``pumice check-eviction`` verifies."""
        return json_value([view_of(cache, begun) for begun in planning.evictions.decided])


def _tell_of_domains(router: APIRouter, services: ExtenderServices) -> None:
    @router.get("/domains", responses=refusals({"default": "a number is out of its bounds"}))
    async def domains(limit: str = "100", offset: str = "0") -> Response:
        """Domains of the network from the lowest tier up, a page of ``limit`` from ``offset`` on.

        The last one of all is the whole cluster. ``next`` is the offset of the next page, null on
        the last one. ``free`` is what no pod has and none is promised, ``gangs`` are those with all
        of their places inside: names of some, and ``gangsInside`` how many there are.
        """
        most = _bounded("limit", limit, least=1, most=_MOST_DOMAINS)
        first = _bounded("offset", offset, least=0, most=_LAST_DOMAIN)
        facts = domain_facts(services.cache)
        if len(facts.table.nodes) < _MANY_NODES:
            return json_value(page(facts, offset=first, limit=most))
        return json_value(await asyncio.to_thread(page, facts, offset=first, limit=most))


def _bounded(name: str, text: str, *, least: int, most: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10 and least <= int(text) <= most):
        raise BadRequest(f"{name}: {text} is not from {least} to {most}")
    return int(text)


def _queue(services: ExtenderServices, name: QueueName, figures: QueueFigures) -> dict[str, Any]:
    cache = services.cache
    queue, axis = cache.queues[name], cache.node_usage.axis
    usage = cache.registry.usage().get(name)
    sums: dict[str, Any] = {}
    if usage is not None:
        sums = {
            "allocated": dict(axis.amounts(usage.allocated)),
            "request": dict(axis.amounts(usage.request)),
            "inqueue": dict(axis.amounts(usage.inqueue)),
            "elastic": dict(axis.amounts(usage.elastic)),
            "terminating": _amounts(axis, usage.releasing) or {},
            "groups": usage.groups,
        }
    return {
        "state": queue.state.value,
        "weight": queue.weight,
        "parent": queue.parent,
        "capability": dict(queue.capability),
        "deserved": dict(queue.deserved),
        "guarantee": dict(queue.guarantee),
        **sums,
        "entitled": _amounts(axis, figures.deserved),
        "realCapability": _amounts(axis, figures.real_capability),
        "share": figures.share,
        "borrowed": _amounts(axis, figures.borrowed),
        "overused": figures.overused,
    }


def _amounts(axis: ResourceAxis, vector: Vector | None) -> dict[str, int] | None:
    return None if vector is None else dict(axis.amounts(vector))


def _gang(group: Group, held: int) -> dict[str, Any]:
    return {
        "phase": group.phase.value,
        "minMember": group.min_member,
        "onNodes": group.on_nodes,
        "arrived": group.counted.arrivals.at_bind.total(),
        "heldBinds": held,
        "slots": slots_of(group),
        "holdUntil": group.cool_down_until,
        "failures": group.failures,
        "givenUp": group.given_up,
        "setAside": group.set_aside,
    }
