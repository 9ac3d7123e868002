"""hcclrank: the rank that Ascend's communication library reads from an annotation.

An annotation that is there stays, then a container's ``RANK`` counts, then the place in the job.
"""

from app.jobplugins import pods
from app.jobplugins.plugin import JobFacts, PodOfJob
from app.jobplugins.ranks import ranks
from app.jobplugins.rules.arguments import Hcclrank
from app.jobplugins.wanted import Wanted
from app.wire.unstructured import Object, annotations

ANNOTATION = "hccl/rankIndex"


class HcclrankPlugin:
    """Adds the annotation."""

    def __init__(self, arguments: Hcclrank, job: JobFacts) -> None:
        """``arguments`` name the tasks."""
        self._ranks = ranks(job.job_tasks, arguments.master, arguments.worker)

    def pod(self, pod: Object, place: PodOfJob) -> None:
        """Pods of other tasks get none."""
        if annotations(pod).get(ANNOTATION):
            return
        rank = _variable(pod)
        if not rank:
            place_rank = self._ranks.of(place)
            rank = "" if place_rank is None else str(place_rank)
        if rank:
            pod["metadata"]["annotations"] = {**annotations(pod), ANNOTATION: rank}

    def objects(self) -> tuple[Wanted, ...]:
        """None."""
        return ()


def _variable(pod: Object) -> str:
    for container in pods.containers(pod):
        for entry in container.get("env") or ():
            if entry.get("name") == "RANK":
                return str(entry.get("value") or "")
    return ""
