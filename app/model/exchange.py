"""With which others a place may be exchanged.

kube-scheduler may offer a pod a sample of the nodes without the planned one. Then the pod takes the
place of an equal pod, or free room on an offered node, and the plan stays as good as it was. That
is right only while every such place is as good, which the planner knows: so each place has a class.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Exchange:
    """The class of a place: equal pods may exchange places whose classes are equal.

    ``inside`` names what a place must not be taken out of, such as a gang, a domain or a node
    group; None: the place may be exchanged with no other. Free room has no name, so only a place
    of the class :data:`ANY_EQUAL` may be exchanged for it.
    """

    inside: frozenset[str] | None = frozenset()

    @property
    def is_open(self) -> bool:
        """Whether the place of every equal pod will do, and so will free room."""
        return self.inside == frozenset()

    def within(self, name: str) -> "Exchange":
        """The class of this one's places that are not taken out of ``name``."""
        return self if self.inside is None else Exchange(self.inside | {name})

    def narrowed(self, other: "Exchange") -> "Exchange":
        """The class of a place that has to be of both."""
        if other.is_open or self.inside is None:
            return self
        if self.is_open or other.inside is None:
            return other
        return Exchange(self.inside | other.inside)

    def allows(self, other: "Exchange") -> bool:
        """Whether a place of this class may be exchanged for the ``other`` of an equal pod."""
        return self.inside is not None and self.inside == other.inside


ANY_EQUAL: Final = Exchange()
"""Among all equal pods, and for free room."""

NO_EXCHANGE: Final = Exchange(None)
"""With no other place."""
