"""The columns of ``kubectl get``."""

from collections.abc import Callable
from dataclasses import dataclass

from app.wire.documents import Document


@dataclass(frozen=True, slots=True)
class Column:
    """A column of ``kubectl get``: how it is called and how a cell is made."""

    name: str
    cell: Callable[[Document, float], object]
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0
