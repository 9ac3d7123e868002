"""The parts of the pages that are written from the code.

Such a part stands between two comments, ``<!-- begin NAME: ... -->`` and ``<!-- end NAME -->``. An
example names its file too: ``<!-- begin example jobs/simple.yaml: ... -->``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from tests.clusters.installation import ROOT
from tests.documents import arguments, causes, options

_EXAMPLES: Final = ROOT / "examples"


def _example(file: str) -> Iterator[str]:
    """The manifests of an example."""
    yield f"```yaml\n{(_EXAMPLES / file).read_text().rstrip()}\n```"
    yield f"This is `examples/{file}`."


PARTS: Final[Mapping[str, Callable[[], Iterator[str]]]] = {
    "causes": causes.sections,
    "never": causes.never,
    "plugins": arguments.sections,
    **options.PARTS,
}
"""The name of a part -> its lines; a line that begins a list or a table needs no empty one."""

_ROWS: Final = frozenset("*|")
PAGES: Final = tuple(sorted((ROOT / "docs").glob("*.md")))

_PART: Final = re.compile(
    r"(?P<begin><!-- begin (?P<name>[-a-z]+)(?: (?P<file>\S+))?: .*? -->\n)"
    r".*?(?P<end><!-- end (?P=name) -->)",
    re.DOTALL,
)


def written(text: str) -> str:
    """The page with all its parts written anew."""
    return _PART.sub(lambda part: f"{part['begin']}\n{_text(_lines(part))}\n{part['end']}", text)


def parts_of(text: str) -> list[str]:
    """The names of the parts of a page but for its examples."""
    return [part["name"] for part in _PART.finditer(text) if not part["file"]]


def _lines(part: re.Match[str]) -> Iterable[str]:
    return _example(part["file"]) if part["file"] else PARTS[part["name"]]()


def _text(lines: Iterable[str]) -> str:
    told: list[str] = []
    for line in lines:
        goes_on = any(each.startswith(line[:1]) for each in told[-1:]) and line[:1] in _ROWS
        told += [line] if goes_on or not told else ["", line]
    return "\n".join(told) + "\n"


def main() -> None:
    """Write the parts of all pages."""
    for page in PAGES:
        page.write_text(written(page.read_text()))
