"""Following a ledger's journal, which grows at its end and is cut back by roll-backs.

Entries are created afresh by every placement, so an entry that still stands at its position proves
that nothing below it has changed.
"""

from collections.abc import Sequence

from app.core.ledger import Entry


class JournalReader:
    """Tells what came and went since the last time it was asked."""

    __slots__ = ("_journal", "_seen")

    def __init__(self, journal: Sequence[Entry]) -> None:
        self._journal = journal
        self._seen: list[Entry] = []

    def changes(self) -> list[tuple[Entry, int]]:
        """Entries with -1 (undone) or +1 (new) since the last call, in the order of events."""
        journal, seen = self._journal, self._seen
        if len(seen) == len(journal) and (not seen or seen[-1] is journal[-1]):
            return []
        out: list[tuple[Entry, int]] = []
        while seen and (len(seen) > len(journal) or seen[-1] is not journal[len(seen) - 1]):
            out.append((seen.pop(), -1))
        for entry in journal[len(seen) :]:
            out.append((entry, 1))
            seen.append(entry)
        return out
