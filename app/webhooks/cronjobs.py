"""CronJobs: a schedule and a time zone that mean something (volcano.md §6.6).

The job they make is checked like a job, but only warned about: it is judged again at every start.
"""

import re
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from app.kit import cron
from app.model.names import subdomain_problems
from app.webhooks.job_rules import check_job_spec
from app.webhooks.linting import lint_job, lint_queue_name
from app.webhooks.world import Request, World
from app.wire.findings import Findings, listed
from app.wire.reading import mapping, text
from app.wire.unstructured import Object, is_deleting, name

LONGEST_NAME = 52
"""The minutes of a start are appended, and a job's name has at most 63 characters."""
_SUFFIX = "-00000000"
"""In the place of a start's minutes."""

_ZONE_PART = re.compile(r"[A-Za-z.\-_0-9+]{1,14}")


def check_cron_job(request: Request, world: World) -> Findings:
    """What is wrong with the CronJob."""
    findings = Findings()
    if is_deleting(request.item):
        return findings
    spec = mapping(request.item.get("spec"))
    _check_schedule(text(spec.get("schedule")), findings)
    if spec.get("timeZone") is not None:
        _check_zone(text(spec["timeZone"]), findings)
    if request.operation == "CREATE":
        _check_name(name(request.item), findings)
    _warn_of_job(request.item, world, findings)
    return findings


def _check_schedule(schedule: str, findings: Findings) -> None:
    path = "spec.schedule"
    if not schedule:
        findings.refuse(path, "schedule is required, but got empty")
    elif "TZ" in schedule:
        findings.refuse(
            path,
            "schedule should not contain TZ or CRON_TZ, TZ should only be set in the timeZone "
            "field",
        )
    else:
        try:
            cron.parse(schedule, cron.zone_of(""))
        except cron.ScheduleError as error:
            findings.refuse(path, f"schedule is not a valid cron expression: {error}")


def _check_zone(zone: str, findings: Findings) -> None:
    path = "spec.timeZone"
    if not zone:
        findings.refuse(path, "timeZone must be nil or non-empty string, got empty string")
    elif not all(_is_zone_part(part) for part in zone.split("/")):
        findings.refuse(path, "unknown timeZone")
    elif zone.lower() == "local":
        findings.refuse(
            path,
            "timeZone can't be Local, and must be defined in https://www.iana.org/time-zones",
        )
    elif not _is_zone(zone):
        findings.refuse(path, "invalid timeZone")


def _is_zone_part(part: str) -> bool:
    dots = part in {".", ".."}
    return _ZONE_PART.fullmatch(part) is not None and not dots and not part.startswith("-")


def _is_zone(zone: str) -> bool:
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def _check_name(given: str, findings: Findings) -> None:
    if len(given) > LONGEST_NAME:
        findings.refuse(
            "metadata.name",
            f"cronJob name must be no more than {LONGEST_NAME} characters to accommodate job name "
            "suffix",
        )
    problems = subdomain_problems(given) if given else []
    if problems:
        findings.refuse("metadata.name", f'invalid cronJob name "{given}": {listed(problems)}')


def _warn_of_job(cron_job: Object, world: World, findings: Findings) -> None:
    """``spec.jobTemplate``, under a name as long as those of its jobs."""
    template = mapping(mapping(cron_job.get("spec")).get("jobTemplate"))
    given = name(cron_job)
    called = f"{given[:LONGEST_NAME]}{_SUFFIX}" if given else ""
    job = {"metadata": {"name": called}, "spec": mapping(template.get("spec"))}
    found = Findings()
    check_job_spec(job, world.options, found)
    lint_job(job, world.facts, found)
    lint_queue_name(text(job["spec"].get("queue")), "spec.queue", world.facts, found)
    for each in (*found.errors, *found.warnings):
        findings.warn(f"spec.jobTemplate.{each.path}", each.message)
