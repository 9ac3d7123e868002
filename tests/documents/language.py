"""The sentences of the documents, without manifests, commands, addresses and code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_BLOCK: Final = re.compile(r"^ *```.*?^ *```$|<!--.*?-->", re.DOTALL | re.M)
_CODE: Final = re.compile(r"`[^`]*`")
_ADDRESS: Final = re.compile(r"\]\([^)]*\)")
_BEGINS: Final = re.compile(r"^\s*([*-]|\d+\.|#+) ")
_END: Final = re.compile(r"(?<=[.!?:])[*)]*\s+(?=[A-Z*`(\[])")
_WORD: Final = re.compile(r"\w[\w'/-]*")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, a heading or the cell of a table."""

    page: str
    text: str

    @property
    def words(self) -> int:
        """How many words there are; code and a number are one each."""
        return len(_WORD.findall(self.text))


def sentences(path: Path) -> list[Sentence]:
    """All sentences of a document, in order."""
    text = _BLOCK.sub("\n", path.read_text())
    text = _ADDRESS.sub("]", _CODE.sub("CODE", text))
    found = [each.strip() for part in _parts(text) for each in _END.split(part)]
    return [Sentence(path.name, each) for each in found if _WORD.search(each)]


def _parts(text: str) -> Iterator[str]:
    """Paragraphs, items, headings and cells."""
    current = ""
    for line in [*text.splitlines(), ""]:
        row = line.strip().startswith("|")
        if row or not line.strip() or _BEGINS.match(line):
            yield current
            current = "" if row else _BEGINS.sub("", line)
        else:
            current = f"{current} {line.strip()}"
        if row:
            yield from line.strip().strip("|").split("|")
    yield current
