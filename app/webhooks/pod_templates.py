"""Pod templates: what the API server would refuse in each pod made from them.

The template of a task has no schema, so without this a job is accepted and then fails at every pod.
First the types of all fields are judged, then what users get wrong (names, images, quantities,
choices, references inside the pod); the pods themselves still meet the API server's own validation.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from app.model.names import (
    is_variable,
    label_problems,
    port_name_problems,
    qualified_problems,
)
from app.webhooks.pod_resources import check_amounts, check_resources
from app.webhooks.pod_rules import check_fields, check_labels, check_told
from app.wire.findings import Findings, at
from app.wire.pod_types import check_types
from app.wire.reading import mapping, mappings, number_or_none, text

_PORTS = range(1, 65536)


def check_template(template: object, path: str, findings: Findings) -> None:
    """The pod template at ``path``; where a type is wrong, nothing more is said."""
    types, rest = Findings(), Findings()
    check_types(template, path, types)
    metadata, spec = (mapping(mapping(template).get(part)) for part in ("metadata", "spec"))
    check_labels(metadata.get("labels"), at(path, "metadata.labels"), rest)
    check_told(mapping(metadata.get("annotations")), at(path, "metadata"), rest)
    check_fields(spec, at(path, "spec"), rest)
    _Checking(spec, at(path, "spec"), rest).all()
    wrong = [error.path for error in types.errors]
    findings.warnings += types.warnings
    findings.errors += types.errors
    findings.errors += [error for error in rest.errors if not _is_inside(error.path, wrong)]


def _is_inside(path: str, others: Sequence[str]) -> bool:
    return any(
        path.startswith(other) and (path == other or path[len(other)] in ".[") for other in others
    )


class _Checking:
    """One pod spec; names that must differ are remembered."""

    def __init__(self, spec: Mapping[str, Any], path: str, findings: Findings) -> None:
        self._spec = spec
        self._path = path
        self._findings = findings
        self._containers: set[str] = set()
        self._volumes: set[str] = set()

    def all(self) -> None:
        spec, path = self._spec, self._path
        self._check_volumes()
        if not mappings(spec.get("containers")):
            self._findings.refuse(at(path, "containers"), "Required value")
        for kind in ("initContainers", "containers"):
            for index, container in enumerate(mappings(spec.get(kind))):
                self._check_container(container, at(path, kind, index))
        for index, toleration in enumerate(mappings(spec.get("tolerations"))):
            self._check_toleration(toleration, at(path, "tolerations", index))
        self._check_gates()
        check_resources(mapping(spec.get("resources")), at(path, "resources"), self._findings)
        check_amounts(mapping(spec.get("overhead")), at(path, "overhead"), self._findings)

    def _check_volumes(self) -> None:
        for index, volume in enumerate(mappings(self._spec.get("volumes"))):
            where = at(self._path, "volumes", index, "name")
            self._check_name(text(volume.get("name")), where, self._volumes)

    def _check_gates(self) -> None:
        seen: set[str] = set()
        for index, gate in enumerate(mappings(self._spec.get("schedulingGates"))):
            where, name = at(self._path, "schedulingGates", index), text(gate.get("name"))
            self._check_form(name, where, seen, qualified_problems(name))

    def _check_container(self, container: Mapping[str, Any], path: str) -> None:
        self._check_name(text(container.get("name")), at(path, "name"), self._containers)
        image = text(container.get("image"))
        if not image:
            self._findings.refuse(at(path, "image"), "Required value")
        elif image != image.strip():
            self._findings.refuse(at(path, "image"), "must not have leading or trailing whitespace")
        check_resources(mapping(container.get("resources")), at(path, "resources"), self._findings)
        for index, variable in enumerate(mappings(container.get("env"))):
            self._check_variable(variable, at(path, "env", index))
        self._check_ports(container, path)
        self._check_mounts(container, path)

    def _check_name(self, name: str, path: str, seen: set[str]) -> None:
        if not name:
            self._findings.refuse(path, "Required value")
        else:
            self._check_form(name, path, seen, label_problems(name))

    def _check_form(self, name: str, path: str, seen: set[str], problems: Sequence[str]) -> None:
        """A name that is there: its form has these problems, and it may be there only once."""
        if problems:
            self._findings.refuse(path, f'Invalid value: "{name}": {", ".join(problems)}')
        if name in seen:
            self._findings.refuse(path, f'Duplicate value: "{name}"')
        seen.add(name)

    def _check_variable(self, variable: Mapping[str, Any], path: str) -> None:
        name = text(variable.get("name"))
        if not name:
            self._findings.refuse(at(path, "name"), "Required value")
        elif not is_variable(name):
            self._findings.refuse(
                at(path, "name"),
                f'Invalid value: "{name}": a valid environment variable name must consist only of '
                "printable ASCII characters other than '='",
            )
        if text(variable.get("value")) and variable.get("valueFrom") is not None:
            self._findings.refuse(
                at(path, "valueFrom"), "may not be specified when `value` is not empty"
            )

    def _check_ports(self, container: Mapping[str, Any], path: str) -> None:
        names: set[str] = set()
        for index, port in enumerate(mappings(container.get("ports"))):
            where, name = at(path, "ports", index), text(port.get("name"))
            if number_or_none(port.get("containerPort")) not in _PORTS:
                self._findings.refuse(
                    at(where, "containerPort"), "must be between 1 and 65535, inclusive"
                )
            problems = port_name_problems(name) if name else []
            if problems:
                self._findings.refuse(
                    at(where, "name"), f'Invalid value: "{name}": {", ".join(problems)}'
                )
            if name in names:
                self._findings.refuse(at(where, "name"), f'Duplicate value: "{name}"')
            names |= {name} - {""}

    def _check_mounts(self, container: Mapping[str, Any], path: str) -> None:
        seen: set[str] = set()
        for index, mount in enumerate(mappings(container.get("volumeMounts"))):
            where, mount_path = at(path, "volumeMounts", index), text(mount.get("mountPath"))
            name = text(mount.get("name"))
            if name not in self._volumes:
                self._findings.refuse(at(where, "name"), f'Not found: "{name}"')
            if not mount_path:
                self._findings.refuse(at(where, "mountPath"), "Required value")
            elif mount_path in seen:
                self._findings.refuse(
                    at(where, "mountPath"), f'Invalid value: "{mount_path}": must be unique'
                )
            seen.add(mount_path)

    def _check_toleration(self, toleration: Mapping[str, Any], path: str) -> None:
        key, value = text(toleration.get("key")), text(toleration.get("value"))
        exists = toleration.get("operator") == "Exists"
        if not key and not exists:
            self._findings.refuse(
                at(path, "operator"),
                "operator must be Exists when `key` is empty, which means "
                '"match all values and all keys"',
            )
        if exists and value:
            self._findings.refuse(
                at(path, "operator"),
                f"Invalid value: \"{value}\": value must be empty when `operator` is 'Exists'",
            )
        lasting = toleration.get("tolerationSeconds") is not None
        if lasting and toleration.get("effect") != "NoExecute":
            self._findings.refuse(
                at(path, "effect"), "effect must be 'NoExecute' when `tolerationSeconds` is set"
            )
