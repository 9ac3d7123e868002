"""The status of a JobFlow, from its jobs and from what it said before.

A job that has ended stays in it when it is deleted later (by its time to live, say): its step is
done and is not repeated.
"""

from collections import Counter
from collections.abc import Mapping, Set
from typing import Any, Final

from app.controllers.garbage import FINISHED
from app.controllers.jobflow.machine import Phase, next_phase
from app.wire.unstructured import Object, metadata, name, status

COMPLETED: Final = "Completed"
_STOPPED: Final = FINISHED | {"Aborted"}
_LISTS: Final[Mapping[str, str]] = {
    "Pending": "pendingJobs",
    "Running": "runningJobs",
    "Failed": "failedJobs",
    COMPLETED: "completedJobs",
    "Terminated": "terminatedJobs",
}
_OTHERS: Final = "unKnowJobs"
_ENDING: Final = frozenset({"Completing", "Terminating"})
"""A job that is about to end well, or was ended, is in no list until it has; as in Volcano."""


def phase_of(flow: Object) -> Phase:
    """The phase of a flow."""
    return Phase((status(flow).get("state") or {}).get("phase") or Phase.PENDING.value)


def job_phase(job: Object) -> str:
    """The phase of a job; one that is new is as good as pending."""
    return str((status(job).get("state") or {}).get("phase") or "Pending")


def ended(flow: Object) -> frozenset[str]:
    """The jobs that the status says have ended for good."""
    return frozenset(
        entry["name"]
        for entry in status(flow).get("jobStatusList") or ()
        if entry.get("state") in FINISHED
    )


def report(flow: Object, jobs: Mapping[str, Object], *, steps: Set[str], now: str) -> Object:
    """The status; ``jobs`` are those that exist, ``steps`` those that there are to be, by name."""
    jobs = {job: jobs[job] for job in steps & jobs.keys()}
    before = {entry["name"]: entry for entry in status(flow).get("jobStatusList") or ()}
    entries = {job: before[job] for job in (ended(flow) & steps) - jobs.keys()}
    entries |= {job: _entry(each, before.get(job) or {}, now) for job, each in jobs.items()}
    counts = Counter(entry["state"] for entry in entries.values())
    lists: dict[str, list[str]] = {field: [] for field in (*_LISTS.values(), _OTHERS)}
    for job in sorted(entries):
        if entries[job]["state"] not in _ENDING:
            lists[_LISTS.get(entries[job]["state"], _OTHERS)].append(job)
    progress = dict(status(flow).get("conditions") or {})
    return {
        **lists,
        "jobStatusList": [entries[job] for job in sorted(entries)],
        "conditions": {
            job: _progress(jobs[job]) if job in jobs else progress.get(job) or {}
            for job in sorted(entries)
        },
        "state": {"phase": next_phase(phase_of(flow), counts, steps=len(steps)).value},
    }


def _entry(job: Object, before: Mapping[str, Any], now: str) -> Object:
    state = status(job).get("state") or {}
    entry: Object = {
        "name": name(job),
        "state": job_phase(job),
        "startTimestamp": metadata(job).get("creationTimestamp") or now,
        "restartCount": status(job).get("retryCount") or 0,
        "runningHistories": _histories(job_phase(job), before.get("runningHistories") or [], now),
    }
    if job_phase(job) in _STOPPED:
        entry["endTimestamp"] = state.get("lastTransitionTime") or now
    return entry


def _histories(phase: str, before: list[Object], now: str) -> list[Object]:
    if before and before[-1]["state"] == phase:
        return before
    ended = [*before[:-1], {**before[-1], "endTimestamp": now}] if before else []
    return [*ended, {"state": phase, "startTimestamp": now}]


def _progress(job: Object) -> Object:
    said = status(job)
    found = {
        "phase": job_phase(job),
        "createTime": metadata(job).get("creationTimestamp"),
        "runningDuration": said.get("runningDuration"),
        "taskStatusCount": said.get("taskStatusCount"),
    }
    return {key: value for key, value in found.items() if value}
