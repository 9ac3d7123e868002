"""How much each of many holders holds, and which of them began first."""

from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Holdings(Generic[T]):
    """Amounts by holder, ``most`` in all; a holder's place in the order is when it began."""

    def __init__(self, *, most: int) -> None:
        self._most = most
        self._amounts: dict[T, int] = {}
        self._sum = 0

    def hold(self, holder: T, amount: int) -> None:
        """Let ``holder`` hold that much from now on; 0: it has let go."""
        before = self._amounts.pop(holder, 0) if amount == 0 else self._amounts.get(holder, 0)
        if amount:
            self._amounts[holder] = amount
        self._sum += amount - before

    @property
    def is_too_much(self) -> bool:
        """Whether all hold more than they may together."""
        return self._sum > self._most

    def __iter__(self) -> Iterator[T]:
        """The holders, those first that began first."""
        return iter(tuple(self._amounts))
