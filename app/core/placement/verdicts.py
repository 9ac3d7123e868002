"""Why no node takes a task: one verdict per node, counted by text.

A node is counted for the first rule that it breaks: what only an operator can change comes first,
then the rules about other pods and of plugins, and room comes last (there every resource that is
short counts), so "Insufficient cpu" is said of nodes where room alone is missing. This is the slow
path: it is taken for refusals only.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from app.core.placement.by_plugins import Barred
from app.core.placement.outlook import Outlook, outlook
from app.core.placement.rules import RuleSet
from app.core.placement.statics import NodeFacts
from app.core.policy import Predicates
from app.kit.quantities import amount_text
from app.model.amounts import PODS
from app.model.funnel import FunnelStep
from app.model.gang import Task
from app.model.reason import Cause, Never, NodeCount, Refusal, Shortfall
from app.model.resources import Mask, Matrix, ResourceAxis

NOT_READY = "node(s) are not ready"
CORDONED = "node(s) were unschedulable"
SELECTOR = "node(s) didn't match Pod's node affinity/selector"
VETOED = "node(s) were refused by the scheduler's own filters"
READY = "ready"
FREE_NOW = "with room for one now"
TOO_MANY_PODS = "node(s) pod number exceeded"


def insufficient(resource: str) -> str:
    """The verdict on a node that has too little of ``resource``."""
    return TOO_MANY_PODS if resource == PODS else f"Insufficient {resource}"


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A task and everything that decides about it.

    ``free`` has shape ``(R, N)``, ``sizes`` (what nodes have when nothing runs there) ``(N, R)``;
    ``by_plugins`` has the rules of plugins that are about it, and the nodes that they forbid;
    ``vetoed`` are nodes that the stock filters refused; ``pinned`` is the only row allowed (None:
    no pin; -1: pinned to a node that is not in the table).
    """

    task: Task
    axis: ResourceAxis
    facts: NodeFacts
    predicates: Predicates
    free: Matrix
    sizes: Matrix
    rules: RuleSet | None
    by_plugins: Sequence[Barred]
    vetoed: Mask | None
    pinned: int | None


def explain(case: Case) -> Refusal:
    """The refusal of ``case.task``, with its numbers."""
    standing = np.ones(case.free.shape[1], dtype=np.bool_)
    counts: dict[str, int] = {}
    for text, barred in _barred(case):
        struck = standing & barred
        hits = int(struck.sum())
        if hits:
            counts[text] = counts.get(text, 0) + hits
            standing &= ~struck
    causes: list[Cause] = []
    notes: list[str] = []
    for barred_by in case.by_plugins:
        rule, struck = barred_by.rule, standing & barred_by.nodes
        hits = int(struck.sum())
        if hits:
            counts[rule.text] = counts.get(rule.text, 0) + hits
            standing &= ~struck
            causes.append(rule.cause)
            notes.append(barred_by.details(struck))
    could = outlook(case.task, case.facts, case.predicates, sizes=case.sizes, pinned=case.pinned)
    shortfalls: list[Shortfall] = []
    for column, asked in enumerate(case.task.request.tolist()):
        short = standing & (case.free[column] < asked) if asked else None
        if short is None or not short.any():
            continue
        resource = case.axis.names[column]
        counts[insufficient(resource)] = int(short.sum())
        most = int(case.free[column][short].max())
        shortfalls.append(Shortfall(resource, asked, max(most, 0), _most(case, could, column)))
    return Refusal(
        cause=_cause(short=bool(shortfalls), vetoed=VETOED in counts, by_plugins=causes),
        where=case.task.role,
        shortfalls=tuple(shortfalls),
        nodes=tuple(NodeCount(text, counts[text]) for text in sorted(counts)),
        total_nodes=len(standing),
        never=could.never,
        note="; ".join(filter(None, notes)),
    )


