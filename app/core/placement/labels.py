"""Label selectors over many objects at once.

A :class:`LabelIndex` turns each label key that is asked for into a column of integer codes, one per
object, the first time it is asked for; a requirement is then decided once per distinct *value* and
looked up per object. The code of "label missing" is the number of values, so that it indexes the
last entry of any per-value array.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.core.placement.arrays import Counts
from app.model.resources import Mask, Rows, Scores
from app.model.shape import Operator, Requirement


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """One label key: per object the code of its value, ``missing`` where there is none."""

    codes: Rows
    values: Mapping[str, int]

    @classmethod
    def of(cls, found: Sequence[str | None]) -> "Column":
        """The column of objects whose values are ``found`` (None: missing)."""
        values: dict[str, int] = {}
        for value in found:
            if value is not None and value not in values:
                values[value] = len(values)
        missing = len(values)
        codes = np.fromiter(
            (missing if value is None else values[value] for value in found),
            dtype=np.intp,
            count=len(found),
        )
        return cls(codes, values)

    @property
    def missing(self) -> int:
        """The code of objects without the label."""
        return len(self.values)

    @property
    def present(self) -> Mask:
        """The objects that have the label."""
        mask: Mask = self.codes != self.missing
        return mask

    def sums(self, amounts: Counts) -> Scores:
        """``amounts`` (one per object) added up per value; the last entry is for "missing"."""
        totals = np.bincount(self.codes, weights=amounts, minlength=self.missing + 1)
        return totals.astype(np.float64, copy=False)

    def matching(self, requirement: Requirement) -> Mask:
        """The objects whose value satisfies ``requirement``."""
        return satisfying(self.values, requirement).take(self.codes)


def satisfying(values: Mapping[str, int], requirement: Requirement) -> Mask:
    """Which of ``values``, by code, satisfy ``requirement``; the last entry is for "missing"."""
    per_value = np.zeros(len(values) + 1, dtype=np.bool_)
    match requirement.operator:
        case Operator.IN | Operator.NOT_IN:
            per_value[[values[v] for v in requirement.values if v in values]] = True
        case Operator.EXISTS | Operator.DOES_NOT_EXIST:
            per_value[:-1] = True
        case Operator.GREATER | Operator.LESS:
            for value, code in values.items():
                per_value[code] = requirement.matches({requirement.key: value})
    if requirement.operator in (Operator.NOT_IN, Operator.DOES_NOT_EXIST):
        np.logical_not(per_value, out=per_value)
    return per_value


class LabelIndex:
    """Selector matching over a fixed sequence of label sets."""

    def __init__(self, labels: Sequence[Mapping[str, str]]) -> None:
        self._labels = labels
        self._columns: dict[str, Column] = {}

    def __len__(self) -> int:
        return len(self._labels)

    def column(self, key: str) -> Column:
        """The column of ``key``, read from the labels on first use."""
        column = self._columns.get(key)
        if column is None:
            column = Column.of([labels.get(key) for labels in self._labels])
            self._columns[key] = column
        return column

    def selected(self, requirements: Sequence[Requirement]) -> Mask:
        """The objects that satisfy all ``requirements``."""
        mask = np.ones(len(self._labels), dtype=np.bool_)
        for requirement in requirements:
            mask &= self.column(requirement.key).matching(requirement)
        return mask
