"""What a plugin is, and what it knows of its job."""

from dataclasses import dataclass
from typing import Protocol

from app.jobplugins.rules.job_tasks import JobTasks
from app.jobplugins.wanted import Wanted
from app.wire.unstructured import Object


@dataclass(frozen=True, slots=True)
class PodOfJob:
    """Which pod of a job: the ``index`` of its ``task``."""

    task: str
    index: int


@dataclass(frozen=True, slots=True)
class JobFacts:
    """What plugins know of the job; ``owner`` is the owner reference of what they make."""

    namespace: str
    uid: str
    owner: Object
    job_tasks: JobTasks

    @property
    def name(self) -> str:
        """The job's name."""
        return self.job_tasks.job


class Plugin(Protocol):
    """One plugin of one job."""

    def pod(self, pod: Object, place: PodOfJob, /) -> None:
        """Change ``pod``, which has not been written yet."""

    def objects(self) -> tuple[Wanted, ...]:
        """The objects that must be there before any pod."""
