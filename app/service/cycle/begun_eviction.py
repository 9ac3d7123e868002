"""One eviction plan that has begun, and how far it has come.

::

    decided -> written -> evicting -> placed -> bound
       |          |           |          |
       +----------+-----------+----------+-> given up

* *decided*: the live cluster bears the plan, and the room of its places is kept back.
* *written*: its intent is stored. A process that ends from now on leaves it to the next one.
* *evicting*: the first eviction has been asked for.
* *placed*: all victims have gone, and the places are an ordinary reservation.
* *bound*: its gang has its minimum on nodes; a plan for no gang ends when its victims have gone.
* *given up*: victims that have not been asked to go stay.

The intent is deleted when the plan is bound or given up, and not before: until then a process that
ends would lose the room.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from app.model.eviction import Intent, VictimPod
from app.model.gang import Gang
from app.model.ids import GroupKey, PodUid


class Step(StrEnum):
    """How far a plan has come (metric label)."""

    DECIDED = "decided"
    WRITTEN = "written"
    EVICTING = "evicting"
    PLACED = "placed"
    BOUND = "bound"
    GIVEN_UP = "given up"


class Fate(StrEnum):
    """How far a victim has come, as long as it has room."""

    TO_GO = "to go"
    GOING = "going"
    """The API server has accepted its eviction, or deletes the pod anyway."""
    FORBIDDEN = "kept by a PodDisruptionBudget"
    FAILING = "kept as its eviction fails"
    REFUSED = "kept by the API server"


KEPT_FOR_NOW = (Fate.FORBIDDEN, Fate.FAILING)
"""A victim may change between these; for how long it is kept counts from the first one."""


@dataclass(slots=True, eq=False)
class BegunEviction:
    """An eviction plan that has begun; ``gang`` is its preemptor as of then, None: there is none.

    ``since`` is when the plan came to its ``step`` (seconds since the epoch). ``names``: what the
    intent may be stored as, its own name the last; empty: it is not. ``stored``: all of it is.
    ``evicted`` counts the evictions that were accepted.
    ``there`` are the holders of room on the nodes of the places when it began, ``told`` the groups
    of victims for which there is an event, ``late`` the victims that should have gone by now.
    """

    name: str
    intent: Intent
    gang: Gang | None
    since: float
    step: Step = Step.DECIDED
    names: tuple[str, ...] = ()
    stored: bool = False
    evicted: int = 0
    there: frozenset[str] = frozenset()
    told: set[GroupKey] = field(default_factory=set)
    late: set[PodUid] = field(default_factory=set)
    why: str = ""
    """Why the plan was given up."""
    fates: dict[PodUid, Fate] = field(default_factory=dict)
    fate_since: dict[PodUid, float] = field(default_factory=dict)
    _victims: dict[PodUid, VictimPod] = field(init=False)

    def __post_init__(self) -> None:
        self._victims = {victim.uid: victim for victim in self.intent.victims}

    @property
    def ended(self) -> bool:
        """Whether nothing is left of the plan but its intent."""
        return self.step in (Step.BOUND, Step.GIVEN_UP)

    @property
    def waits(self) -> bool:
        """Whether the plan's places are pipelined still."""
        return self.step in (Step.DECIDED, Step.WRITTEN, Step.EVICTING)

    def go(self, step: Step, *, now: float, why: str = "") -> None:
        """Come to that step; ``why`` it is given up."""
        self.step, self.since = step, now
        self.why = why or self.why

    def meets(self, uid: PodUid, fate: Fate, *, now: float) -> None:
        """A victim has come so far; for how long counts from the first time."""
        before, self.fates[uid] = self.fates.get(uid), fate
        if before is not fate and not (before in KEPT_FOR_NOW and fate in KEPT_FOR_NOW):
            self.fate_since[uid] = now

    def to_evict(self) -> Iterator[VictimPod]:
        """Victims that are to be asked to go now: none before the intent is stored."""
        return (victim for victim in self.intent.victims if self.is_to_evict(victim.uid))

    def is_to_evict(self, uid: PodUid) -> VictimPod | None:
        """The victim of that UID, if it is to be asked to go now."""
        again = (Fate.TO_GO, *KEPT_FOR_NOW)
        if not (self.stored and self.waits) or self.fates.get(uid) not in again:
            return None
        return self._victims[uid]
