"""What is installed: the rendered file is the base, its parts fit together, rights are no wider.

The base is read here as kustomize reads it, as far as it uses kustomize (resources, folders of
resources, generated ConfigMaps), so that the rendered file is checked everywhere; where kubectl is
installed its own rendering is compared too.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.wire import manifests
from app.wire.scheduler_conf import parse_scheduler_conf

ROOT = Path(__file__).resolve().parents[2]
BASE = ROOT / "manifests"
CONF = ROOT / "scheduler-config" / "volcano-scheduler.conf"
PREEMPTING = ROOT / "scheduler-config" / "volcano-scheduler-preempting.conf"
HOW = "kubectl kustomize manifests > manifests/install.yaml"

Document = dict[str, Any]


def load(path: Path) -> list[Document]:
    return list(yaml.load_all(path.read_text(encoding="utf-8"), yaml.CSafeLoader))


def generated(folder: Path, entry: Document) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": entry["name"], "namespace": entry["namespace"]},
        "data": {name: (folder / name).read_text(encoding="utf-8") for name in entry["files"]},
    }


def build(folder: Path) -> list[Document]:
    """Return the documents of a kustomization that transforms nothing."""
    (kustomization,) = load(folder / "kustomization.yaml")
    assert set(kustomization) <= {
        "apiVersion",
        "kind",
        "resources",
        "configMapGenerator",
        "generatorOptions",
    }
    documents = [generated(folder, entry) for entry in kustomization.get("configMapGenerator", [])]
    for resource in kustomization.get("resources", []):
        path = (folder / resource).resolve()
        documents += build(path) if path.is_dir() else load(path)
    return documents


def identity(document: Document) -> tuple[str, str, str]:
    metadata = document["metadata"]
    return document["kind"], metadata.get("namespace", ""), metadata["name"]


def by_identity(documents: list[Document]) -> dict[tuple[str, str, str], Document]:
    indexed = {identity(document): document for document in documents}
    assert len(indexed) == len(documents)
    return indexed


INSTALLED = by_identity(load(BASE / "install.yaml"))


def installed(kind: str, name: str, namespace: str = "pumice-system") -> Document:
    return INSTALLED[kind, namespace, name]


def deployed() -> tuple[Document, Document, Document]:
    """Return the pod's spec, the extender and the kube-scheduler in it."""
    pod = installed("Deployment", "pumice-scheduler")["spec"]["template"]["spec"]
    (extender,) = pod["initContainers"]
    (scheduler,) = pod["containers"]
    return pod, extender, scheduler


def test_the_rendered_file_is_the_base() -> None:
    assert by_identity(build(BASE)) == INSTALLED, f"render it anew: {HOW}"


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_the_rendered_file_is_what_kubectl_renders() -> None:
    result = subprocess.run(
        ["kubectl", "kustomize", str(BASE)], capture_output=True, text=True, check=True, timeout=60
    )

    assert by_identity(list(yaml.load_all(result.stdout, yaml.CSafeLoader))) == INSTALLED, (
        f"render anew: {HOW}"
    )


def test_every_manifest_is_in_the_base_but_options() -> None:
    (kustomization,) = load(BASE / "kustomization.yaml")
    paths = (path.relative_to(BASE) for path in BASE.rglob("*.yaml"))
    files = {str(path) for path in paths if path.parts[0] != "monitoring"}

    assert files - set(kustomization["resources"]) == {
        "install.yaml",
        "kustomization.yaml",
        "policy/complete-objects.yaml",
        "policy/mark-pods.yaml",
        "policy/validate-submissions.yaml",
    }


def test_everything_namespaced_is_in_our_namespace_but_what_is_read_in_kube_system() -> None:
    elsewhere = [
        key for key in INSTALLED if key[1] not in {"", "pumice-system"} or key[0] == "Namespace"
    ]

    assert sorted(elsewhere) == [
        ("Namespace", "", "pumice-system"),
        ("Role", "kube-system", "pumice-extender-devices"),
        ("RoleBinding", "kube-system", "pumice-extender-devices"),
        ("RoleBinding", "kube-system", "pumice-scheduler-authentication-reader"),
    ]


