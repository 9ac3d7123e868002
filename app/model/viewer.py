"""For whom an answer is: an operator, or a tenant who asks about one namespace."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Viewer:
    """``user`` asks; ``namespace`` is the only one whose names it is told, None: it is told all."""

    user: str
    namespace: str | None = None

    @property
    def is_operator(self) -> bool:
        """Whether it may be told everything."""
        return self.namespace is None


NEARBY: Final = Viewer("over loopback")
"""Asks from the machine or the pod of the extender itself."""
EVERYONE: Final = Viewer("without a token")
"""Asks where no token is wanted."""
