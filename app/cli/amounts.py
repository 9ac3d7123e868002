"""Amounts for people who compare them at a glance."""

from app.kit.quantities import amount_text

_WHOLE_CORES = 100
"""So many of them and more are shown without a fraction."""


def rounded(resource: str, amount: int) -> str:
    """``amount`` base units in three digits or so: cores of cpu, bytes with a binary unit."""
    if resource != "cpu" or amount % 1000 == 0:
        return amount_text(resource, amount)
    cores = amount / 1000
    return f"{cores:.0f}" if abs(cores) >= _WHOLE_CORES else f"{cores:.3g}"
