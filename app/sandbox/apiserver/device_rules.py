"""What objects of ``resource.k8s.io`` may say, as far as schedulers rely on it."""

from __future__ import annotations

from collections.abc import Iterator

from app.sandbox.apiserver.errors import (
    FieldError,
    duplicate,
    invalid_value,
    required,
    too_many,
    unsupported_value,
)
from app.sandbox.apiserver.rules import Rules
from app.wire.documents import Document, items, section

_MODES = ("All", "ExactCount")
_MOST_REQUESTS = 32
_IMMUTABLE = "field is immutable"
_ONE_REACH = (
    "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
)


def _claim_defaults(claim: Document) -> None:
    _spec_defaults(section(claim, "spec"))


def _template_defaults(template: Document) -> None:
    template.setdefault("spec", {}).setdefault("metadata", {})
    _spec_defaults(section(template, "spec", "spec"))


def _spec_defaults(spec: Document) -> None:
    for request in items(spec, "devices", "requests"):
        options = [request["exactly"]] if request.get("exactly") else []
        for option in [*options, *(request.get("firstAvailable") or ())]:
            option.setdefault("allocationMode", "ExactCount")
            if option["allocationMode"] == "ExactCount":
                option.setdefault("count", 1)


def _spec_errors(spec: Document, at: str) -> Iterator[FieldError]:
    requests = items(spec, "devices", "requests")
    if len(requests) > _MOST_REQUESTS:
        yield too_many(f"{at}.devices.requests", len(requests), _MOST_REQUESTS)
    for number, request in enumerate(requests):
        here = f"{at}.devices.requests[{number}]"
        exactly, first = request.get("exactly"), request.get("firstAvailable") or ()
        if not request.get("name"):
            yield required(f"{here}.name")
        if bool(exactly) is bool(first):
            yield required(here, "exactly one of `exactly` or `firstAvailable` is required")
        if exactly:
            yield from _option_errors(exactly, f"{here}.exactly")
        for place, option in enumerate(first):
            yield from _option_errors(option, f"{here}.firstAvailable[{place}]")


def _option_errors(option: Document, at: str) -> Iterator[FieldError]:
    mode, count = option.get("allocationMode"), option.get("count")
    if not option.get("deviceClassName"):
        yield required(f"{at}.deviceClassName")
    if mode not in _MODES:
        yield unsupported_value(f"{at}.allocationMode", mode, _MODES)
    elif mode == "ExactCount" and (count or 0) <= 0:
        yield invalid_value(f"{at}.count", count, "must be greater than zero")
    elif mode == "All" and count:
        text = "must not be specified when allocationMode is 'All'"
        yield invalid_value(f"{at}.count", count, text)
    yield from _selector_errors(option, at)


def _selector_errors(holder: Document, at: str) -> Iterator[FieldError]:
    for number, selector in enumerate(holder.get("selectors") or ()):
        if not section(selector, "cel").get("expression"):
            yield required(f"{at}.selectors[{number}].cel.expression")


def _claim_errors(claim: Document) -> list[FieldError]:
    return list(_spec_errors(section(claim, "spec"), "spec"))


def _template_errors(template: Document) -> list[FieldError]:
    return list(_spec_errors(section(template, "spec", "spec"), "spec.spec"))


def _spec_changed(new: Document, old: Document) -> list[FieldError]:
    """Neither a claim nor a template changes what it asks for."""
    if new.get("spec") == old.get("spec"):
        return []
    return [invalid_value("spec", new.get("spec"), _IMMUTABLE)]


def _class_errors(chosen: Document) -> list[FieldError]:
    return list(_selector_errors(section(chosen, "spec"), "spec"))


def _slice_errors(slice_: Document) -> list[FieldError]:
    return list(_errors_of_slice(section(slice_, "spec")))


def _errors_of_slice(spec: Document) -> Iterator[FieldError]:
    for name in ("driver", "pool"):
        if not spec.get(name):
            yield required(f"spec.{name}")
    ways = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
    said = [way for way in ways if spec.get(way)]
    if not said:
        yield required("spec", _ONE_REACH)
    elif len(said) > 1:
        yield invalid_value("spec", said, _ONE_REACH)
    seen: set[str] = set()
    for number, device in enumerate(spec.get("devices") or ()):
        name = device.get("name") or ""
        if not name:
            yield required(f"spec.devices[{number}].name")
        elif name in seen:
            yield duplicate(f"spec.devices[{number}]", name)
        seen.add(name)


DEVICE_RULES: dict[str, Rules] = {
    "resource.k8s.io/deviceclasses": Rules(
        create_errors=_class_errors, update_errors=lambda new, _: _class_errors(new)
    ),
    "resource.k8s.io/resourceclaims": Rules(
        defaults=_claim_defaults,
        create_errors=_claim_errors,
        update_errors=_spec_changed,
        counts_generations=False,
    ),
    "resource.k8s.io/resourceclaimtemplates": Rules(
        defaults=_template_defaults,
        create_errors=_template_errors,
        update_errors=_spec_changed,
        counts_generations=False,
    ),
    "resource.k8s.io/resourceslices": Rules(
        create_errors=_slice_errors, update_errors=lambda new, _: _slice_errors(new)
    ),
}
