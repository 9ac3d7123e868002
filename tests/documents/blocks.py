"""The blocks that the documents show: manifests, commands, what is printed, and pictures."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.clusters.installation import ROOT
from tests.documents.pages import PAGES

TEXTS: Final = (ROOT / "README.md", ROOT / "examples" / "README.md", *PAGES)
LANGUAGES: Final = frozenset({"yaml", "json", "sh", "console", "text"})
"""Values; commands; a command with what it prints; what is printed, and pictures."""

_FENCED: Final = re.compile(r"^ *```(?P<language>\S*)\n(?P<text>.*?)^ *```$", re.DOTALL | re.M)


@dataclass(frozen=True, slots=True)
class Block:
    """A block of the document at ``path``, the first one being number 1."""

    path: Path
    number: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}-{self.number}"


def blocks(*languages: str) -> list[Block]:
    """All blocks of those languages, or all."""
    return [block for block in _all() if not languages or block.language in languages]


def _all() -> Iterator[Block]:
    for path in TEXTS:
        for number, found in enumerate(_FENCED.finditer(path.read_text()), start=1):
            yield Block(path, number, found["language"], textwrap.dedent(found["text"]))