def test_the_scheduler_reads_form_a_from_its_config_map() -> None:
    pod, _, scheduler = deployed()
    config_map = installed("ConfigMap", "pumice-scheduler-config")
    volumes = {volume["name"]: volume for volume in pod["volumes"]}

    assert config_map["data"] == {"form-a.yaml": manifests.scheduler_config_text("a")}
    assert "--config=/etc/kube-scheduler/form-a.yaml" in scheduler["args"]
    (mount,) = scheduler["volumeMounts"]
    assert mount["mountPath"] == "/etc/kube-scheduler"
    assert volumes[mount["name"]]["configMap"]["name"] == "pumice-scheduler-config"


def test_the_extender_reads_its_conf_from_volcanos_config_map() -> None:
    pod, extender, _ = deployed()
    config_map = installed("ConfigMap", "volcano-scheduler-configmap")
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    mounts = {mount["mountPath"]: mount for mount in extender["volumeMounts"]}

    assert config_map["data"] == {
        path.name: path.read_text(encoding="utf-8") for path in (CONF, PREEMPTING)
    }
    assert "--scheduler-conf=/etc/pumice/volcano-scheduler.conf" in extender["args"]
    # A file mounted by subPath would never see a change.
    assert "subPath" not in mounts["/etc/pumice"]
    volume = volumes[mounts["/etc/pumice"]["name"]]
    assert volume["configMap"]["name"] == "volcano-scheduler-configmap"


def test_the_conf_that_is_installed_packs_nodes_besides_what_is_built_in() -> None:
    conf = parse_scheduler_conf(CONF.read_text(encoding="utf-8"))
    assert conf.warnings == ()
    assert conf.actions == ("enqueue", "allocate", "backfill")
    assert [[plugin.name for plugin in tier] for tier in conf.tiers] == [
        ["priority", "gang", "conformance"],
        ["overcommit", "drf", "predicates", "proportion", "nodeorder", "binpack"],
    ]


def test_the_conf_beside_it_takes_room_back_and_lets_gangs_go_only_whole() -> None:
    conf = parse_scheduler_conf(PREEMPTING.read_text(encoding="utf-8"))
    assert conf.warnings == ()
    assert conf.actions == ("enqueue", "allocate", "preempt", "reclaim", "backfill")
    gang = conf.plugin("gang")
    assert gang is not None
    assert not gang.enabled("enablePreemptable")
    assert not gang.enabled("enableReclaimable")


def test_scheduler_and_extender_agree_on_port_and_scheduler_name() -> None:
    _, extender, _ = deployed()
    config = manifests.scheduler_config("a")

    assert config["extenders"][0]["urlPrefix"] == "http://127.0.0.1:8890/v1"
    assert "--bind-address=127.0.0.1" in extender["args"]
    assert "--port=8890" in extender["args"]
    assert [profile["schedulerName"] for profile in config["profiles"]] == ["volcano"]
    assert "--scheduler-name=volcano" in extender["args"]


def test_the_extender_is_a_sidecar_that_is_ready_before_the_scheduler_starts() -> None:
    _, extender, _ = deployed()

    assert extender["restartPolicy"] == "Always"
    assert "/readyz" in extender["startupProbe"]["exec"]["command"][-1]


@pytest.mark.parametrize("name", ["scheduler", "controllers", "webhooks"])
def test_a_pod_says_where_its_metrics_are(name: str) -> None:
    template = installed("Deployment", f"pumice-{name}")["spec"]["template"]
    told = template["metadata"]["annotations"]
    spec = template["spec"]
    containers = [*spec["containers"], *spec.get("initContainers", [])]
    ports = {
        str(port["containerPort"]): port["name"]
        for container in containers
        for port in container.get("ports", [])
    }

    assert told["prometheus.io/scrape"] == "true"
    assert told["prometheus.io/path"] == "/metrics"
    is_https = ports[told["prometheus.io/port"]] == "https"
    assert told.get("prometheus.io/scheme", "http") == ("https" if is_https else "http")


