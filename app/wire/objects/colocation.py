"""ColocationConfigurations: which pods they are about, and what they say for these."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from app.model.shape import LabelSelector
from app.wire.errors import DecodeError, Reader
from app.wire.objects.selectors import LabelSelectorJson, label_selector
from app.wire.reading import integer, mapping

SELECTOR: Final = "spec.selector"
_RATIOS: Final = ("highRatio", "lowRatio", "minRatio")
_WITH_VALUES: Final = ("In", "NotIn")

_read: Reader[LabelSelectorJson | None] = Reader(LabelSelectorJson | None)


def selector_of(spec: Mapping[str, Any]) -> LabelSelector | None:
    """The selector of pods; None matches none. Raises `DecodeError`."""
    json = _read(msgspec.json.encode(spec.get("selector")), SELECTOR)
    selector = label_selector(json, SELECTOR)
    for index, each in enumerate((json.match_expressions if json else None) or ()):
        if (each.operator in _WITH_VALUES) != bool(each.values):
            has = "has" if each.values else "lacks"
            path = f"{SELECTOR}.matchExpressions[{index}].values"
            raise DecodeError(path, f"an expression with {each.operator} {has} values")
    return selector


def config_text(spec: Mapping[str, Any]) -> str:
    """What a pod's agent is told, as Volcano writes it: ratios of nothing are left out."""
    said = spec.get("memoryQos")
    if said is None:
        return "{}"
    ratios = {name: integer(mapping(said).get(name)) for name in _RATIOS}
    kept = {name: ratio for name, ratio in ratios.items() if ratio}
    return msgspec.json.encode({"memoryQos": kept}).decode()
