"""What a kind does beyond storing: a value of four functions, all optional.

``complete`` and ``prepare_update`` may change the new document, which is private to the request;
the two ``errors`` functions only look.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from app.sandbox.apiserver.errors import FieldError
from app.sandbox.apiserver.store import Store
from app.wire.documents import Document


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What rules may look at besides the document."""

    store: Store
    now: float


Completion: TypeAlias = Callable[[Document, Surroundings], None]
Transition: TypeAlias = Callable[[Document, Document], None]
CreateErrors: TypeAlias = Callable[[Document], list[FieldError]]
UpdateErrors: TypeAlias = Callable[[Document, Document], list[FieldError]]


def _nothing(*_: object) -> None:
    return None


def _no_errors(*_: object) -> list[FieldError]:
    return []


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """``complete`` runs after admission on create; ``defaults`` before it, on every write."""

    defaults: Callable[[Document], None] = _nothing
    complete: Completion = _nothing
    prepare_update: Transition = _nothing
    create_errors: CreateErrors = _no_errors
    update_errors: UpdateErrors = _no_errors
    counts_generations: bool = True
    keeps_status_on_create: bool = False


PLAIN = Rules()
"""Storage and nothing else."""
