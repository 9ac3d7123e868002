"""A piece: some tests with their share of the large counts, as one run of pytest."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

TIMES = 100
"""So many times as hard as `make test`."""
SEEDS = 10**6
"""Seeds are smaller."""
_ON_ALL_CORES = ("--numprocesses=auto", "--maxprocesses=4", "--dist=worksteal")


@dataclass(frozen=True, slots=True)
class Piece:
    """What one run of pytest tries: `make proofs PIECE=name`."""

    name: str
    paths: tuple[str, ...]
    marked: str
    """Which tests of the paths, as pytest's `-m`."""
    variables: Mapping[str, str]
    """The counts, as `tests/scale.py` reads them."""
    options: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    """Paths below those of the piece that are not its own."""
    share: int = 0
    """Shares of the same tests roll different dice."""

    def covers(self, path: str) -> bool:
        """Whether the tests of this file are its own."""
        return _is_below(path, self.paths) and not _is_below(path, self.without)

    def dice(self, seed: int) -> int:
        return seed + self.share * SEEDS

    def command(self, seed: int) -> list[str]:
        """The run of pytest, from the root of the project."""
        return [
            *(sys.executable, "-m", "pytest", "-q", f"-m={self.marked}", *self.options),
            *(f"--ignore={path}" for path in self.without),
            *(f"--hypothesis-seed={self.dice(seed)}", *self.paths),
        ]

    def environment(self, seed: int) -> dict[str, str]:
        """What this run has beside the environment of its caller."""
        return {**self.variables, "PUMICE_SEED": str(self.dice(seed))}


def properties(
    name: str, *paths: str, shares: int = 1, without: tuple[str, ...] = ()
) -> Iterator[Piece]:
    """The Hypothesis tests of the paths, with a hundred times their examples in so many shares."""
    for share, full_name in _shares(name, shares):
        yield Piece(
            full_name,
            paths,
            marked="hypothesis and not real",
            variables={"PUMICE_SCALE": f"{TIMES / shares:g}"},
            options=_ON_ALL_CORES,
            without=without,
            share=share,
        )


def faults(name: str, *paths: str, rounds: int, shares: int = 1) -> Iterator[Piece]:
    """The random rounds of the paths on the real control plane, `rounds` in each share."""
    for share, full_name in _shares(name, shares):
        yield Piece(
            full_name,
            paths,
            marked="real",
            variables={"PUMICE_ROUNDS": str(rounds)},
            share=share,
        )


def _shares(name: str, count: int) -> Sequence[tuple[int, str]]:
    return [(i, f"{name}-{i + 1}" if count > 1 else name) for i in range(count)]


def _is_below(path: str, folders: Sequence[str]) -> bool:
    return any(path == each or path.startswith(f"{each}/") for each in folders)
