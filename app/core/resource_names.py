"""Names of resources that no node has: most are misspelt, of some the nodes come later.

A queue may name any resource. What it says of one that no node has counts for nothing until a node
has it, which an autoscaler may bring, so nothing here refuses anything.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from difflib import get_close_matches
from typing import Final

from app.model.amounts import CPU, MEMORY, PODS

_USUAL: Final = frozenset({CPU, MEMORY, PODS, "ephemeral-storage"})
_OFTEN: Final = frozenset({"nvidia.com/gpu", "amd.com/gpu"})
"""Names that may be meant though no node has them yet."""
_LIKE: Final = 0.8
"""From 0 to 1: ``memroy`` is as like ``memory`` as 0.83."""
_NUMBER: Final = re.compile(r"[0-9]+")
_OF_CLAIMS: Final = "deviceclass/"
_SHARED_BY_PERCENT: Final = "-percentage"


def unknown(names: Iterable[str], there: Collection[str]) -> Iterator[tuple[str, str]]:
    """The ``names`` that no node has, each with the known name that may be meant, or empty.

    ``there`` are the resources that nodes have; without any nothing is known. Devices that pods
    claim, and shares of devices by percent, are counted though no node lists them.
    """
    if not there:
        return
    known = _USUAL.union(there)
    for name in names:
        if name not in known and _OF_CLAIMS not in name and not name.endswith(_SHARED_BY_PERCENT):
            yield name, "" if name in _OFTEN else _nearest(name, known)


def told(name: str, meant: str) -> str:
    """What people are told of a resource that `unknown` found."""
    text = f"no node has {name}, so it counts for nothing until one has"
    return f"{text}; is {meant} meant?" if meant else text


def _nearest(name: str, known: Collection[str]) -> str:
    """The known name that is most like it; of a name without its domain the one with that."""
    bare = [each for each in known if each.rpartition("/")[2] == name]
    # Sizes are no misspellings: nodes with parts of GPUs of another size may come.
    others = [
        each for each in _OFTEN.union(known) if _NUMBER.sub("", each) != _NUMBER.sub("", name)
    ]
    like = get_close_matches(name.lower(), sorted(others), n=1, cutoff=_LIKE)
    return min(bare) if bare else "".join(like)
