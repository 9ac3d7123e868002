"""What is allowed, and will not do what the user of a plugin expects.

Admission answers with these as warnings; none of them keeps a job from running.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from app.jobplugins.rules.arguments import Arguments, Ray, Svc
from app.jobplugins.rules.job_tasks import JobTasks
from app.jobplugins.rules.problems import Problem, path_of

CONFIG_MAP_BYTES: Final = 1 << 20
"""The most that the API server stores in a ConfigMap."""

VARIABLE_BYTES: Final = 128 << 10
"""The longest variable that Linux starts a process with (MAX_ARG_STRLEN)."""


def advice(arguments: Mapping[str, Arguments], job_tasks: JobTasks) -> tuple[Problem, ...]:
    """Warnings about the plugins of a job."""
    return tuple(
        Problem(path_of(name), what, remedy)
        for name, given in arguments.items()
        for what, remedy in (*_roles(given, job_tasks), *_special(given, job_tasks))
    )


def _special(given: Arguments, job_tasks: JobTasks) -> Iterator[tuple[str, str]]:
    if isinstance(given, Svc):
        yield from _hosts(given, job_tasks)
    elif isinstance(given, Ray):
        yield from _container(given.head, given.head_container, "headContainer", job_tasks)
        yield from _container(given.worker, given.worker_container, "workerContainer", job_tasks)


def _roles(given: Arguments, job_tasks: JobTasks) -> Iterator[tuple[str, str]]:
    roles = given.roles
    if roles is None or any(job_tasks.task(name) for name in roles.tasks.values()):
        return
    names = ", ".join(sorted(set(roles.tasks.values())))
    flags = " or ".join(f"--{flag}=TASK" for flag in roles.tasks)
    yield f"there is no task {names}: {roles.otherwise}", f"write {flags}"


def _container(task: str, name: str, flag: str, job_tasks: JobTasks) -> Iterator[tuple[str, str]]:
    row = job_tasks.task(task)
    if row is not None and name not in row.containers:
        what = f"task {task} has no container {name}: Ray is not started in it"
        yield what, f"write --{flag}=CONTAINER"


def _hosts(given: Svc, job_tasks: JobTasks) -> Iterator[tuple[str, str]]:
    sizes = {
        task.name: sum(len(host) + 1 for host in job_tasks.hosts(task)) for task in job_tasks.tasks
    }
    # Each list is stored twice: a file and a variable.
    total = 2 * sum(sizes.values())
    if total > CONFIG_MAP_BYTES:
        what = f"the lists of hosts take {total} bytes, a ConfigMap holds {CONFIG_MAP_BYTES}"
        yield what, "shorten the names of the job and its tasks or split the job"
    if not given.inject_hosts_env:
        return
    for name, size in sizes.items():
        if size > VARIABLE_BYTES:
            what = f"the hosts of task {name} take {size} bytes, a variable holds {VARIABLE_BYTES}"
            yield f"{what}: containers will not start", "add --inject-hosts-env=false"
