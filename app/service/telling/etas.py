"""ETAs in words, for one reader: names of other namespaces are counted for a tenant, not told."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from app.cache.cluster import ClusterCache
from app.cache.gangs.groups import Group
from app.cache.gangs.members import ON_NODE_KINDS, MemberState
from app.cache.gangs.trail import job_of
from app.core.eta.causes import ChangeKind, EtaChange
from app.core.eta.forecast import Eta, EtaOutcome
from app.core.texts import describe
from app.model.ids import GroupKey
from app.model.reason import Refusal
from app.service.cycle.eta.answers import Errors
from app.service.cycle.eta.etas import EtaAnswer, Etas
from app.service.telling.reasons import Reasons
from app.wire.ages import human_duration

RUNNING: Final = "running"
_SHOWN: Final = 3
"""Nodes, and gangs, that are named in a sentence."""
_CHANGES: Final = {
    ChangeKind.GANG: "the group asks for something else",
    ChangeKind.CONFIGURATION: "the scheduler has another configuration",
    ChangeKind.NODES_GONE: "nodes went: {}",
    ChangeKind.NODES_CAME: "nodes came: {}",
    ChangeKind.OVERRAN: "{} runs longer than was expected",
    ChangeKind.CAME_BEFORE: "{} comes before it",
    ChangeKind.ENDED_EARLY: "{} ends sooner than was expected",
    ChangeKind.LEFT: "{} does not come before it any more",
    ChangeKind.ORDER: "the order of the line or the expected ends are others",
}


@dataclass(frozen=True, slots=True)
class ChangeTold:
    """The p50 was ``before`` and is ``after`` that, in seconds since the epoch; ``text``: why."""

    at: float
    before: float
    after: float
    kind: ChangeKind
    text: str


@dataclass(frozen=True, slots=True)
class GroupEta:
    """When ``group`` starts; times are seconds since the epoch, ``now`` is when that was said.

    ``job`` is the job that owns the group, or the group itself. ``outcome`` is ``running`` for a
    group that has started, and else says what is known. The group starts by ``p50`` with a
    probability of a half, by ``p90`` with nine tenths (null: not known), and not before ``beyond``.
    ``nodes``, or the ``domain`` that has all of them, are where it starts. ``after`` are the groups
    on whose end it waits, and ``lasting`` those of which no end is known; of other namespaces a
    tenant is told how many there are. ``ahead`` counts the groups that start before it. ``evicts``:
    pods are evicted for it. ``courses`` are as many as were planned. ``reason`` says why it does
    not start, ``error`` how good earlier answers for the queue were.
    """

    group: str
    job: str
    queue: str
    outcome: str
    text: str
    now: float
    p50: float | None = None
    p90: float | None = None
    beyond: float | None = None
    nodes: tuple[str, ...] = ()
    domain: str = ""
    after: tuple[str, ...] = ()
    after_others: int = 0
    lasting: tuple[str, ...] = ()
    lasting_others: int = 0
    ahead: int = 0
    evicts: bool = False
    courses: int = 0
    reason: Refusal | None = None
    change: ChangeTold | None = None
    error: Errors | None = None


@dataclass(frozen=True, slots=True)
class _Gangs:
    """Gangs that a reader is told of: some by name, of the others how many."""

    names: tuple[str, ...]
    others: int

    @property
    def text(self) -> str:
        """All of them in a few words; empty: there are none."""
        shown, more = self.names[:_SHOWN], len(self.names[_SHOWN:])
        said = [", ".join(shown)] if shown else []
        said += [f"{more} more"] if more else []
        if self.others:
            said.append("1 job" if self.others == 1 else f"{self.others} jobs")
            said[-1] += " of another namespace" if self.others == 1 else " of other namespaces"
        return " and ".join(said)


@dataclass(frozen=True, slots=True, eq=False)
class EtaTeller:
    """Tells ETAs; ``own`` is the namespace of a tenant, None: the reader is told everything."""

    cache: ClusterCache
    etas: Etas
    reasons: Reasons

    def tell(self, group: Group, answer: EtaAnswer | None, *, own: str | None) -> GroupEta:
        """The ETA of a group; ``answer`` None: the planner was not asked about it."""
        if answer is None:
            return self._not_forecast(group)
        refusal = answer.eta.refusal
        if refusal is None and answer.eta.outcome is EtaOutcome.UNKNOWN:
            refusal = self.reasons.of(group)
        return self._forecast(group, answer, refusal, own=own)

    def foretell(
        self, group: Group, answer: EtaAnswer | None, refusal: Refusal | None, *, own: str | None
    ) -> GroupEta:
        """The ETA of a group that would wait because of ``refusal``; it need not exist.

        Nothing is known where there is no ``answer``, or one that does not see why it waits.
        """
        if answer is None or answer.eta.outcome is EtaOutcome.NOW:
            return self._unknown(group, refusal)
        return self._forecast(group, answer, answer.eta.refusal or refusal, own=own)

    def _forecast(
        self, group: Group, answer: EtaAnswer, refusal: Refusal | None, *, own: str | None
    ) -> GroupEta:
        eta = answer.eta
        after, lasting = self._gangs(eta.after, own), self._gangs(eta.lasting, own)
        return GroupEta(
            group=group.key,
            job=f"{group.namespace}/{job_of(group)}",
            queue=answer.queue,
            outcome=eta.outcome.value,
            text=_text(eta, answer.now, after=after, lasting=lasting, refusal=refusal),
            now=answer.now,
            p50=eta.p50,
            p90=eta.p90,
            beyond=eta.beyond,
            nodes=eta.nodes,
            domain=eta.domain,
            after=after.names,
            after_others=after.others,
            lasting=lasting.names,
            lasting_others=lasting.others,
            ahead=eta.many_ahead,
            evicts=eta.evicts,
            courses=answer.courses,
            reason=refusal,
            change=self._change(answer.change, own),
            error=answer.errors,
        )

    def _not_forecast(self, group: Group) -> GroupEta:
        """Of a group that wants no plan: it runs, has its places, or waits for something else."""
        now, refusal = self.etas.simulations.clock(), self.reasons.of(group)
        if group.reached_minimum and group.on_nodes:
            kinds = group.counted.kinds
            ended = kinds[MemberState.SUCCEEDED] == sum(kinds[kind] for kind in ON_NODE_KINDS)
            text = "It has ended." if ended else "It runs."
            return self._said(group, RUNNING, text)
        if group.placed_minimum and group.has_reservations:
            text = "It has its places and starts now."
            return replace(self._said(group, EtaOutcome.NOW.value, text), p50=now, p90=now)
        return self._unknown(group, refusal)

    def _unknown(self, group: Group, refusal: Refusal | None) -> GroupEta:
        never = refusal is not None and refusal.never is not None
        outcome = (EtaOutcome.NEVER if never else EtaOutcome.UNKNOWN).value
        why = "the planner has not looked at it" if refusal is None else describe(refusal)
        told = self._said(group, outcome, f"{outcome.capitalize()}: {why}")
        return replace(told, reason=refusal)

    def _said(self, group: Group, outcome: str, text: str) -> GroupEta:
        return GroupEta(
            group=group.key,
            job=f"{group.namespace}/{job_of(group)}",
            queue=group.queue,
            outcome=outcome,
            text=text,
            now=self.etas.simulations.clock(),
            error=self.etas.answers.errors(group.queue),
        )

    def _gangs(self, keys: Iterable[GroupKey], own: str | None) -> _Gangs:
        names, others = [], 0
        for key in keys:
            if own is not None and not key.startswith(f"{own}/"):
                others += 1
                continue
            group = self.cache.groups.get(key)
            names.append(key if group is None else f"{group.namespace}/{job_of(group)}")
        return _Gangs(tuple(names), others)

    def _change(self, change: EtaChange | None, own: str | None) -> ChangeTold | None:
        if change is None:
            return None
        what = self._gangs(change.groups, own).text or ", ".join(change.nodes)
        text = _CHANGES[change.kind].format(what)
        return ChangeTold(change.at, change.before, change.after, change.kind, text)


def _text(eta: Eta, now: float, *, after: _Gangs, lasting: _Gangs, refusal: Refusal | None) -> str:
    """The answer in a sentence or two."""
    if eta.outcome is EtaOutcome.NOW:
        return f"It starts now{_where(eta)}."
    if eta.outcome is EtaOutcome.LATER and eta.p50 is not None:
        return f"{_when(eta, eta.p50, now)}{_where(eta)}{_after(eta, after)}.{_open_end(lasting)}"
    why = "" if refusal is None else describe(refusal)
    if beyond := beyond_text(eta, now):
        return f"{beyond} {why}".strip()
    if eta.outcome is EtaOutcome.UNKNOWN and lasting.text:
        return f"Unknown: no run time is known of {lasting.text}. {why}".strip()
    return f"{eta.outcome.value.capitalize()}: {why}"


def beyond_text(eta: Eta, now: float) -> str:
    """How far ahead was looked for a start that comes later; empty: nothing is known of it."""
    if eta.outcome is not EtaOutcome.BEYOND or eta.beyond is None:
        return ""
    return f"Later than in {human_duration(max(eta.beyond - now, 0.0))}: so far was looked."


def _when(eta: Eta, p50: float, now: float) -> str:
    likely = human_duration(max(p50 - now, 0.0))
    if eta.p90 is None:
        return f"It starts in {likely} or later"
    late = human_duration(max(eta.p90 - now, 0.0))
    return f"It starts in {likely}" if late == likely else f"It starts in {likely} to {late}"


def _where(eta: Eta) -> str:
    if eta.domain:
        return f" in domain {eta.domain}"
    more = len(eta.nodes[_SHOWN:])
    nodes = ", ".join(eta.nodes[:_SHOWN]) + (f" and {more} more nodes" if more else "")
    return f" on {nodes}" if nodes else ""


def _after(eta: Eta, after: _Gangs) -> str:
    if eta.evicts:
        return ", once pods that are evicted for it are gone"
    return f", after the end of {after.text}" if after.text else ""


def _open_end(lasting: _Gangs) -> str:
    return f" No run time is known of {lasting.text}." if lasting.text else ""
