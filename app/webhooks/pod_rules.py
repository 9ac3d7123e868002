"""Single fields of a pod template: what must be given, of which choices, in which range.

Each table reads as the API server's validation of pods does; ``[]`` stands for every entry of a
list, ``containers[]`` for those that only prepare too. A part that is not there has nothing to be
checked.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from app.model.device_families import tells_devices
from app.model.names import (
    label_problems,
    label_value_problems,
    qualified_problems,
    subdomain_problems,
)
from app.wire.findings import Findings, at
from app.wire.reading import mapping, mappings, number_or_none, text

_CONTAINERS: Final = ("initContainers", "containers")
_TERMS: Final = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[]"
_NEAR: Final = "affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[]"
_FAR: Final = "affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[]"
_RATHER_NEAR: Final = "affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[]"
_RATHER_FAR: Final = "affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[]"
_POD_TERMS: Final = (
    *(_NEAR, _FAR),
    *(f"{_RATHER_NEAR}.podAffinityTerm", f"{_RATHER_FAR}.podAffinityTerm"),
)
_NODE_TERMS: Final = (f"{_TERMS}.nodeSelectorTerms[]", f"{_PREFERRED}.preference")
_SPREAD: Final = "topologySpreadConstraints[]"

REQUIRED: Final[Sequence[tuple[str, str]]] = (
    ("volumes[].configMap", "name"),
    ("volumes[].secret", "secretName"),
    ("volumes[].hostPath", "path"),
    ("volumes[].persistentVolumeClaim", "claimName"),
    ("containers[].envFrom[].configMapRef", "name"),
    ("containers[].envFrom[].secretRef", "name"),
    ("containers[].env[].valueFrom.configMapKeyRef", "key"),
    ("containers[].env[].valueFrom.secretKeyRef", "key"),
    ("containers[].env[].valueFrom.fieldRef", "fieldPath"),
    ("containers[].env[].valueFrom.resourceFieldRef", "resource"),
    ("resourceClaims[]", "name"),
    (_SPREAD, "topologyKey"),
    (_SPREAD, "whenUnsatisfiable"),
    *((term, "topologyKey") for term in _POD_TERMS),
)
"""Texts that must not be empty, by what they are part of."""

_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc")

ONE_OF: Final[Sequence[tuple[str, tuple[str, ...]]]] = (
    (
        "containers[].env[].valueFrom",
        ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"),
    ),
    ("containers[].envFrom[]", ("configMapRef", "secretRef")),
    (_RATHER_NEAR, ("podAffinityTerm",)),
    (_RATHER_FAR, ("podAffinityTerm",)),
    ("containers[].livenessProbe", _HANDLERS),
    ("containers[].readinessProbe", _HANDLERS),
    ("containers[].startupProbe", _HANDLERS),
)
"""Objects in which exactly one of the parts must be given."""

CHOICES: Final[Sequence[tuple[str, str, tuple[str, ...]]]] = (
    ("", "restartPolicy", ("Always", "OnFailure", "Never")),
    ("", "dnsPolicy", ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")),
    ("containers[]", "imagePullPolicy", ("Always", "IfNotPresent", "Never")),
    ("containers[]", "terminationMessagePolicy", ("File", "FallbackToLogsOnError")),
    ("containers[].ports[]", "protocol", ("TCP", "UDP", "SCTP")),
    ("tolerations[]", "operator", ("Equal", "Exists", "Lt", "Gt")),
    ("tolerations[]", "effect", ("NoSchedule", "PreferNoSchedule", "NoExecute")),
    (_SPREAD, "whenUnsatisfiable", ("DoNotSchedule", "ScheduleAnyway")),
)
"""Texts of which only some mean something; left out or empty they have a default."""

_OF_LABELS: Final = ("In", "NotIn", "Exists", "DoesNotExist")
_SELECTORS: Final = (
    *(f"{term}.{which}" for term in _POD_TERMS for which in ("labelSelector", "namespaceSelector")),
    f"{_SPREAD}.labelSelector",
)

REQUIREMENTS: Final[Sequence[tuple[str, tuple[str, ...]]]] = (
    *((f"{selector}.matchExpressions[]", _OF_LABELS) for selector in _SELECTORS),
    *((f"{term}.matchExpressions[]", (*_OF_LABELS, "Gt", "Lt")) for term in _NODE_TERMS),
    *((f"{term}.matchFields[]", ("In", "NotIn")) for term in _NODE_TERMS),
)
"""What labels or fields must be: each a key, one of these operators, and its values."""

_ANY_NUMBER: Final = 2**31

RANGES: Final[Sequence[tuple[str, str, range]]] = (
    ("", "activeDeadlineSeconds", range(1, _ANY_NUMBER)),
    (_SPREAD, "minDomains", range(1, _ANY_NUMBER)),
)
"""Numbers from and to, where they are given."""

GIVEN: Final[Sequence[tuple[str, str, range]]] = (
    (_SPREAD, "maxSkew", range(1, _ANY_NUMBER)),
    *((rather, "weight", range(1, 101)) for rather in (_PREFERRED, _RATHER_NEAR, _RATHER_FAR)),
)
"""Numbers from and to that must be given."""

NAMES: Final = (
    ("hostname", label_problems),
    ("subdomain", label_problems),
    ("serviceAccountName", subdomain_problems),
)
"""Names that are given must be some."""


def check_fields(spec: Mapping[str, Any], path: str, findings: Findings) -> None:
    """Every table, for the pod spec at ``path``."""
    _check_parts(spec, path, findings)
    _check_values(spec, path, findings)
    for key, problems_of in NAMES:
        name = text(spec.get(key))
        problems = problems_of(name) if name else []
        if problems:
            findings.refuse(at(path, key), f'Invalid value: "{name}": {", ".join(problems)}')
    check_labels(spec.get("nodeSelector"), at(path, "nodeSelector"), findings)
    for place, operators in REQUIREMENTS:
        for where, requirement in _places(spec, place, path):
            _check_requirement(requirement, operators, where, findings)


def check_labels(labels: object, path: str, findings: Findings) -> None:
    """A map of labels."""
    for key, value in mapping(labels).items():
        problems = qualified_problems(key)
        if problems:
            findings.refuse(path, f'Invalid value: "{key}": {", ".join(problems)}')
        problems = label_value_problems(text(value))
        if problems:
            findings.refuse(path, f'Invalid value: "{value}": {", ".join(problems)}')


def _check_parts(spec: Mapping[str, Any], path: str, findings: Findings) -> None:
    for place, key in REQUIRED:
        for where, holder in _places(spec, place, path):
            if not text(holder.get(key)):
                findings.refuse(at(where, key), "Required value")
    for place, parts in ONE_OF:
        for where, holder in _places(spec, place, path):
            _check_one_of(holder, parts, where, findings)


def _check_values(spec: Mapping[str, Any], path: str, findings: Findings) -> None:
    for place, key, choices in CHOICES:
        for where, holder in _places(spec, place, path):
            _check_choice(holder, key, choices, path=where, findings=findings)
    for place, key, fit in RANGES:
        for where, holder in _places(spec, place, path):
            _check_range(number_or_none(holder.get(key)), fit, at(where, key), findings)
    for place, key, fit in GIVEN:
        for where, holder in _places(spec, place, path):
            _check_range(number_or_none(holder.get(key)) or 0, fit, at(where, key), findings)


def _check_one_of(
    holder: Mapping[str, Any], parts: Sequence[str], path: str, findings: Findings
) -> None:
    given = sum(holder.get(part) is not None for part in parts)
    if given != 1:
        known = ", ".join(f"`{part}`" for part in parts)
        many = "must specify one of" if not given else "may not have more than one of"
        findings.refuse(path, f"Invalid value: {many}: {known}")


def _check_choice(
    holder: Mapping[str, Any],
    key: str,
    choices: Sequence[str],
    *,
    path: str,
    findings: Findings,
) -> None:
    chosen = text(holder.get(key))
    if chosen and chosen not in choices:
        known = ", ".join(f'"{each}"' for each in choices)
        findings.refuse(at(path, key), f'Unsupported value: "{chosen}": supported values: {known}')


def _check_requirement(
    requirement: Mapping[str, Any], operators: Sequence[str], path: str, findings: Findings
) -> None:
    operator, values = text(requirement.get("operator")), requirement.get("values") or ()
    for key in ("key", "operator"):
        if not text(requirement.get(key)):
            findings.refuse(at(path, key), "Required value")
    _check_choice(requirement, "operator", operators, path=path, findings=findings)
    if operator in {"In", "NotIn"} and not values:
        findings.refuse(at(path, "values"), "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in {"Exists", "DoesNotExist"} and values:
        findings.refuse(
            at(path, "values"),
            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        )
    elif operator in {"Gt", "Lt"} and len(values) != 1:
        findings.refuse(
            at(path, "values"), "must be specified single value when `operator` is 'Lt' or 'Gt'"
        )


def _check_range(number: int | None, fit: range, path: str, findings: Findings) -> None:
    if number is None or number in fit:
        return
    told = f"between {fit.start} and {fit.stop - 1}, inclusive"
    if fit.stop == _ANY_NUMBER:
        told = f"greater than or equal to {fit.start}"
    findings.refuse(path, f"Invalid value: {number}: must be {told}")


def _places(
    spec: Mapping[str, Any], place: str, path: str
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each object at ``place`` that is there, with its path."""
    if not place:
        yield path, spec
        return
    step, _, rest = place.partition(".")
    key = step.removesuffix("[]")
    if step == key:
        if isinstance(spec.get(key), dict):
            yield from _places(spec[key], rest, at(path, key))
        return
    for each_key in _CONTAINERS if key == "containers" else (key,):
        for index, each in enumerate(mappings(spec.get(each_key))):
            yield from _places(each, rest, at(path, each_key, index))


def check_told(
    given: Mapping[str, Any],
    path: str,
    findings: Findings,
    *,
    before: Mapping[str, Any] | None = None,
) -> None:
    """Refuse annotations by which a pod without a node would choose its devices itself.

    Those that say what they said ``before`` are left alone.
    """
    for key in given:
        if tells_devices(key) and given[key] != (before or {}).get(key):
            why = "only the scheduler says which devices a pod has, when it is bound: remove it"
            findings.refuse(f"{path}.annotations[{key}]", why)
