"""Rules about other pods, as the engine sees them.

A rule allows some nodes, a preference scores them; both depend on what is placed so far and say by
:meth:`version` when their last answer still holds. A :class:`RuleSet` is what one shape has to
obey; its combined answers are kept until a version moves.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol

from app.core.placement.arrays import all_of
from app.core.placement.census import Census
from app.core.placement.placed_pods import Identity
from app.core.placement.statics import NodeFacts
from app.model.resources import Mask, Scores
from app.model.shape import PodShape


class Rule(Protocol):
    """A hard rule; ``text`` is what the stock scheduler says of a node that breaks it."""

    @property
    def text(self) -> str:
        """The verdict on nodes that are not allowed."""

    def version(self) -> Hashable:
        """Equal versions mean equal answers."""

    def mask(self) -> Mask:
        """The allowed nodes."""


class Preference(Protocol):
    """A soft rule."""

    def version(self) -> Hashable:
        """Equal versions mean equal answers."""

    def score(self, *, among: Mask) -> Scores | None:
        """Weighted score per node, normalised over ``among``; None: all equal."""


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """The shape that rules are about, as other pods see it, and where to look.

    ``pinned`` is the only row that the task may go to (None: any).
    """

    shape: PodShape
    identity: Identity
    facts: NodeFacts
    census: Census
    pinned: int | None = None


class RuleSet:
    """The rules and preferences of one shape."""

    def __init__(
        self, rules: Sequence[Rule], preferences: Sequence[Preference], *, among: Mask
    ) -> None:
        self.rules = rules
        self._preferences = preferences
        self._among = among
        self._allowed: tuple[Hashable, Mask | None] = (None, None)
        self._liked: tuple[Hashable, Scores | None] = (None, None)

    def allowed(self) -> Mask | None:
        """The nodes that every rule allows; None: there are no rules."""
        if not self.rules:
            return None
        version = tuple(rule.version() for rule in self.rules)
        if self._allowed[0] != version:
            self._allowed = (version, all_of([rule.mask() for rule in self.rules]))
        return self._allowed[1]

    def liked(self) -> Scores | None:
        """The preferences' summed scores; None: all zero."""
        version = tuple(preference.version() for preference in self._preferences)
        if self._liked[0] != version:
            total: Scores | None = None
            for preference in self._preferences:
                score = preference.score(among=self._among)
                if score is not None:
                    total = score if total is None else total + score
            self._liked = (version, total)
        return self._liked[1]
