"""extender: a server of yours, the HTTP extender, says where pods may go and which may be evicted.

It is asked by others (:mod:`app.service.intake.http_extender`); here its answers are looked up, as
the snapshot has them. Pods wait that it was not asked about yet, or not lately. Arguments, all
beginning with ``extender.``:

* ``urlPrefix``: the URL of the server; ``httpTimeout`` (1s) of a call;
* ``<what>Verb``: the path below it for each of :class:`~app.model.http_extender.Verb`;
* ``ignorable`` (false): whether a server that fails is passed over;
* ``managedResources``: a list, or a text with commas: only pods are asked about that ask for one.

``predicate`` says which nodes members may go to, ``prioritize`` how much it likes them.
``jobEnqueueable`` votes; a queue of which ``queueOverused`` says so gets no more places, and a
group that ``jobReady`` does not call ready none at all. ``preemptable`` and ``reclaimable`` keep
pods from being evicted that other plugins let go.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

import numpy as np

from app.core.arguments import Arguments
from app.core.conf_error import ConfError
from app.core.policy import (
    ABSTAIN,
    PERMIT,
    Ballot,
    Hooks,
    NodeRule,
    NodeScore,
    NodesNow,
    OpenPlugin,
    Session,
    Vote,
)
from app.core.victim_rules import Candidate, EvictionRule, Preemptor
from app.model.conf import PluginConf
from app.model.exchange import ANY_EQUAL, Exchange
from app.model.gang import Gang, Task
from app.model.http_extender import Answered, HttpExtenderConf, Subject, Verb, VictimsAsked
from app.model.ids import NodeName, QueueName
from app.model.reason import Cause, Refusal
from app.model.resources import Mask, Scores

NAME: Final = "extender"
SILENT: Final = "node(s) the HTTP extender has not answered about"
REFUSED: Final = "node(s) the HTTP extender refuses"
SPARES: Final = "that the HTTP extender does not let go"
URL_PREFIX: Final = "extender.urlPrefix"
"""The argument with the URL of the server."""
_NOT_ASKED: Final = "not asked yet"
_NO_PODS: Final = "not asked, as the pods do not exist yet"
_TOLD: Final = 3
"""How many different answers about nodes are told in a refusal."""


def conf_of(plugin: PluginConf) -> HttpExtenderConf:
    """What the arguments say; raises ``ConfError``."""
    given = Arguments(plugin)
    verbs = {
        verb: path.strip("/ ")
        for verb in Verb
        if (path := given.text(f"extender.{verb}Verb")).strip("/ ")
    }
    url = given.text(URL_PREFIX).strip()
    if url or verbs:
        _check(url)
    timeout = given.duration("extender.httpTimeout")
    return HttpExtenderConf(
        url.rstrip("/"),
        verbs,
        timeout_s=1.0 if timeout is None else timeout,
        ignorable=given.flag("extender.ignorable", default=False),
        managed=_managed(plugin),
    )


def _check(url: str) -> None:
    try:
        parts = urlsplit(url)
        known = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        known = False
    if not known:
        raise _wrong(URL_PREFIX, f"{url!r} is no http or https URL")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise _wrong(URL_PREFIX, "only scheme, host, port and path may be given")


def _managed(plugin: PluginConf) -> frozenset[str]:
    key = "extender.managedResources"
    given = plugin.arguments.get(key)
    if given is None:
        return frozenset()
    names = given.split(",") if isinstance(given, str) else given
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise _wrong(key, f"{given!r} is no list of names, nor a text with commas")
    return frozenset(filter(None, (name.strip() for name in names)))


def _wrong(key: str, why: str) -> ConfError:
    return ConfError(f"plugin {NAME}: argument {key}: {why}")


def configure(plugin: PluginConf) -> OpenPlugin:
    """Reads the arguments above."""
    conf = conf_of(plugin)
    off = {
        verb
        for verb, switch in ((Verb.READY, "enableJobReady"), (Verb.OVERUSED, "enabledOverused"))
        if not plugin.enabled(switch)
    }
    heeded = replace(conf, verbs={v: path for v, path in conf.verbs.items() if v not in off})

    def open_(session: Session) -> Hooks:
        return Answers(heeded, session).hooks()

    return open_


class Answers:
    """The plugin in one cycle."""

    def __init__(self, conf: HttpExtenderConf, session: Session) -> None:
        self._conf = conf
        self._facts = session.ledger.snapshot.http_extender
        self._nodes = session.ledger.snapshot.table.nodes
        self._now = session.now
        self._unasked = self._facts.problem or _NOT_ASKED

    def hooks(self) -> Hooks:
        """What the plugin takes part in: the verbs that have a path."""
        asks = self._conf.asks
        rule = EvictionRule(NAME, self._may_go, SPARES, by_pod=True)
        preempts, reclaims = asks(Verb.PREEMPTABLE), asks(Verb.RECLAIMABLE)
        of_nodes = asks(Verb.PREDICATE) or asks(Verb.PRIORITIZE)
        return Hooks(
            node_rules=self._rules() or None,
            node_score=NodeScore(self._key, self._score) if asks(Verb.PRIORITIZE) else None,
            place_class=self._place_class if of_nodes else None,
            enqueueable=self._vote if asks(Verb.ENQUEUEABLE) else None,
            overused=self._overused if asks(Verb.OVERUSED) else None,
            allocatable=self._allocatable if asks(Verb.OVERUSED) else None,
            preemptable=rule if preempts else None,
            reclaimable=rule if reclaims else None,
            unified_evictable=rule if preempts or reclaims else None,
        )

    # --- nodes -----------------------------------------------------------------------------------

    def _rules(self) -> Sequence[NodeRule]:
        cause, asks = Cause.HTTP_EXTENDER, self._conf.asks
        rules: list[NodeRule] = []
        if asks(Verb.READY):
            rules.append(
                NodeRule(
                    "node(s) for a group that the HTTP extender does not call ready",
                    lambda gang, _task: gang.key,
                    self._is_ready,
                    cause,
                    self._why_not_ready,
                )
            )
        if asks(Verb.PREDICATE) or asks(Verb.PRIORITIZE):
            rules.append(NodeRule(SILENT, self._key, self._answered, cause, self._why_silent))
        if asks(Verb.PREDICATE):
            rules.append(NodeRule(REFUSED, self._key, self._allowed, cause, self._why_refused))
        return rules

    def _key(self, gang: Gang, task: Task) -> Hashable | None:
        return (gang.key, id(task.shape)) if self._conf.minds(task.shape) else None

    def _place_class(self, gang: Gang, task: Task, _row: int) -> Exchange:
        """What was answered of a group's members says nothing of those of another."""
        if not self._conf.minds(task.shape):
            return ANY_EQUAL
        return ANY_EQUAL.within(f"nodes that the HTTP extender allows group {gang.key}")

    def _answered(self, gang: Gang, task: Task, nodes: NodesNow) -> Mask:
        mask = np.ones(len(nodes.rows), dtype=np.bool_)
        subject = Subject.of(gang.key, task.shape)
        if self._conf.asks(Verb.PREDICATE):
            of_nodes = self._facts.nodes.get(subject, {})
            for at, name in enumerate(self._names(nodes)):
                answer = of_nodes.get(name)
                mask[at] = answer is not None and answer.fresh(self._now) is not None
        if self._conf.asks(Verb.PRIORITIZE) and self._exists(gang, task):
            scores = self._facts.scores.get(subject)
            if scores is None or scores.fresh(self._now) is None:
                mask[:] = False
        return mask

    def _allowed(self, gang: Gang, task: Task, nodes: NodesNow) -> Mask:
        of_nodes = self._facts.nodes.get(Subject.of(gang.key, task.shape), {})
        return np.array(
            [not ((found := of_nodes.get(name)) and found.value) for name in self._names(nodes)],
            dtype=np.bool_,
        )

    def _score(self, gang: Gang, task: Task, nodes: NodesNow) -> Scores:
        found = self._facts.scores.get(Subject.of(gang.key, task.shape))
        scores = (found.fresh(self._now) if found is not None else None) or {}
        return np.array([scores.get(name, 0.0) for name in self._names(nodes)], dtype=np.float64)

    def _why_silent(self, gang: Gang, task: Task, nodes: NodesNow) -> str:
        subject = Subject.of(gang.key, task.shape)
        of_nodes = self._facts.nodes.get(subject, {})
        answers = [of_nodes.get(name) for name in self._names(nodes)]
        problem = next((each.problem for each in answers if each and each.problem), "")
        scores = self._facts.scores.get(subject)
        if not problem and scores is not None:
            problem = scores.problem
        if not problem:
            problem = self._unasked if self._exists(gang, task) else _NO_PODS
        return self._said(problem)

    def _why_refused(self, gang: Gang, task: Task, nodes: NodesNow) -> str:
        of_nodes = self._facts.nodes.get(Subject.of(gang.key, task.shape), {})
        texts = Counter(found.value for name in self._names(nodes) if (found := of_nodes.get(name)))
        del texts[""], texts[None]
        told = texts.most_common(_TOLD)
        said = ", ".join(f"{text} ({count})" for text, count in told)
        return self._said(said if len(told) == len(texts) else f"{said}, …")

    def _names(self, nodes: NodesNow) -> Sequence[NodeName]:
        return [self._nodes[row].name for row in nodes.rows.tolist()]

    @staticmethod
    def _exists(gang: Gang, task: Task) -> bool:
        """Whether some pod has that shape that waits: slots are not asked about."""
        return any(each.shape is task.shape for each in gang.waiting)

    # --- groups and queues -----------------------------------------------------------------------

    def _is_ready(self, gang: Gang, _task: Task, nodes: NodesNow) -> Mask:
        found = self._facts.ready.get(gang.key)
        ready = found is not None and found.fresh(self._now) is True
        return np.full(len(nodes.rows), ready, dtype=np.bool_)

    def _why_not_ready(self, gang: Gang, _task: Task, _nodes: NodesNow) -> str:
        found = self._facts.ready.get(gang.key)
        return self._said(self._problem(found) or "the group is not ready")

    def _vote(self, gang: Gang) -> Ballot:
        found = self._facts.enqueueable.get(gang.key)
        status = found.fresh(self._now) if found is not None else None
        if status is None or status < 0:
            why = self._problem(found) or "the group is not admitted"
            return Ballot(
                Vote.REJECT, Refusal(Cause.HTTP_EXTENDER, where=gang.key, detail=self._said(why))
            )
        return PERMIT if status else ABSTAIN

    def _overused(self, queue: QueueName) -> Refusal | None:
        found = self._facts.overused.get(queue)
        if found is not None and found.fresh(self._now) is False:
            return None
        why = self._problem(found) or f"queue {queue} is used up"
        return Refusal(Cause.HTTP_EXTENDER, where=queue, detail=self._said(why))

    def _allocatable(self, queue: QueueName, _task: Task) -> Refusal | None:
        """An overused queue borrows nothing either."""
        return self._overused(queue)

    def _may_go(self, preemptor: Preemptor, candidate: Candidate) -> bool | None:
        verb = Verb.RECLAIMABLE if preemptor.action.reclaims else Verb.PREEMPTABLE
        if not self._conf.asks(verb):
            return None
        answers = self._facts.victims.get(VictimsAsked(preemptor.gang.key, verb), {})
        found = answers.get(candidate.pod.uid)
        return False if found is not None and found.fresh(self._now) is False else None

    def _problem(self, found: Answered[bool] | Answered[int] | None) -> str:
        """Why there is no answer that counts; empty: there is one."""
        if found is None:
            return self._unasked
        return "" if found.fresh(self._now) is not None else found.problem or self._unasked

    def _said(self, what: str) -> str:
        return f"the HTTP extender at {self._conf.url}: {what}"
