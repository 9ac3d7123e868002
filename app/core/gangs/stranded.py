"""Stranded gangs: what annotations ask for when a gang runs below its minimum for too long.

The annotations stand on a vcjob, or on a PodGroup of pods that another operator makes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from app.kit.durations import parse_duration

STRANDED_AFTER: Final = "pumice.sh/stranded-after"
"""How long the gang may run below its minimum."""
STRANDED_ACTION: Final = "pumice.sh/stranded-action"
"""What is done then."""
STRANDED_SINCE: Final = "pumice.sh/stranded-since"
"""On a PodGroup: since when its gang has run below its minimum (RFC 3339)."""


class StrandedAction(StrEnum):
    """What :data:`STRANDED_ACTION` may say."""

    RESTART = "restart"
    """The remaining pods are ended, so that all members are made anew."""
    RELEASE = "release"
    """The gang gives up the room for the members that it lacks."""


class StrandedRule(NamedTuple):
    """The ``action`` that follows when the gang has been stranded for ``after_s`` seconds."""

    action: StrandedAction
    after_s: float


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An annotation that asks for nothing, and what to write in it."""

    annotation: str
    advice: str

    def __str__(self) -> str:
        return f"annotation {self.annotation}: {self.advice}"


def rule_of(annotations: Mapping[str, str]) -> StrandedRule | None:
    """What ``annotations`` ask for; None: nothing, or nothing that can be read."""
    if STRANDED_AFTER not in annotations:
        return None
    try:
        action = StrandedAction(annotations.get(STRANDED_ACTION, StrandedAction.RESTART))
        after_s = parse_duration(annotations[STRANDED_AFTER])
    except ValueError:
        return None
    return StrandedRule(action, after_s) if after_s >= 0 else None


def unreadable(annotations: Mapping[str, str]) -> Unreadable | None:
    """Why ``annotations`` ask for nothing although one of the two is there; None: they do not."""
    if not {STRANDED_AFTER, STRANDED_ACTION} & annotations.keys() or rule_of(annotations):
        return None
    if annotations.get(STRANDED_ACTION, StrandedAction.RESTART) not in set(StrandedAction):
        return Unreadable(STRANDED_ACTION, f"use one of {', '.join(sorted(StrandedAction))}")
    return Unreadable(STRANDED_AFTER, "use a duration such as 1h30m")
