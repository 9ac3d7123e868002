"""Which names a member's selector means.

Labels are looked up: only what is asked by other operators than ``In`` is tried name by name. What
a pattern matches is worked out once and then kept up to date: when one of 5,000 nodes comes, it is
held against the patterns there are, and nothing else is.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from app.kit.patterns import Matches, matcher
from app.model.shape import Operator, Requirement
from app.model.topology import HyperNodeMember

Labels = Mapping[str, str]


@dataclass(slots=True)
class _Pattern:
    matches: Matches
    names: set[str]


class Names:
    """Names with their labels."""

    def __init__(self) -> None:
        self._labels: dict[str, Labels] = {}
        self._labelled: dict[tuple[str, str], set[str]] = {}
        self._patterns: dict[str, _Pattern] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._labels

    def put(self, name: str, labels: Labels) -> bool:
        """Add a name, or change its labels; whether that was new."""
        before = self._labels.get(name)
        if before == labels:
            return False
        if before is None:
            for pattern in self._patterns.values():
                if pattern.matches(name):
                    pattern.names.add(name)
        else:
            self._unlabel(name, before)
        self._labels[name] = labels
        for label in labels.items():
            self._labelled.setdefault(label, set()).add(name)
        return True

    def drop(self, name: str) -> bool:
        """Remove a name; whether it was there."""
        before = self._labels.pop(name, None)
        if before is None:
            return False
        self._unlabel(name, before)
        for pattern in self._patterns.values():
            pattern.names.discard(name)
        return True

    def selected(self, member: HyperNodeMember) -> Set[str]:
        """The names that ``member`` selects; none when its selector means nothing."""
        if member.problem:
            return frozenset()
        if member.name is not None:
            return {member.name} if member.name in self._labels else frozenset()
        if member.pattern is not None:
            return self._matching(member.pattern)
        return self._with_labels(member.labels.requirements if member.labels else ())

    def _matching(self, text: str) -> Set[str]:
        """Matches anywhere in the name, as Go's regular expressions do."""
        if text not in self._patterns:
            matches = matcher(text)
            self._patterns[text] = _Pattern(matches, set(filter(matches, self._labels)))
        return self._patterns[text].names

    def _with_labels(self, requirements: Sequence[Requirement]) -> Set[str]:
        found: Set[str] = self._labels.keys()
        for each in requirements:
            if each.operator is Operator.IN:
                with_one = (self._labelled.get((each.key, value), ()) for value in each.values)
                found = found & set().union(*with_one)
        others = [each for each in requirements if each.operator is not Operator.IN]
        return {name for name in found if all(r.matches(self._labels[name]) for r in others)}

    def _unlabel(self, name: str, labels: Labels) -> None:
        for label in labels.items():
            names = self._labelled[label]
            names.discard(name)
            if not names:
                del self._labelled[label]
