"""Readers of answers: an operator, or a tenant that asks about one namespace."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Viewer:
    """``user`` is told the names of objects of ``namespace`` only, None: of all."""

    user: str
    namespace: str | None = None

    @property
    def is_operator(self) -> bool:
        """Whether the reader may be told everything."""
        return self.namespace is None


NEARBY: Final = Viewer("over loopback")
"""Asks from the machine or the pod of the extender itself."""
EVERYONE: Final = Viewer("without a token")
"""Asks where no token is wanted."""
