"""Which job plugins there are, and what a job asks of them.

Plugins run in the order of :data:`KNOWN`: those that others build on first (``hcclrank`` takes the
``RANK`` that ``pytorch`` has set). What a plugin cannot do without is switched on with it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from app.jobplugins.rules import arguments as plugin_arguments
from app.jobplugins.rules import flags
from app.jobplugins.rules.arguments import (
    Arguments,
    Env,
    Hcclrank,
    Jax,
    Mpi,
    Pytorch,
    Ray,
    Ssh,
    Svc,
    Tensorflow,
)
from app.jobplugins.rules.flags import Fault
from app.jobplugins.rules.problems import Problem, path_of

KNOWN: Final[Mapping[str, type[Arguments]]] = {
    "env": Env,
    "svc": Svc,
    "ssh": Ssh,
    "tensorflow": Tensorflow,
    "pytorch": Pytorch,
    "mpi": Mpi,
    "ray": Ray,
    "jax": Jax,
    "hcclrank": Hcclrank,
}

NEEDS: Final[Mapping[str, tuple[str, ...]]] = {
    "tensorflow": ("svc",),
    "pytorch": ("svc",),
    "mpi": ("svc", "ssh"),
    "ray": ("svc",),
    "jax": ("svc",),
}

Given = Mapping[str, Sequence[str] | None]
"""``spec.plugins``."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a job asks for: arguments by plugin in the order they run, and what is wrong.

    ``ignored``: what no plugin knows, and the job runs without.
    """

    arguments: Mapping[str, Arguments]
    problems: tuple[Problem, ...]
    ignored: tuple[Problem, ...]


def completed(given: Given) -> dict[str, list[str]]:
    """``given`` with the plugins it needs, to be stored in the job."""
    whole = {name: list(arguments or ()) for name, arguments in given.items()}
    for name in given:
        for needed in NEEDS.get(name, ()):
            whole.setdefault(needed, [])
    return whole


def read(given: Given, *, tasks: Collection[str]) -> Reading:
    """Read ``spec.plugins`` of a job that has ``tasks``; needed plugins are added."""
    whole = completed(given)
    problems = [_unknown(name) for name in sorted(whole) if name not in KNOWN]
    ignored: list[Problem] = []
    found: dict[str, Arguments] = {}
    for name, plugin in KNOWN.items():
        if name not in whole:
            continue
        parsed = flags.parse(plugin_arguments.kinds(plugin), [str(text) for text in whole[name]])
        fields = plugin_arguments.field_names(plugin)
        arguments = plugin(**{fields[flag]: value for flag, value in parsed.values.items()})
        found[name] = arguments
        problems += _about(name, (*parsed.faults, *arguments.faults()))
        problems += _missing_tasks(name, arguments, tasks)
        ignored += _about(name, parsed.ignored)
    return Reading(found, tuple(problems), tuple(ignored))


def _about(plugin: str, faults: Iterable[Fault]) -> Iterator[Problem]:
    for fault in faults:
        yield Problem(path_of(plugin), fault.what, fault.remedy)


def _unknown(name: str) -> Problem:
    known = ", ".join(sorted(KNOWN))
    return Problem(
        path_of(name), f"unable to find job plugin: {name}", f"the known plugins are {known}"
    )


def _missing_tasks(name: str, arguments: Arguments, tasks: Collection[str]) -> Iterator[Problem]:
    for role, task in arguments.required:
        if task not in tasks:
            what = f"The specified {name} {role} task was not found"
            yield Problem(path_of(name), what, f"name a task {task!r} or write --{role}=TASK")
