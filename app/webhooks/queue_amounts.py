"""The resource lists of a queue, and sums of them."""

from collections.abc import Iterable, Mapping
from typing import Any

from app.core import resource_names
from app.model.amounts import PODS
from app.webhooks.pod_resources import is_device, is_whole
from app.wire import quantity
from app.wire.findings import Findings, invalid
from app.wire.reading import amount, amounts, mapping
from app.wire.unstructured import Object, spec

CAPABILITY, DESERVED, GUARANTEE = "capability", "deserved", "guarantee"


def written(queue: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """``capability``, ``deserved`` or ``guarantee`` as the queue has it."""
    body = mapping(spec(queue))
    if kind == GUARANTEE:
        return mapping(mapping(body.get(kind)).get("resource"))
    return mapping(body.get(kind))


def read(queue: Mapping[str, Any], kind: str) -> dict[str, int]:
    """The amounts of that kind as numbers."""
    return amounts(written(queue, kind))


def summed(queues: Iterable[Object], kind: str) -> dict[str, int]:
    """What several queues have together."""
    total: dict[str, int] = {}
    for queue in queues:
        for name, number in read(queue, kind).items():
            total[name] = total.get(name, 0) + number
    return total


def told(values: Mapping[str, int]) -> str:
    """Amounts as one would write them."""
    written = (f"{name} {quantity.text(name, n)}" for name, n in sorted(values.items()))
    return ", ".join(written) or "none"


def exceeds(values: Mapping[str, int], limits: Mapping[str, int]) -> bool:
    """Whether one of ``values`` is beyond its limit; what ``limits`` leaves out is 0."""
    return any(number > limits.get(name, 0) for name, number in values.items())


def check_quantities(queue: Object, findings: Findings) -> None:
    """Nothing is less than zero, and pods and devices are whole."""
    for kind in (CAPABILITY, DESERVED, GUARANTEE):
        where = f"requestBody.spec.{kind}" + (".resource" if kind == GUARANTEE else "")
        for name, text in written(queue, kind).items():
            number = amount(name, text)
            if number is None:
                findings.refuse(f"{where}[{name}]", invalid(text, "not a quantity"))
            elif number < 0:
                why = "must be greater than or equal to 0"
                findings.refuse(f"{where}[{name}]", invalid(text, why))
            elif (name == PODS or is_device(name)) and not is_whole(text):
                findings.refuse(f"{where}[{name}]", invalid(text, "must be an integer"))


def check_order(queue: Object, findings: Findings) -> None:
    """Refuse all but guarantee ≤ deserved ≤ capability; a missing capability limits nothing."""
    limits, soft = written(queue, CAPABILITY), written(queue, DESERVED)
    floor = written(queue, GUARANTEE)
    for name, text in floor.items():
        if (amount(name, soft.get(name)) or 0) < (amount(name, text) or 0):
            findings.refuse(
                f"spec.deserved[{name}]",
                f"deserved[{name}]={soft.get(name, 0)} must be >= guarantee[{name}]={text}",
            )
    for kind, values in ((DESERVED, soft), (GUARANTEE, floor)):
        for name, text in values.items():
            if name in limits and (amount(name, text) or 0) > (amount(name, limits[name]) or 0):
                findings.refuse(
                    f"spec.{kind}[{name}]",
                    f"{kind}[{name}]={text} must be <= capability[{name}]={limits[name]}",
                )


def lint_names(queue: Object, old: Object, there: Iterable[str], findings: Findings) -> None:
    """Warn of resources that no node has, where the queue has not named them before.

    ``there`` are the resources that nodes have.
    """
    known = frozenset(there)
    for kind in (CAPABILITY, DESERVED, GUARANTEE):
        where = f"spec.{kind}" + (".resource" if kind == GUARANTEE else "")
        new = [name for name in written(queue, kind) if name not in written(old, kind)]
        for name, meant in resource_names.unknown(new, known):
            findings.warn(f"{where}[{name}]", resource_names.told(name, meant))
