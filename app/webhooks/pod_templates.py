"""Pod templates: what the API server would refuse in each pod made from them.

The template of a task has no schema, so without this a job is accepted and then fails at every pod.
Only what users get wrong is checked (names, images, quantities, references inside the pod); the
pods themselves still meet the API server's own validation.
"""

from collections.abc import Mapping
from typing import Any

from app.webhooks.findings import Findings, at
from app.webhooks.names import is_variable, label_problems
from app.webhooks.reading import amount, mapping, mappings, number_or_none, text

RESTART_POLICIES = ("Always", "OnFailure", "Never")
PULL_POLICIES = ("Always", "IfNotPresent", "Never")
PROTOCOLS = ("TCP", "UDP", "SCTP")
_PORTS = range(1, 65536)


def check_template(template: object, path: str, findings: Findings) -> None:
    """The pod template at ``path``."""
    checking = _Checking(mapping(mapping(template).get("spec")), at(path, "spec"), findings)
    checking.all()


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
        self._check_choice(spec, "restartPolicy", RESTART_POLICIES, path)
        if (number_or_none(spec.get("terminationGracePeriodSeconds")) or 0) < 0:
            where = at(path, "terminationGracePeriodSeconds")
            self._findings.refuse(where, "must be greater than or equal to 0")

    def _check_volumes(self) -> None:
        for index, volume in enumerate(mappings(self._spec.get("volumes"))):
            where = at(self._path, "volumes", index, "name")
            self._check_name(text(volume.get("name")), where, self._volumes)

    def _check_container(self, container: Mapping[str, Any], path: str) -> None:
        self._check_name(text(container.get("name")), at(path, "name"), self._containers)
        image = text(container.get("image"))
        if not image:
            self._findings.refuse(at(path, "image"), "Required value")
        elif image != image.strip():
            self._findings.refuse(at(path, "image"), "must not have leading or trailing whitespace")
        self._check_choice(container, "imagePullPolicy", PULL_POLICIES, path)
        self._check_resources(mapping(container.get("resources")), at(path, "resources"))
        self._check_environment(container, path)
        self._check_ports(container, path)
        self._check_mounts(container, path)

    def _check_name(self, name: str, path: str, seen: set[str]) -> None:
        if not name:
            self._findings.refuse(path, "Required value")
            return
        problems = label_problems(name)
        if problems:
            self._findings.refuse(path, f'Invalid value: "{name}": {", ".join(problems)}')
        if name in seen:
            self._findings.refuse(path, f'Duplicate value: "{name}"')
        seen.add(name)

    def _check_choice(
        self, holder: Mapping[str, Any], key: str, choices: tuple[str, ...], path: str
    ) -> None:
        chosen = holder.get(key)
        if chosen and chosen not in choices:
            known = ", ".join(f'"{each}"' for each in choices)
            self._findings.refuse(
                at(path, key), f'Unsupported value: "{chosen}": supported values: {known}'
            )

    def _check_resources(self, resources: Mapping[str, Any], path: str) -> None:
        requests, limits = mapping(resources.get("requests")), mapping(resources.get("limits"))
        for kind, quantities in (("limits", limits), ("requests", requests)):
            for name, written in quantities.items():
                self._check_quantity(name, written, f"{path}.{kind}[{name}]")
        for name, written in requests.items():
            asked, most = amount(name, written), amount(name, limits.get(name))
            if asked is not None and most is not None and asked > most:
                self._findings.refuse(
                    f"{path}.requests[{name}]",
                    f'Invalid value: "{written}": must be less than or equal to {name} limit of '
                    f"{limits[name]}",
                )

    def _check_quantity(self, name: str, written: object, path: str) -> None:
        number = amount(name, written)
        if number is None:
            self._findings.refuse(
                path,
                f'Invalid value: "{written}": quantities must match the regular expression '
                "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            )
        elif number < 0:
            self._findings.refuse(
                path, f'Invalid value: "{written}": must be greater than or equal to 0'
            )

    def _check_environment(self, container: Mapping[str, Any], path: str) -> None:
        for index, variable in enumerate(mappings(container.get("env"))):
            where, name = at(path, "env", index, "name"), text(variable.get("name"))
            if not name:
                self._findings.refuse(where, "Required value")
            elif not is_variable(name):
                self._findings.refuse(
                    where, f'Invalid value: "{name}": not a name of an environment variable'
                )

    def _check_ports(self, container: Mapping[str, Any], path: str) -> None:
        for index, port in enumerate(mappings(container.get("ports"))):
            where = at(path, "ports", index)
            if number_or_none(port.get("containerPort")) not in _PORTS:
                self._findings.refuse(
                    at(where, "containerPort"), "must be between 1 and 65535, inclusive"
                )
            self._check_choice(port, "protocol", PROTOCOLS, where)

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
