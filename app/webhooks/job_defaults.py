"""What a vcjob leaves out, filled in (volcano.md §6.1)."""

from collections.abc import Mapping
from typing import Any

from app.jobplugins.rules import catalogue
from app.model.ids import DEFAULT_QUEUE
from app.webhooks.job_following import followed
from app.webhooks.minimums import default_least, default_of_job, filled_in, noted, unsaid
from app.webhooks.world import Request, World
from app.wire.host_network import HOST_DNS_POLICY, needs_dns_policy
from app.wire.reading import mapping
from app.wire.unstructured import Object

MAX_RETRY = 3


def default_job(request: Request, world: World) -> Object:
    """The new job with every default written out, a changed one with its minima brought along."""
    job = request.item
    if not isinstance(job.get("spec"), dict):
        return job
    if request.operation == "UPDATE":
        return followed(request)
    spec: Object = dict(job["spec"])
    spec["queue"] = spec.get("queue") or DEFAULT_QUEUE
    spec["schedulerName"] = spec.get("schedulerName") or world.options.schedulers[0]
    spec["maxRetry"] = spec.get("maxRetry") or MAX_RETRY
    if isinstance(spec.get("tasks"), list):
        spec["tasks"] = [task_in_full(index, task) for index, task in enumerate(spec["tasks"])]
    spec["minAvailable"] = spec.get("minAvailable") or default_of_job(spec)
    if isinstance(spec.get("plugins"), dict):
        spec["plugins"] = _plugins(spec["plugins"])
    return noted({**job, "spec": spec}, filled_in(job), unsaid(job["spec"]))


def task_in_full(index: int, task: Any) -> Any:
    """The task in that place with every default written out."""
    if not isinstance(task, dict):
        return task
    name = task.get("name") or f"default{index}"
    filled = {**task, "name": name, "maxRetry": task.get("maxRetry") or MAX_RETRY}
    if task.get("minAvailable") is None:
        filled["minAvailable"] = default_least(task)
    template = mapping(task.get("template"))
    pod = mapping(template.get("spec"))
    if needs_dns_policy(pod):
        filled["template"] = {**template, "spec": {**pod, "dnsPolicy": HOST_DNS_POLICY}}
    return filled


def _plugins(plugins: Mapping[str, Any]) -> Object:
    """``plugins`` as written, and those that they do not work without."""
    written = {name: [] if flags is None else flags for name, flags in plugins.items()}
    return {**{needed: [] for needed in catalogue.completed(dict.fromkeys(plugins))}, **written}
