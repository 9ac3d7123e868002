"""The controllers as installed: rights for what they follow and make, and nothing wider."""

from pathlib import Path
from typing import Any

import yaml

from app.main.controller_list import OFFERS, indexes
from app.settings.controllers import ControllersSettings
from app.wire.kinds import CONFIG_MAPS, Resource

INSTALLED: list[dict[str, Any]] = list(
    yaml.safe_load_all(
        (Path(__file__).resolve().parents[2] / "manifests" / "install.yaml").read_text("utf-8")
    )
)
NAME = "pumice-controllers"


def installed(kind: str) -> dict[str, Any]:
    (found,) = [d for d in INSTALLED if d["kind"] == kind and d["metadata"]["name"] == NAME]
    return found


def rights() -> dict[str, set[str]]:
    """Verbs by resource, in the whole cluster."""
    found: dict[str, set[str]] = {}
    for rule in installed("ClusterRole")["rules"]:
        assert "*" not in {*rule["apiGroups"], *rule["resources"], *rule["verbs"]}
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                found.setdefault(f"{group}/{resource}", set()).update(rule["verbs"])
    return found


def named(resource: Resource) -> str:
    return f"{resource.api_version.rpartition('/')[0]}/{resource.plural}"


def test_they_may_list_and_watch_what_they_follow_and_nothing_else() -> None:
    listed = {name for name, verbs in rights().items() if "list" in verbs}

    assert listed == {named(resource) for resource in indexes(OFFERS)} - {named(CONFIG_MAPS)}
    assert listed == {name for name, verbs in rights().items() if "watch" in verbs}


def named_rights() -> dict[str, tuple[list[str], set[str]]]:
    """Names and verbs by resource, of objects in their own namespace."""
    rules = [rule for rule in installed("Role")["rules"] if "resourceNames" in rule]
    return {rule["resources"][0]: (rule["resourceNames"], set(rule["verbs"])) for rule in rules}


def test_the_conf_of_discovery_and_its_secret_are_read_by_name_in_their_namespace() -> None:
    assert named_rights()["configmaps"] == (
        [ControllersSettings().discovery_config_map],
        {"get", "list", "watch"},
    )
    assert named_rights()["secrets"] == (["ufm-credentials"], {"get"})


def test_what_they_do_to_kinds_of_others_is_bounded() -> None:
    may = rights()

    assert may["/persistentvolumeclaims"] == {"get", "create"}
    assert may["/nodes"] == {"get", "list", "watch"}
    assert "list" not in may["/secrets"]
    assert not {name for name in may if name.startswith("rbac.")}


def test_one_of_them_works_by_the_lease_it_may_write() -> None:
    (container,) = installed("Deployment")["spec"]["template"]["spec"]["containers"]

    assert named_rights()["leases"] == (
        [ControllersSettings().leader_elect_resource_name],
        {"get", "update"},
    )
    assert "--leader-elect=true" in container["args"]
    assert installed("Role")["metadata"]["namespace"] == (
        ControllersSettings().leader_elect_resource_namespace
    )


def test_the_kubelet_reaches_the_health_checks() -> None:
    (container,) = installed("Deployment")["spec"]["template"]["spec"]["containers"]
    (port,) = container["ports"]

    assert f"--healthz-address=0.0.0.0:{port['containerPort']}" in container["args"]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"]["port"] == port["name"]
