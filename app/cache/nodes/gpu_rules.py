"""Rules of the configuration that keep pods from sharing a GPU, and the pods that match them."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from app.model.devices import ExclusiveRule
from app.model.pod import Pod
from app.model.shape import PodShape

_SHAPES_KEPT: Final = 1_000


class GpuRules:
    """Marks pods; those that ask for no devices match no rule."""

    def __init__(self) -> None:
        self._rules: tuple[ExclusiveRule, ...] = ()
        self._shapes: dict[PodShape, PodShape] = {}
        """Shapes of pods that match rules: equal ones are one object."""

    def set(self, rules: tuple[ExclusiveRule, ...], known: Iterable[Pod]) -> list[Pod]:
        """Replace the rules; returns those of the known pods that match others than before."""
        if rules == self._rules:
            return []
        self._rules = rules
        return [marked for pod in known if (marked := self.marked(pod)) is not pod]

    def marked(self, pod: Pod) -> Pod:
        """The pod with the rules that it matches; the same object where nothing changes."""
        asked = pod.shape.devices
        if asked is None or not (self._rules or asked.exclusive):
            return pod
        marks = tuple(rule.mark for rule in self._rules if rule.matches(pod.labels))
        if marks == asked.exclusive:
            return pod
        shape = replace(pod.shape, devices=replace(asked, exclusive=marks))
        if len(self._shapes) >= _SHAPES_KEPT:
            self._shapes.clear()  # those in use live on with their pods
        return replace(pod, shape=self._shapes.setdefault(shape, shape))
