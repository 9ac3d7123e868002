"""What the actions of one cycle work on and what they have decided so far."""

from collections.abc import Generator, Iterable
from dataclasses import dataclass, field

from app.core.holders import Holders
from app.core.ledger import Entry, Ledger
from app.core.placement.engine import Placer
from app.core.placement.statics import ShapeCache
from app.core.policy import Opened, Policies, Session
from app.core.tiers import open_policies
from app.model.gang import Gang
from app.model.ids import GroupKey
from app.model.plan import GangPlacement, Placement, Plan
from app.model.reason import Refusal
from app.model.snapshot import Snapshot

Steps = Generator[None, None, None]
"""Work in bounded pieces: whoever drives it may do something else after each."""


@dataclass(slots=True, eq=False)
class Desk:
    """One cycle: the ledger it counts on, the opened policies, and the outcome so far.

    ``refused`` has the latest reason of a gang; getting all its places takes the reason back.
    """

    snapshot: Snapshot
    ledger: Ledger
    opened: Opened
    placer: Placer
    holders: Holders
    now: float
    admitted: dict[GroupKey, None] = field(default_factory=dict)
    placed: list[GangPlacement] = field(default_factory=list)
    refused: dict[GroupKey, Refusal] = field(default_factory=dict)

    def is_admitted(self, gang: Gang) -> bool:
        """Whether it may be placed: let in earlier, or by this cycle."""
        return gang.inqueue or gang.key in self.admitted

    def admit(self, gang: Gang) -> None:
        """Let it in: its claim counts from now on."""
        self.ledger.admit(gang)
        self.opened.enqueued(gang)
        self.admitted[gang.key] = None
        self.refused.pop(gang.key, None)

    def refuse(self, gang: Gang, refusal: Refusal) -> None:
        """Remember why it got no place."""
        self.refused[gang.key] = refusal

    def publish(self, gang: Gang, entries: Iterable[Entry], *, whole: bool) -> None:
        """Decide these placements."""
        nodes = self.snapshot.table.nodes
        placements = tuple(Placement(e.task, nodes[e.node].name) for e in entries)
        self.placed.append(GangPlacement(gang.key, placements, whole))

    def plan(self) -> Plan:
        """The outcome as a value."""
        return Plan(
            generation=self.snapshot.generation,
            admitted=tuple(self.admitted),
            placed=tuple(self.placed),
            refused=self.refused,
        )


def open_desk(
    snapshot: Snapshot, policies: Policies, *, now: float, shapes: ShapeCache | None
) -> Desk:
    """A fresh ledger on ``snapshot`` with ``policies`` opened on it."""
    ledger = Ledger(snapshot)
    opened = open_policies(policies, Session(ledger=ledger, conf=policies.conf, now=now))
    placer = Placer(ledger, predicates=opened.predicates, scoring=opened.scoring, cache=shapes)
    return Desk(snapshot, ledger, opened, placer, Holders(ledger), now)
