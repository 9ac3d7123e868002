"""What is to be answered now, and what later.

Of what happened and is due, the first is answered; the rest is looked at again after that, and what
no object tells any more by then (a pod that is gone was evicted) is remembered until then. A delay
is counted from when its cause began, so it goes on where it was when the controller starts anew.
"""

from dataclasses import dataclass

from app.controllers.job import events, machine, policies
from app.controllers.job.machine import Refuse
from app.controllers.job.memory import Memory
from app.controllers.job.policies import Decision, Happening
from app.controllers.job.reader import Seen
from app.controllers.job.view import Job
from app.controllers.job.vocabulary import Action


@dataclass(frozen=True, slots=True)
class Due:
    """An action, and what it is about."""

    action: Action
    about: Happening


@dataclass(frozen=True, slots=True)
class Delayed:
    """An action that will follow, as people are told."""

    action: Action
    timeout_s: float


@dataclass(frozen=True, slots=True)
class Answer:
    """``due`` now, the next one in ``wait_s``; ``announced``: delays that are news.

    That may be after their time, when the controller did not look before. ``refused``: what
    policies ask for in vain, as people are told, where that is news.
    """

    due: Due | None
    wait_s: float | None
    announced: tuple[Delayed, ...]
    refused: tuple[str, ...]


def find(seen: Seen, memory: Memory, *, now: float) -> Answer:
    """The answer to all that has happened."""
    for member in seen.members:
        memory.sees(member)
    _remember(seen, memory, now=now)
    happened = events.happenings(
        seen.job, seen.members, seen.group, evicted=memory.evicted_at, failed=memory.failed
    )
    memory.forget_but(happened)
    announced: list[Delayed] = []
    problem = seen.job.stranded_problem
    refused = [problem] if problem and memory.refuses(problem) else []
    waits: list[float] = []
    due: Due | None = None
    for about in happened:
        decision = policies.decide(seen.job, about)
        why = _refusal(seen.job, about, decision)
        if why and memory.refuses(why):
            refused.append(why)
        if why or decision is None:
            continue
        since = memory.since(about, now)
        left = since + (decision.timeout_s or 0.0) - now
        if due is None and decision.timeout_s and memory.announces(about, since):
            announced.append(Delayed(decision.action, decision.timeout_s))
        if due is None and (decision.timeout_s is None or left <= 0):
            due = Due(decision.action, about)
            continue
        # The status that begins the first action no longer counts what is missing by then.
        memory.waits(about, decision, since)
        waits.append(left)
    wait_s = None if due is not None else min(waits, default=None)
    return Answer(due, wait_s, tuple(announced), tuple(refused))


def _refusal(job: Job, about: Happening, decision: Decision | None) -> str:
    """Why a policy's wish comes to nothing; empty when it does not, or there is none."""
    if decision is None:
        return policies.refusal(job, about)
    step = machine.step(job, decision.action)
    if not isinstance(step, Refuse):
        return ""
    return f"{decision.action.value} on {about.of_task} is not executed: the job {step.why}"


def _remember(seen: Seen, memory: Memory, *, now: float) -> None:
    """Remember pods that went before their failure was seen: only the memory tells of it."""
    for about in events.of_pods(seen.job, memory.fallen()):
        decision = policies.decide(seen.job, about)
        if decision is not None:
            memory.waits(about, decision, memory.since(about, now))
