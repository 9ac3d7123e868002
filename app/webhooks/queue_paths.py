"""The annotations that place a queue in a tree for hierarchical fair shares (volcano.md §6.4).

``volcano.sh/hierarchy: root/science/biology`` names the way,
``volcano.sh/hierarchy-weights: 1/2/8`` the weight at each step.
"""

from typing import Final

from app.model.decimals import decimal
from app.model.ids import ROOT_QUEUE
from app.model.workload import DEEPEST_QUEUE, HIERARCHY
from app.webhooks.world import Facts
from app.wire.findings import Findings
from app.wire.unstructured import Object, annotations, name

WEIGHTS = "volcano.sh/hierarchy-weights"
_LONGEST_WEIGHTS: Final = 4096
"""Characters: what is told of a wrong weight has all of them in it."""


def with_root(queue: Object) -> Object:
    """The queue with both annotations starting at the root."""
    given = annotations(queue)
    path, weights = given.get(HIERARCHY), given.get(WEIGHTS)
    if not path or not weights or path.split("/")[0] == ROOT_QUEUE:
        return queue
    both = {HIERARCHY: f"{ROOT_QUEUE}/{path}", WEIGHTS: f"1/{weights}"}
    metadata = {**queue["metadata"], "annotations": {**given, **both}}
    return {**queue, "metadata": metadata}


def check_path(queue: Object, facts: Facts, findings: Findings) -> None:
    """The annotations of ``queue``, beside those of all others."""
    given = annotations(queue)
    path, weights = given.get(HIERARCHY, ""), given.get(WEIGHTS, "")
    if not path and not weights:
        return
    too_deep = max(path.count("/"), weights.count("/")) > DEEPEST_QUEUE
    if too_deep or len(weights) > _LONGEST_WEIGHTS:
        text = (
            f"names more than {DEEPEST_QUEUE} levels below the root, or has weights of more than "
            f"{_LONGEST_WEIGHTS} characters"
        )
        findings.refuse(f"metadata.annotations[{HIERARCHY}]", text)
        return
    if len(path.split("/")) != len(weights.split("/")) or not path or not weights:
        findings.refuse(
            f"metadata.annotations[{HIERARCHY}]",
            f"{HIERARCHY} must have the same length with {WEIGHTS}",
        )
    for weight in weights.split("/") if weights else ():
        problem = _weight_problem(weight, weights)
        if problem:
            findings.refuse(f"metadata.annotations[{WEIGHTS}]", problem)
    for other in facts.queues():
        theirs = annotations(other).get(HIERARCHY, "")
        if theirs.startswith(f"{path}/") and path and name(other) != name(queue):
            findings.refuse(
                f"metadata.annotations[{HIERARCHY}]",
                f"{path} is not allowed to be in the sub path of {theirs} of queue {name(other)}",
            )


def _weight_problem(weight: str, weights: str) -> str:
    number = decimal(weight)
    if number is None:
        return f"{weight} in the {weights} is invalid number: it cannot be read"
    if number <= 0:
        return f"{weight} in the {weights} must be larger than 0"
    return ""
