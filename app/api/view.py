"""The whole state for the page and for programs that follow it: once, and live.

The live view is a stream of server-sent events: the whole, and then what changed. Each step is made
once for all readers of the same rights (:mod:`app.service.telling.view.views`).
"""

import asyncio
import zlib
from collections.abc import AsyncIterator, Sequence
from typing import Final

from fastapi import APIRouter, Request, Response

from app.api.application import Router
from app.api.body import JSON, BadRequest, json_for, json_value, refusals
from app.api.live import EVENTS, LiveView, WholeView, pieces, too_many
from app.api.questions import refusing
from app.api.services import ExtenderServices
from app.cache.gangs.trail import job_of
from app.model.decision import AuditQuestion, KeptDecision
from app.model.ids import GroupKey
from app.service.telling.view.audience import Audience, Readers
from app.service.telling.view.history import History
from app.service.telling.view.job_story import JobStory, find_group, job_story
from app.service.telling.view.rows import Whole
from app.service.telling.view.state import row_of
from app.service.telling.view.views import TooManyViewers

_DECISIONS: Final = 1_000
"""The latest decisions about a job that its story is made of."""
_EVENTS: Final = {"content": {EVENTS: {"schema": {"type": "string"}}}}
_LEAST_COMPRESSED: Final = 1_000
"""Bytes of an answer that is compressed, at least."""
_GZIP: Final = 16 + zlib.MAX_WBITS
NAMESPACES: Final = 20
"""How many namespaces one reader is told of at most."""

_REFUSALS = refusals(
    {
        400: "the question cannot be read; says why",
        429: "this account reads too often, or too many tokens are looked at",
        503: "too many readers, or the token cannot be looked at now",
        "default": "refused; says why",
    }
)


def view_router(services: ExtenderServices) -> APIRouter:
    """``/view`` and what is below it."""
    router = Router(prefix="/view", tags=["view"])
    views, access = services.views, services.access

    async def audience(readers: Readers) -> Audience:
        try:
            return await views.audience(readers)
        except TooManyViewers as error:
            raise too_many(error) from None

    @router.get("", responses=_REFUSALS | {200: {"model": Whole}})
    async def view(request: Request, namespace: str = "") -> Response:
        """The whole state: queues, jobs, nodes, domains of the network, and what is to come.

        ``namespace`` are namespaces with commas between; a tenant names its own. A replica that
        stands by has no rows, and says which one leads.
        """
        user, readers = await access.readers(request, _namespaces(namespace))
        found = await audience(readers)
        texts = list(found.whole(user, at=views.sources.clock()))
        told, headers = _in_pieces(texts, request)
        return WholeView(told, views, user, readers, media_type=JSON, headers=headers)

    @router.get("/stream", response_class=Response, responses=_REFUSALS | {200: _EVENTS})
    async def stream(namespace: str = "") -> Response:
        """The whole state as server-sent events: ``whole``, then ``delta`` once a second at most.

        The stream ends with ``expired`` when the token is valid no more, and with ``stopping`` when
        the process ends.
        """
        return LiveView(views, access, asked=_namespaces(namespace))

    @router.get("/history", responses=_REFUSALS | {200: {"model": History}})
    async def history(request: Request, namespace: str = "", queue: str = "") -> Response:
        """The last hour: what queues held, asked and might hold, and jobs that started or ended.

        ``queue`` are queues with commas between; without it those are told that ask most.
        """
        _, readers = await access.readers(request, _namespaces(namespace))
        told = (await audience(readers)).queues
        asked = _listed(queue)
        if asked:
            told = asked if told is None else told & asked
        return json_value(services.history.told(readers, told))

    _tell_of_jobs(router, services)
    return router


def _tell_of_jobs(router: APIRouter, services: ExtenderServices) -> None:
    cache, sources = services.cache, services.views.sources

    @router.get(
        "/jobs/{namespace}/{name}",
        responses=_REFUSALS
        | refusals({404: "nothing is known of a job of that name"})
        | {200: {"model": JobStory}},
    )
    async def job(request: Request, namespace: str, name: str) -> Response:
        """One job's story: when it came to each stage, its members, and evictions by it and of it.

        ``name`` is that of a job, a PodGroup or a pod. 503 where another replica decides.
        """
        viewer = await services.access.tenant(request, namespace)
        services.require_lead()
        group = find_group(cache, namespace, name)
        called = job_of(group) if group is not None else name
        asked = AuditQuestion(
            job=f"{namespace}/{called}", namespace=viewer.namespace or "", most=_DECISIONS
        )
        with refusing(), services.questions.of(viewer):
            decisions = (await services.trail.ask(asked)).decisions
        key = group.key if group is not None else _latest(decisions, namespace, called)
        if key is None:
            raise BadRequest(f"nothing is known of {namespace}/{name}", status=404)
        async with services.questions.in_turn(viewer):
            group, eta = cache.groups.get(key), services.views.estimate(key)
            row = row_of(sources, group, eta=eta) if group is not None else None
            ours = [each for each in decisions if key in (each.group, each.preemptor)]
            told = job_story(
                group,
                row,
                ours,
                key=key,
                run=services.history.run_of(key),
                evictions=services.planning.evictions,
            )
            named = (each.group.partition("/")[0] for each in decisions)
            return json_for(viewer, told, namespaces={*cache.namespaces_heard_of, *named})


def _in_pieces(
    texts: Sequence[bytes], request: Request
) -> tuple[AsyncIterator[bytes], dict[str, str]]:
    """The texts, compressed for a reader that takes that, and what headers say of it."""
    told, headers = pieces(texts), {"Vary": "Accept-Encoding"}
    is_large = sum(map(len, texts)) > _LEAST_COMPRESSED
    if is_large and _takes_gzip(request.headers.get("accept-encoding", "")):
        told = _compressed(told)
        headers["Content-Encoding"] = "gzip"
    return told, headers


def _takes_gzip(accepted: str) -> bool:
    """Whether a header Accept-Encoding allows gzip."""
    said = {
        name.strip(): weight.replace(" ", "").rstrip("0")
        for name, _, weight in (each.partition(";") for each in accepted.lower().split(","))
    }
    return said.get("gzip", "q=") not in ("q=", "q=0.")


async def _compressed(texts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    made = zlib.compressobj(1, wbits=_GZIP)
    async for text in texts:
        if part := made.compress(text):
            yield part
        await asyncio.sleep(0)  # a piece takes about a millisecond
    yield made.flush()


def _latest(decisions: Sequence[KeptDecision], namespace: str, name: str) -> GroupKey | None:
    """The latest group of a job or of that name that there is a decision about."""
    named, mine = f"{namespace}/{name}", f"{namespace}/"
    for each in reversed(decisions):
        if each.group == named or (each.job == name and each.group.startswith(mine)):
            return GroupKey(each.group)
    return None


def _namespaces(text: str) -> frozenset[str]:
    """The namespaces that the query names; none: it does not say."""
    found = _listed(text)
    if len(found) > NAMESPACES:
        raise BadRequest(f"namespace: {len(found)} are more than {NAMESPACES}")
    return found


def _listed(text: str) -> frozenset[str]:
    return frozenset(each.strip() for each in text.split(",") if each.strip())
