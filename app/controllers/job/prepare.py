"""Everything that a job needs before its pods: queue, claims, objects of plugins, PodGroup.

It is gone through once for every generation and version of the job. After that only the PodGroup is
compared, and before further pods are made the objects of plugins, which a user may delete. What
cannot be had is an :class:`Unready`, which the status shows while it lasts.
"""

from dataclasses import dataclass
from typing import Final

from app.controllers.job import extras, group, sync, volumes
from app.controllers.job.extras import InTheWay, ReadPlugins
from app.controllers.job.group_writer import GroupWriter
from app.controllers.job.job_writer import JobWriter
from app.controllers.job.memory import Memory
from app.controllers.job.reader import Reader, Seen
from app.controllers.job.view import Job
from app.controllers.job.vocabulary import JOB_FORWARDING, JOB_SIZE
from app.controllers.ports import Api, ApiError, Clock, Failure
from app.controllers.requests import is_stored
from app.jobplugins.catalogue import JobPlugins
from app.wire import unstructured
from app.wire.kinds import CLAIMS
from app.wire.unstructured import Key, Object

OBJECTS_S: Final = 5.0
"""For so long objects of plugins that were seen are taken to be there."""


class Unready(Exception):
    """Something that the job needs is not to be had; ``reason`` is that of event and status."""

    def __init__(self, reason: str, message: str, failure: Failure = Failure.PASSING) -> None:
        super().__init__(message)
        self.reason = reason
        self.failure = failure


class Unlisted(Unready):
    """The objects of plugins are not as the job is now: its pods must not change before they are.

    ``hopeless``: other objects have their names.
    """

    def __init__(self, message: str, failure: Failure, *, hopeless: bool = False) -> None:
        super().__init__("PluginError", message, failure)
        self.hopeless = hopeless


class Absent(Unready):
    """Another object that the user makes is not there, or not yet."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Preparation:
    """Makes what jobs need before their pods."""

    api: Api
    reader: Reader
    jobs: JobWriter
    groups: GroupWriter
    read_plugins: ReadPlugins
    clock: Clock

    def plugins(self, job: Job) -> JobPlugins:
        """The plugins of a job; raises `PluginError`."""
        return self.read_plugins(job.item)

    async def prepare(self, seen: Seen, memory: Memory) -> tuple[Job, Object]:
        """The job as it is then, and its PodGroup; raises `Unready`."""
        job = seen.job
        if memory.prepared != (job.generation, job.version):
            # Lists of hosts first where there are pods, which are made and deleted after them.
            if seen.members:
                await self._objects(job, memory)
            job = await self._forward(job)
            job = await self._name_claims(job)
            await self._claims(job)
            if not seen.members:
                await self._objects(job, memory)
            memory.prepared = (job.generation, job.version)
        found = await self._group(job, seen.group, owed=memory.owes_an_answer)
        is_recent = 0 <= self.clock() - memory.objects_seen < OBJECTS_S
        if not is_recent and group.is_admitted(found) and sync.missing(job, seen.members):
            await self._objects(job, memory)
        return job, found

    def resources(self, job: Job) -> dict[str, str]:
        """``status.controlledResources`` of a job that is prepared; raises `PluginError`."""
        claims = {volumes.resource_key(name): name for name in volumes.claim_names(job)}
        return {**claims, **self.plugins(job).controlled_resources()}

    async def remove(self, job: Job) -> dict[str, str]:
        """Take away what a kill takes away; ``controlledResources`` is then this."""
        await extras.remove(self.api, self.plugins(job))
        there = job.status.get("controlledResources") or {}
        return {key: name for key, name in there.items() if not extras.is_plugin(key)}

    async def _forward(self, job: Job) -> Job:
        queue = self.reader.queue(job.queue)
        if queue is None:
            raise Absent("JobStatusError", f"queue {job.queue} is not found")
        if not unstructured.spec(queue).get("extendClusters") or job.is_forwarded:
            return job
        return await self.jobs.write(job, {"metadata": {"annotations": {JOB_FORWARDING: "true"}}})

    async def _name_claims(self, job: Job) -> Job:
        named = volumes.named_volumes(job)
        if named is None:
            return job
        return await self.jobs.write(job, {"spec": {"volumes": named}})

    async def _claims(self, job: Job) -> None:
        for name, claim in volumes.claims(job):
            try:
                await self._claim(job, name, claim)
            except ApiError as error:
                raise Unready("PVCError", str(error), error.failure) from error

    async def _claim(self, job: Job, name: str, claim: Object | None) -> None:
        if await self._is_there(Key(job.key.namespace, name)):
            return
        if claim is None:
            raise Absent(
                "PVCError",
                f"pvc {name} is not found, the job will be in the Pending state until the PVC is"
                " created",
            )
        try:
            await self.api.create(CLAIMS, claim)
        except ApiError as error:
            if error.failure is not Failure.EXISTS:
                raise

    async def _is_there(self, claim: Key) -> bool:
        return await is_stored(self.api, CLAIMS, claim)

    async def _objects(self, job: Job, memory: Memory) -> None:
        try:
            await extras.ensure(self.api, self.plugins(job))
            memory.objects_seen = self.clock()
        except ApiError as error:
            raise Unlisted(str(error), error.failure) from error
        except InTheWay as error:
            raise Unlisted(str(error), Failure.PASSING, hopeless=True) from error

    async def _group(self, job: Job, stored: Object | None, *, owed: bool) -> Object:
        """``owed``: the size in it stays an older one, so that the answer cannot be forgotten."""
        name = unstructured.name(stored) if stored is not None else group.keys(job)[0].name
        wanted = group.pod_group(job, name=name, priorities=self.reader.priorities())
        annotations = wanted["metadata"]["annotations"]
        annotations.update(group.stranded_since(job, stored, now=self.clock()))
        if owed:
            before = unstructured.annotations(stored or {})
            annotations[JOB_SIZE] = before.get(JOB_SIZE, "unknown")
        try:
            return await self.groups.write(wanted, stored)
        except ApiError as error:
            raise Unready("PodGroupError", str(error), error.failure) from error
