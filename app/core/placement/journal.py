"""Following a ledger's journal, which grows at its end and is cut back by roll-backs."""

from collections.abc import Sequence

from app.core.entries import Entry


class JournalReader:
    """Tells what came to nodes and went from them since the last time it was asked."""

    __slots__ = ("_journal", "_seen")

    def __init__(self, journal: Sequence[Entry]) -> None:
        self._journal = journal
        self._seen: list[Entry] = []

    def changes(self) -> list[tuple[Entry, int, int]]:
        """Entries since the last call, in the order of events, new ones and those undone.

        Each with the row of its node, and +1 where there is a pod more on it by that, -1 where
        there is one less. Evictions from nodes that are not known are left out.
        """
        journal, seen = self._journal, self._seen
        if len(seen) == len(journal) and (not seen or seen[-1] is journal[-1]):
            return []
        out: list[tuple[Entry, int, int]] = []
        while seen and (len(seen) > len(journal) or seen[-1] is not journal[len(seen) - 1]):
            entry = seen.pop()
            if entry.node is not None:
                out.append((entry, entry.node, -entry.sign))
        for entry in journal[len(seen) :]:
            if entry.node is not None:
                out.append((entry, entry.node, entry.sign))
            seen.append(entry)
        return out