def funnel(case: Case) -> tuple[tuple[FunnelStep, ...], int]:
    """The nodes that are left, step by step, and how many such tasks have room on the last ones.

    The last ones have room for one now. A step that leaves out no node is not told, but for the
    first, the one of nodes that are ready, and the last.
    """
    standing = np.ones(case.free.shape[1], dtype=np.bool_)
    steps = [FunnelStep("nodes", len(standing))]
    for text, holds in _narrowing(case):
        before = int(standing.sum())
        standing = standing & holds
        left = int(standing.sum())
        if left == before and text != READY:
            continue
        if steps[-1].text == text:
            del steps[-1]
        steps.append(FunnelStep(text, left))
    asked = np.flatnonzero(case.task.request > 0)
    times = case.free[asked] // case.task.request[asked, np.newaxis]
    fit = np.where(standing, np.maximum(times.min(axis=0), 0), 0)
    steps.append(FunnelStep(FREE_NOW, int((fit > 0).sum())))
    return tuple(steps), int(fit.sum())


def _narrowing(case: Case) -> Iterator[tuple[str, Mask]]:
    """What must hold of a node, whatever runs there first, with the nodes of which it does."""
    facts, shape = case.facts, case.task.shape
    yield READY, facts.ready
    if case.pinned is not None:
        yield "the one that it is pinned to", np.arange(len(facts.ready)) == case.pinned
    cordoned = facts.barred_by_cordon(shape)
    if cordoned is not None:
        yield "schedulable", ~cordoned
    if case.predicates.enabled:
        for _, nodes in facts.taints.repelling(shape.tolerations) if case.predicates.taints else ():
            yield "tolerated", ~nodes
        required = facts.selectors.required(shape) if case.predicates.node_affinity else None
        if required is not None:
            yield "matching its node affinity", required
    for column, asked in enumerate(case.task.request.tolist()):
        if asked and case.axis.names[column] != PODS:
            name = case.axis.names[column]
            yield f"with {amount_text(name, asked)} {name} in all", case.sizes[:, column] >= asked
    yield from _narrowing_by_rules(case)


def _narrowing_by_rules(case: Case) -> Iterator[tuple[str, Mask]]:
    if case.vetoed is not None:
        yield "not refused by kube-scheduler", ~case.vetoed
    for rule in case.rules.rules if case.rules is not None else ():
        yield "kept by rules about other pods", rule.mask()
    for barred in case.by_plugins:
        yield f"without: {barred.rule.text}", ~barred.nodes


def _most(case: Case, could: Outlook, column: int) -> int | None:
    """How much the largest node has that the task may go to, where that is too little."""
    if could.never is not Never.NODES:
        return None
    largest = int(case.sizes[:, column].max(where=could.allowed, initial=0))
    return largest if largest < case.task.request[column] else None


def _cause(*, short: bool, vetoed: bool, by_plugins: Sequence[Cause]) -> Cause:
    """Room goes before rules of plugins: of the nodes that are short of it they refuse none."""
    if short:
        return Cause.NOT_ENOUGH_RESOURCES
    named = (cause for cause in by_plugins if cause is not Cause.NO_NODE_FITS)
    return next(named, Cause.VETOED if vetoed else Cause.NO_NODE_FITS)


def _barred(case: Case) -> Iterator[tuple[str, Mask]]:
    yield NOT_READY, ~case.facts.ready
    if case.pinned is not None:
        yield SELECTOR, np.arange(len(case.facts.ready)) != case.pinned
    cordoned = case.facts.barred_by_cordon(case.task.shape)
    if cordoned is not None:
        yield CORDONED, cordoned
    if case.predicates.enabled:
        yield from _static(case)
    if case.vetoed is not None:
        yield VETOED, case.vetoed
    if case.rules is not None:
        for rule in case.rules.rules:
            yield rule.text, ~rule.mask()


def _static(case: Case) -> Iterator[tuple[str, Mask]]:
    shape, facts = case.task.shape, case.facts
    if case.predicates.taints:
        for taint, nodes in facts.taints.repelling(shape.tolerations):
            yield f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}", nodes
    required = facts.selectors.required(shape) if case.predicates.node_affinity else None
    if required is not None:
        yield SELECTOR, ~required
