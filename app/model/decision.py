"""A decision, as the audit trail keeps it: what was decided about which pod or group, and why.

Decisions are made by the thousand in a cycle, so they are plain tuples.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from app.model.ids import GroupKey, NodeName, PodUid, QueueName
from app.model.reason import Refusal

StoryStep = tuple[float, str, int, str, str, str, str]
"""When, stimulus, generation, from, to, node, why (:mod:`app.cache.gangs.story`)."""


class DecisionKind(StrEnum):
    """What was decided."""

    ADMIT = "admit"
    """A group may use its queue: it is Inqueue."""
    PLACE = "place"
    """A member has a node, or room is kept for members that do not exist yet."""
    REFUSE = "refuse"
    """A group waits, for that cause from now on."""
    EVICT = "evict"
    """A pod is to go, or its eviction has come further."""
    VETO = "veto"
    """The stock filters know better: a planned node is none."""
    RELEASE = "release"
    """A place is given back before it was used."""


class Decision(NamedTuple):
    """One decision at ``at`` (seconds since the epoch), set off by ``stimulus``.

    ``group`` is ``namespace/name``, ``job`` the name of the job that owns it (the name of the group
    where no job does), ``pod`` the name of the pod, empty where the decision is about the group.
    ``cause`` is one word, ``text`` a sentence where there is one; that of a ``refusal`` is made of
    its numbers. ``generation`` is that of the snapshot, 0: it was not planned. ``story`` are the
    latest steps of the pod or of the group, this one included.

    Of an eviction ``group`` is that of the victim, ``preemptor`` the group it goes for (empty: for
    none), ``rule`` the plugin whose rule allows it. ``plan`` names the eviction plan, and
    ``certificate`` is its proof; it comes with one of the plan's decisions.
    """

    at: float
    kind: DecisionKind
    group: GroupKey
    job: str
    queue: QueueName
    stimulus: str
    cause: str
    pod: str = ""
    uid: PodUid = PodUid("")
    node: NodeName = NodeName("")
    text: str = ""
    generation: int = 0
    story: tuple[StoryStep, ...] = ()
    refusal: Refusal | None = None
    preemptor: str = ""
    rule: str = ""
    plan: str = ""
    certificate: Mapping[str, object] | None = None


class KeptDecision(NamedTuple):
    """A decision as it is kept: the fields of :class:`Decision` that all have, and its ``number``.

    ``story`` are steps as lists, ``refusal`` is a JSON object or null.
    """

    number: int
    at: float
    kind: str
    group: str
    job: str
    queue: str
    pod: str
    uid: str
    node: str
    stimulus: str
    cause: str
    text: str
    generation: int
    preemptor: str
    rule: str
    plan: str
    story: Any
    refusal: Any


class AuditQuestion(NamedTuple):
    """Which decisions are asked for; what is empty or 0 does not narrow them.

    ``job`` and ``pod`` are ``namespace/name``. ``job`` is the name of a job, of a group or of a pod
    without one; the decisions of the plans that evict for it belong to it. ``namespace`` is that of
    the groups that decisions are about. ``since`` and ``until`` are seconds since the epoch.
    ``before`` and ``after`` are numbers of decisions: the latest before that one, or the first
    after that one. ``most`` is how many are told.
    """

    job: str = ""
    pod: str = ""
    namespace: str = ""
    queue: str = ""
    kind: str = ""
    since: float = 0.0
    until: float = 0.0
    before: int = 0
    after: int | None = None
    most: int = 100


class Coverage(NamedTuple):
    """What the kept decisions are of.

    ``outlives_process``: they are in a folder that was chosen for them, and so are those of earlier
    processes; else they begin with this process. ``since`` is when the earliest process began of
    which all are kept, or when the earliest decision was made where older ones had to go (seconds
    since the epoch). ``dropped`` counts decisions of this process that are not kept. ``problems``
    say what is wrong.
    """

    outlives_process: bool
    folder: str
    since: float
    dropped: int
    problems: tuple[str, ...]


class AuditAnswer(NamedTuple):
    """The decisions in the order in which they were made, and what they are of."""

    decisions: tuple[KeptDecision, ...]
    coverage: Coverage