@pytest.mark.parametrize("name", ["scheduler", "controllers", "webhooks"])
def test_only_ports_that_there_are_can_be_reached_and_memory_has_an_end(name: str) -> None:
    policy = installed("NetworkPolicy", f"pumice-{name}")["spec"]
    template = installed("Deployment", f"pumice-{name}")["spec"]["template"]
    containers = [*template["spec"]["containers"], *template["spec"].get("initContainers", [])]
    ports = {port["name"] for container in containers for port in container.get("ports", [])}
    opened = {port["port"] for rule in policy["ingress"] for port in rule["ports"]}

    assert policy["podSelector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    assert policy["policyTypes"] == ["Ingress"]
    assert opened == ports
    assert all("memory" in container["resources"]["limits"] for container in containers)


def test_only_the_controllers_and_who_reads_metrics_reach_the_extender() -> None:
    rules = installed("NetworkPolicy", "pumice-scheduler")["spec"]["ingress"]
    controllers = installed("Deployment", "pumice-controllers")["spec"]["template"]["metadata"]
    near, far = (rule["from"] for rule in rules)

    assert near[0]["podSelector"]["matchLabels"].items() <= controllers["labels"].items()
    assert far == [{"namespaceSelector": {"matchLabels": {"pumice.sh/reads-metrics": "true"}}}]


@pytest.mark.parametrize("name", ["scheduler", "controllers", "webhooks"])
def test_no_service_of_the_namespace_becomes_an_option(name: str) -> None:
    spec = installed("Deployment", f"pumice-{name}")["spec"]["template"]["spec"]

    assert spec["enableServiceLinks"] is False


@pytest.mark.parametrize("probe", ["startupProbe", "readinessProbe", "livenessProbe"])
def test_a_probe_of_the_extender_is_a_program_that_asks_its_port(probe: str) -> None:
    _, extender, _ = deployed()
    *interpreter, program = extender[probe]["exec"]["command"]

    compile(program, probe, "exec")
    assert interpreter == ["python", "-c"]
    assert '"127.0.0.1", 8890' in program


def test_both_containers_are_confined_and_ask_for_resources() -> None:
    pod, *containers = deployed()

    assert pod["securityContext"]["runAsNonRoot"] is True
    for container in containers:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert set(container["resources"]["requests"]) == {"cpu", "memory"}
        assert set(container["resources"]["limits"]) == {"memory"}
        assert container["livenessProbe"]
        assert container["readinessProbe"]


def test_the_scheduler_never_waits_for_itself() -> None:
    pod, _, _ = deployed()

    assert pod["schedulerName"] == "default-scheduler"


def test_the_scheduler_image_is_the_version_we_test_against() -> None:
    _, _, scheduler = deployed()
    go_mod = (ROOT / "tests" / "controlplane" / "go.mod").read_text(encoding="utf-8")
    tested = re.search(r"k8s\.io/kubernetes (v\S+)", go_mod)

    assert tested is not None
    assert scheduler["image"] == f"registry.k8s.io/kube-scheduler:{tested[1]}"


def test_the_scheduler_may_write_the_lease_that_its_configuration_names() -> None:
    election = manifests.scheduler_config("a")["leaderElection"]
    role = installed("Role", "pumice-scheduler-lease", election["resourceNamespace"])

    assert role["rules"][1]["resourceNames"] == [election["resourceName"]]
    assert role["rules"][1]["verbs"] == ["get", "update"]


def test_the_extender_has_exactly_these_rights_in_the_whole_cluster() -> None:
    rights = {
        (f"{group}/{resource}".lstrip("/"), verb)
        for rule in installed("ClusterRole", "pumice-extender", "")["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    read = [
        "pods",
        "nodes",
        "namespaces",
        "resourcequotas",
        "policy/poddisruptionbudgets",
        "scheduling.k8s.io/priorityclasses",
        "nodeinfo.volcano.sh/numatopologies",
        "resource.k8s.io/deviceclasses",
        "resource.k8s.io/resourceclaims",
        "resource.k8s.io/resourceclaimtemplates",
        "resource.k8s.io/resourceslices",
        "persistentvolumeclaims",
        "persistentvolumes",
        "storage.k8s.io/storageclasses",
        "storage.k8s.io/csinodes",
        "storage.k8s.io/csidrivers",
        "storage.k8s.io/csistoragecapacities",
        "storage.k8s.io/volumeattachments",
        "topology.volcano.sh/hypernodes",
        "batch.volcano.sh/jobs",
        "scheduling.volcano.sh/podgroups",
        "scheduling.volcano.sh/queues",
    ]

    assert rights == {
        (resource, verb) for resource in read for verb in ("get", "list", "watch")
    } | {
        ("apps/replicasets", "get"),
        ("apps/statefulsets", "get"),
        ("apps/daemonsets", "get"),
        ("batch/jobs", "get"),
        ("metrics.k8s.io/nodes", "list"),
        ("custom.metrics.k8s.io/nodes/node_cpu_usage_avg", "get"),
        ("custom.metrics.k8s.io/nodes/node_memory_usage_avg", "get"),
        ("authentication.k8s.io/tokenreviews", "create"),
        ("authorization.k8s.io/subjectaccessreviews", "create"),
        ("pods", "patch"),
        ("pods/status", "patch"),
        ("pods/binding", "create"),
        ("pods/eviction", "create"),
        ("events", "create"),
        ("events", "patch"),
        ("scheduling.volcano.sh/podgroups", "update"),
        ("scheduling.volcano.sh/podgroups", "patch"),
        ("scheduling.volcano.sh/podgroups/status", "update"),
        ("scheduling.volcano.sh/podgroups/status", "patch"),
        ("scheduling.volcano.sh/queues", "create"),
        ("scheduling.volcano.sh/queues/status", "patch"),
    }


def test_the_extender_keeps_its_intents_in_its_own_namespace_only() -> None:
    rules = installed("Role", "pumice-extender-intents")["rules"]
    bound = installed("RoleBinding", "pumice-extender-intents")["subjects"]

    assert rules == [
        {
            "apiGroups": [""],
            "resources": ["configmaps"],
            "verbs": ["get", "list", "create", "delete"],
        }
    ]
    assert [each["name"] for each in bound] == ["pumice-extender", "pumice-scheduler"]


def test_every_binding_names_accounts_and_roles_that_exist() -> None:
    builtin = {
        ("ClusterRole", "", "system:kube-scheduler"),
        ("ClusterRole", "", "system:volume-scheduler"),
        ("Role", "kube-system", "extension-apiserver-authentication-reader"),
    }
    bindings = [
        document
        for (kind, _, _), document in INSTALLED.items()
        if kind in {"ClusterRoleBinding", "RoleBinding"}
    ]

    assert len(bindings) >= 8
    for binding in bindings:
        role = binding["roleRef"]
        namespace = "" if role["kind"] == "ClusterRole" else binding["metadata"]["namespace"]
        assert (role["kind"], namespace, role["name"]) in INSTALLED.keys() | builtin
        for subject in binding["subjects"]:
            assert (subject["kind"], subject["namespace"], subject["name"]) in INSTALLED


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_in_another_namespace_every_program_looks_for_its_lease_there(tmp_path: Path) -> None:
    overlay = {"namespace": "batch", "resources": [os.path.relpath(BASE, tmp_path)]}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    command = ["kubectl", "kustomize", str(tmp_path)]
    rendered = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    pods = [
        document["spec"]["template"]["spec"]
        for document in yaml.safe_load_all(rendered.stdout)
        if document["kind"] == "Deployment"
    ]
    containers = [c for pod in pods for c in pod["containers"] + pod.get("initContainers", [])]
    from_pod = {
        container["name"]: {
            variable["name"]
            for variable in container.get("env", [])
            if variable["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.namespace"}}
        }
        for container in containers
    }

    assert "pumice-system" not in yaml.safe_dump(pods)
    lease = "PUMICE_LEADER_ELECT_RESOURCE_NAMESPACE"
    assert from_pod == {
        "extender": {lease},
        "kube-scheduler": {"NAMESPACE"},
        "controllers": {lease},
        "webhooks": {lease, "PUMICE_WEBHOOK_NAMESPACE"},
    }
    (scheduler,) = (each for each in containers if each["name"] == "kube-scheduler")
    assert "--leader-elect-resource-namespace=$(NAMESPACE)" in scheduler["args"]


@pytest.mark.parametrize("name", ["gate-pods", "mark-pods"])
def test_a_policy_is_bound_and_uses_no_list_patch(name: str) -> None:
    policy, binding, *_ = load(BASE / "policy" / f"{name}.yaml")

    assert policy["metadata"]["name"] == f"{name}.pumice.sh"
    assert binding["spec"]["policyName"] == policy["metadata"]["name"]
    # The list form of a JSONPatch makes kube-apiserver 1.36.3 panic.
    assert {mutation["patchType"] for mutation in policy["spec"]["mutations"]} == {
        "ApplyConfiguration"
    }


def test_a_pod_without_the_mark_is_refused_by_a_policy_that_is_bound() -> None:
    marks, _, policy, binding = load(BASE / "policy" / "mark-pods.yaml")

    assert [each["spec"]["failurePolicy"] for each in (marks, policy)] == ["Fail", "Fail"]
    assert binding["spec"]["policyName"] == policy["metadata"]["name"]
    assert binding["spec"]["validationActions"] == ["Deny"]


def test_a_failing_gate_admits_pods() -> None:
    policy = installed("MutatingAdmissionPolicy", "gate-pods.pumice.sh", "")

    assert policy["spec"]["failurePolicy"] == "Ignore"
