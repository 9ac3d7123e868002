"""Many jobs at once, each led through its own scene.

A scene brings its job somewhere, acts, and goes on until the job is as it should be. What is
compared is the state at the end of the whole play: a job that moves on by itself is caught too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.clusters.nodes import in_parallel
from tests.scenarios.jobs.ground import Ground
from tests.scenarios.jobs.record import Life, Record

_PATIENCE_S = 250.0
"""A guess, not a promise: a hundred jobs at once are slow where others use the machine too."""


@dataclass(frozen=True, slots=True)
class Then:
    """What an act leads to.

    `phases` that follow, pods `kept` (the same ones as before), what the status counts, and whether
    the PodGroup is gone, the same or a new one.
    """

    phases: Sequence[str]
    kept: Sequence[str]
    retries: int = 0
    version: int = 0
    group: str = "gone"


@dataclass(slots=True)
class Actor:
    """A job on the ground, and what was noted when its scene acted."""

    ground: Ground
    life: Life
    command: str = ""
    """The UID of the last Command."""
    acted: float = 0.0
    _pods: Mapping[str, str] = field(default_factory=dict)
    _group: str = ""
    _past: int = 0

    def orders(self, action: str) -> None:
        """Create a Command."""
        self.command = self.ground.command(self.life.job, action)

    @property
    def has_executed(self) -> bool:
        """Whether the last Command is over."""
        return not self.command or self.life.has_executed(self.command)

    def pod(self, name: str) -> str:
        """The whole name of a pod."""
        return f"{self.life.name}-{name}"

    def bury(self) -> None:
        """Let go all pods that are kept from going."""
        for name in self.life.leaving:
            self.ground.bury(self.pod(name))

    def take_note(self) -> None:
        """Remember how everything is."""
        self._pods, self._group = self.life.staying, self.life.group_uid
        self._past = len(self.life.phases)
        self.acted = time.monotonic()

    @property
    def outcome(self) -> Then:
        """What has come of it since."""
        now, status = self.life.staying, self.life.status
        group = self.life.group_uid
        return Then(
            self.life.phases[self._past :],
            sorted(name for name, uid in self._pods.items() if now.get(name) == uid),
            retries=status.get("retryCount", 0),
            version=status.get("version", 0),
            group="gone" if not group else "same" if group == self._group else "new",
        )

    @property
    def rests(self) -> bool:
        """Whether nothing is on its way, and the last Command is over."""
        return self.has_executed and not self.life.leaving


@dataclass(frozen=True, slots=True)
class Step:
    """What is done to a job as soon as something holds."""

    when: Callable[[Actor], bool]
    do: Callable[[Actor], object]
    acts: bool = False
    """Whether this is what the scene is about."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A job from its submission to its end."""

    spec: Mapping[str, Any]
    steps: Sequence[Step]
    then: Then
    until: Callable[[Actor], bool] = lambda _: True
    """What must hold besides."""
    without_room: bool = False
    """Whether its queue has none."""
    may_wait: bool = False
    """Whether the job may be pending before it goes on."""

    def outcome(self, actor: Actor) -> Then:
        """What has come of the act."""
        found = actor.outcome
        waited = self.may_wait and found.phases[:1] == ["Pending"]
        return replace(found, phases=found.phases[1:]) if waited else found

    def is_over(self, actor: Actor) -> bool:
        """Whether all is as it should be."""
        return actor.rests and self.outcome(actor) == self.then and self.until(actor)


def play(ground: Ground, scenes: Mapping[str, Scene]) -> Mapping[str, Actor]:
    """Play all scenes by the names of their jobs; those that do not end are left as they are."""
    deadline = time.monotonic() + _PATIENCE_S
    actors: dict[str, Actor] = {}
    left = {name: list(scene.steps) for name, scene in scenes.items()}
    waiting = set(scenes)
    with Record(ground) as record:
        in_parallel(lambda name: _submit(ground, name, scenes[name]), scenes)
        while waiting and time.monotonic() < deadline:
            life = record.follow(timeout_s=deadline - time.monotonic())
            if life is None or life.name not in scenes:
                continue
            actor = actors.setdefault(life.name, Actor(ground, life))
            _go_on(actor, left[life.name])
            over = not left[life.name] and scenes[life.name].is_over(actor)
            (waiting.discard if over else waiting.add)(life.name)
    return actors


def _submit(ground: Ground, name: str, scene: Scene) -> None:
    queue = {"queue": ground.full} if scene.without_room else {}
    ground.submit(name, {**scene.spec, **queue})


def _go_on(actor: Actor, steps: list[Step]) -> None:
    while steps and actor.life.job and steps[0].when(actor):
        step = steps.pop(0)
        if step.acts:
            actor.take_note()
        step.do(actor)


def is_in(phase: str, **counts: int) -> Callable[[Actor], bool]:
    """Whether a job is in the phase and its status counts these pods, and no others."""
    return lambda actor: actor.life.phase == phase and actor.life.counts(**counts)


def has_going(count: int) -> Callable[[Actor], bool]:
    """Whether the last Command is over and so many pods are going."""
    return lambda actor: actor.has_executed and len(actor.life.leaving) == count


def orders(action: str) -> Callable[[Actor], object]:
    """Create a Command."""
    return lambda actor: actor.orders(action)


def evicts(pod: str) -> Callable[[Actor], object]:
    """Delete a pod."""
    return lambda actor: actor.ground.evict(actor.pod(pod))
