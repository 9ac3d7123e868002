"""What a tenant is told: nothing that names an object of another namespace.

Answers, conditions and events name pods and groups of other namespaces as ``namespace/name``. In
what a tenant reads, another namespace stands in the place of each such name; numbers stay.
"""

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from app.cache.cluster import ClusterCache
from app.core.texts import describe
from app.model.reason import Refusal

HIDDEN: Final = "another namespace"
"""Stands for the name of an object that the reader may not know."""
HIDDEN_JOB: Final = f"a job of {HIDDEN}"
"""Stands for the name of a job in a sentence that tells when jobs end."""

_NAME: Final = re.compile(
    r"(?<![\w./%~-])"  # not inside of a longer name, such as a label's key
    r"([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)"
    r"/(?:[\w./%~-]*[\w/%~-])?"  # some are escaped, and have capitals and signs
    r"(?:(?<=/pod):\w(?:[\w.-]*\w)?)?"  # the UID in the key of a pod that stands alone
)
_COUNT: Final = re.compile(r"[0-9]+/[0-9]+ nodes\b")


def hidden(text: str, *, own: str, namespaces: Container[str], instead: str = HIDDEN) -> str:
    """The text without names of objects of ``namespaces`` other than ``own``."""
    if "/" not in text:
        return text

    def told(found: re.Match[str]) -> str:
        namespace = found[1]
        is_count = _COUNT.match(text, found.start()) is not None
        is_told = is_count or namespace == own or namespace not in namespaces
        return found[0] if is_told else instead

    return _NAME.sub(told, text)


def hidden_in(value: Any, *, own: str, namespaces: Container[str]) -> Any:
    """A value of dataclasses, mappings and lists as plain data, each text of it :func:`hidden`.

    Entries of a mapping whose keys become equal are counted together if they are numbers.
    """
    plain = msgspec.to_builtins(value, enc_hook=str)
    return _hidden_in(plain, own, namespaces)


def _hidden_in(value: Any, own: str, namespaces: Container[str]) -> Any:
    if isinstance(value, str):
        return hidden(value, own=own, namespaces=namespaces)
    if isinstance(value, list | tuple):
        return [_hidden_in(each, own, namespaces) for each in value]
    if isinstance(value, Mapping):
        found: dict[str, Any] = {}
        for name, each in value.items():
            key = hidden(name, own=own, namespaces=namespaces)
            told = _hidden_in(each, own, namespaces)
            is_sum = isinstance(told, int | float) and key in found
            found[key] = found[key] + told if is_sum else told
        return found
    return value


@dataclass(frozen=True, slots=True)
class Wording:
    """Reasons in the words that stand in a namespace's objects; ``hides``: names of others go."""

    cache: ClusterCache
    hides: bool

    def describe(self, refusal: Refusal, *, namespace: str) -> str:
        """The refusal in a sentence, for readers of ``namespace``."""
        return self.text(describe(refusal), namespace=namespace)

    def text(self, text: str, *, namespace: str) -> str:
        """The text for readers of ``namespace``; of no namespace: for operators."""
        if not self.hides or not namespace:
            return text
        return hidden(text, own=namespace, namespaces=self.cache.namespaces_heard_of)
