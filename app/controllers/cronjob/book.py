"""The status of a CronJob while it is brought up to date."""

from dataclasses import dataclass, field

from app.controllers.cronjob.made import reference_to
from app.wire import times
from app.wire.errors import DecodeError
from app.wire.unstructured import Object, status, uid


@dataclass(slots=True)
class Book:
    """``active`` are references by UID; times are seconds since the epoch, 0: never."""

    active: dict[str, Object] = field(default_factory=dict)
    started: float = 0.0
    succeeded: float = 0.0

    def enter(self, job: Object) -> None:
        """A job runs."""
        self.active.setdefault(uid(job), reference_to(job))

    def strike(self, job_uid: str) -> bool:
        """Note that the job runs no more; returns whether it did."""
        return self.active.pop(job_uid, None) is not None

    def as_status(self) -> Object:
        """The book as it is written."""
        written: Object = {"active": list(self.active.values())}
        if self.started:
            written["lastScheduleTime"] = times.seconds(self.started)
        if self.succeeded:
            written["lastSuccessfulTime"] = times.seconds(self.succeeded)
        return written


def book_of(cron_job: Object) -> Book:
    """What the status of ``cron_job`` says."""
    said = status(cron_job)
    return Book(
        active={str(each.get("uid") or ""): dict(each) for each in said.get("active") or ()},
        started=moment(said.get("lastScheduleTime")),
        succeeded=moment(said.get("lastSuccessfulTime")),
    )


def moment(text: object) -> float:
    """Seconds since the epoch of a time in an object; 0 when it has none."""
    try:
        return times.parse(str(text or ""))
    except DecodeError:
        return 0.0
