"""The queues that must exist: ``root`` and those of groups that name none (volcano.md §3.2).

These are ``default``, which the CRDs write into PodGroups and the webhooks into jobs, and what
``--default-queue`` says. Created when missing, at the start and whenever they were deleted; a
failure is tried again. A job that names a queue that is not there is refused, so the process is not
ready before that was done once.
"""

import asyncio
import logging

from app.cache.cluster import ClusterCache
from app.model.ids import DEFAULT_QUEUE, ROOT_QUEUE, QueueName
from app.service.ports import GroupWriter, Reaction, WriteError
from app.wire import patches

log = logging.getLogger(__name__)

LOOK_EVERY_S = 1.0
REPEAT_S = 5.0
"""The watch shows a new queue within this time; until then it is not created again."""


async def ensure_queues(cache: ClusterCache, writer: GroupWriter, *, tried: asyncio.Event) -> None:
    """Keep the queues in being; cancel to stop. ``tried`` is set when all exist, or cannot."""
    wanted = dict.fromkeys((ROOT_QUEUE, DEFAULT_QUEUE, cache.registry.default_queue))
    while True:
        missing = [name for name in wanted if name not in cache.queues]
        for name in missing:
            await _create(writer, name, reclaimable=name != ROOT_QUEUE)
        tried.set()
        await asyncio.sleep(REPEAT_S if missing else LOOK_EVERY_S)


async def _create(writer: GroupWriter, name: QueueName, *, reclaimable: bool) -> None:
    try:
        await writer.create_queue(patches.queue(name, weight=1, reclaimable=reclaimable))
    except WriteError as error:
        if error.reaction is not Reaction.CONFLICT:
            log.warning("queue not created", extra={"queue": name, "reason": str(error)})
    else:
        log.info("queue created", extra={"queue": name})
