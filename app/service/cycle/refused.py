"""Which groups wait, why, and when asking for one again may bring something."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from app.cache.cluster import ClusterCache
from app.cache.gangs.groups import Group
from app.cache.gangs.missing import missing
from app.model.ids import GroupKey
from app.model.reason import MEMBERS_MISSING, Cause, Refusal
from app.telemetry import metrics


@dataclass(slots=True, eq=False)
class Refused:
    """What was decided last about every group that did not get all it asked for."""

    cache: ClusterCache
    reasons: dict[GroupKey, Refusal] = field(init=False, default_factory=dict)
    _lacked: dict[GroupKey, bool] = field(init=False, default_factory=dict)
    """Whether a gang lacked members when it was planned on demand since the last cycle."""
    _causes: dict[GroupKey, Cause] = field(init=False, default_factory=dict)
    """Why groups waited when this was decided last."""
    _otherwise: set[GroupKey] = field(init=False, default_factory=set)
    """Groups that have waited for something else since the last cycle, if only for a moment."""

    def __post_init__(self) -> None:
        for cause in Cause:
            metrics.GROUPS_REFUSED.labels(cause.value)

    def cycle_begins(self) -> None:
        """What was decided on demand since the last one may be decided again."""
        self._lacked.clear()

    def replace(self, refused: Mapping[GroupKey, Refusal], *, generation: int = 0) -> None:
        """All was planned; what came of the plan is published already.

        Groups that are set aside were not: their reasons stand.
        """
        pending, aside = self.cache.registry.pending, self.cache.registry.aside
        before, self.reasons = self.reasons, dict[GroupKey, Refusal]()
        for key in aside.keys() & before.keys():
            self.reasons[key] = before[key]
        for key, why in refused.items():
            if key in pending or key in aside:
                self.reasons[key] = why
        self._compare(generation)

    def note_all_on_demand(self) -> None:
        """All was planned on demand."""
        groups = self.cache.groups
        self._lacked |= {key: _lacks_members(groups[key]) for key in self.reasons}

    def note_on_demand(
        self, group: Group, refused: Mapping[GroupKey, Refusal], *, generation: int = 0
    ) -> None:
        """One group was planned on demand."""
        self.reasons.pop(group.key, None)
        self.reasons.update(refused)
        self._lacked[group.key] = _lacks_members(group)
        self._note(group.key, generation)

    def drop_decided(self) -> None:
        """Forget groups about which there is nothing to decide any more."""
        registry = self.cache.registry
        for key in self.reasons.keys() - registry.pending.keys() - registry.aside.keys():
            del self.reasons[key]
            self._note(key)

    def clear(self) -> None:
        """Another replica says why groups wait."""
        self.reasons = {}
        self._compare()

    def stands(self, group: Group) -> bool:
        """Whether planning ``group`` on demand again would bring nothing.

        So it is until the next cycle, unless the last of its members has come since.
        """
        if group.key not in self.reasons:
            return False
        completed = self._lacked.get(group.key, True) and not _lacks_members(group)
        return group.key not in self.cache.signals.groups or not completed

    def wants_room(self) -> bool:
        """Whether a group may be pending for want of room, or of a claim to some."""
        reasons = self.reasons
        return any(
            key not in reasons or reasons[key].cause not in MEMBERS_MISSING
            for key in self.cache.registry.pending
        )

    def note_causes(self) -> set[GroupKey]:
        """Count them; the groups that wait for something else than before, or not any more.

        Those too that did so in between: what was told of them then may be what does not hold.
        """
        counts = Counter(self._causes.values())
        for cause in Cause:
            metrics.GROUPS_REFUSED.labels(cause.value).set(counts[cause])
        found, self._otherwise = self._otherwise, set()
        return found

    def _compare(self, generation: int = 0) -> None:
        before, self._causes = self._causes, {k: r.cause for k, r in self.reasons.items()}
        otherwise = [k for k, cause in self._causes.items() if before.get(k) is not cause]
        for key in otherwise:
            self._tell(key, self.reasons[key], generation)
        self._otherwise.update(otherwise)
        self._otherwise |= before.keys() - self._causes.keys()

    def _note(self, key: GroupKey, generation: int = 0) -> None:
        before, refusal = self._causes.pop(key, None), self.reasons.get(key)
        if refusal is not None:
            self._causes[key] = refusal.cause
        if before is not self._causes.get(key):
            self._otherwise.add(key)
            if refusal is not None:
                self._tell(key, refusal, generation)

    def _tell(self, key: GroupKey, refusal: Refusal, generation: int) -> None:
        group = self.cache.groups.get(key)
        if group is not None:
            self.cache.decisions.trail.of_refusal(group, refusal, generation=generation)


def _lacks_members(group: Group) -> bool:
    return missing(group) > 0 or not group.members
