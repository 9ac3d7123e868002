"""Pods with rules about other pods, and the labels that these rules look at."""

from collections import Counter
from collections.abc import Iterable

from app.model.shape import LabelSelector, PodShape


def keys_asked(shapes: Iterable[PodShape]) -> frozenset[str]:
    """The label keys that rules of ``shapes`` about other pods look at."""
    different = {id(shape): shape for shape in shapes}.values()
    return keys_of(selector for shape in different for selector in _selectors(shape))


def keys_of(selectors: Iterable[LabelSelector | None]) -> frozenset[str]:
    """The label keys that ``selectors`` look at; None looks at none."""
    return frozenset(r.key for selector in selectors if selector for r in selector.requirements)


def _selectors(shape: PodShape) -> list[LabelSelector | None]:
    preferred = [term for _, term in shape.preferred_pods]
    terms = [*shape.pod_affinity, *shape.pod_anti_affinity, *preferred]
    return [term.selector for term in terms] + [rule.selector for rule in shape.spread]


class PodsWithRules:
    """Shapes with such rules by holder; the label keys are counted as holders come and go."""

    def __init__(self) -> None:
        self._shapes: dict[str, PodShape] = {}
        self._keys: Counter[str] = Counter()
        self._asked: frozenset[str] | None = None

    def __len__(self) -> int:
        return len(self._shapes)

    def put(self, holder: str, shape: PodShape | None) -> None:
        """``holder`` has these, or none."""
        if shape is None:
            self.drop(holder)
            return
        old = self._shapes.get(holder)
        if old is shape or old == shape:
            return
        self._shapes[holder] = shape
        self._count(shape, 1)
        if old is not None:
            self._count(old, -1)  # last, so that a key of both stays known

    def drop(self, holder: str) -> None:
        """Drop a holder that has no rules, or is gone."""
        shape = self._shapes.pop(holder, None)
        if shape is not None:
            self._count(shape, -1)

    def _count(self, shape: PodShape, sign: int) -> None:
        for key in keys_asked((shape,)):
            self._keys[key] += sign
            if self._keys[key] == max(sign, 0):
                self._asked = None

    def keys(self) -> frozenset[str]:
        """The label keys that they look at."""
        if self._asked is None:
            self._keys = +self._keys
            self._asked = frozenset(self._keys)
        return self._asked
