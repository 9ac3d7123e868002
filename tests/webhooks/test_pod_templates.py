"""What the template of a task is refused for, as each pod made from it would be."""

from __future__ import annotations

from typing import Any

import pytest

from app.webhooks.pod_templates import check_template
from app.wire.findings import Findings
from app.wire.pod_types import SHAPES, check_types
from app.wire.unstructured import Object
from tests.webhooks.objects import GPU, IS_A, SPREAD, pod_spec, template_problems


def main(**fields: Any) -> Object:
    """The spec of a pod whose container has these fields."""
    return pod_spec(containers=[{"name": "main", "image": "busybox", **fields}])


def asking(requests: Any, limits: Any) -> Object:
    return main(resources={"requests": requests, "limits": limits})


def near(**term: Any) -> Object:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return pod_spec(affinity={"podAntiAffinity": required})


def on_nodes(*terms: Any) -> Object:
    required = {"nodeSelectorTerms": [{"matchExpressions": list(terms)}]}
    kind = "requiredDuringSchedulingIgnoredDuringExecution"
    return pod_spec(affinity={"nodeAffinity": {kind: required}})


def rather(weight: Any) -> Object:
    preferred = [{"weight": weight, "preference": {"matchExpressions": []}}]
    kind = "preferredDuringSchedulingIgnoredDuringExecution"
    return pod_spec(affinity={"nodeAffinity": {kind: preferred}})


def of_fields(*terms: Any) -> Object:
    required = {"nodeSelectorTerms": [{"matchFields": list(terms)}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def rather_near(**term: Any) -> Object:
    return {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}


def volume(**source: Any) -> Object:
    return pod_spec(volumes=[{"name": "v", **source}])


def tolerating(**toleration: Any) -> Object:
    return pod_spec(tolerations=[toleration])


def variable(**fields: Any) -> Object:
    return main(env=[{"name": "A", **fields}])


ACCEPTED: dict[str, Object] = {
    "nulls": main(
        command=None, env=None, ports=[], resources={"requests": None, "limits": {"cpu": None}}
    ),
    "command and arguments": main(command=["sh", "-c"], args=["sleep 1"], workingDir="/tmp"),
    "a variable with dots, dashes and digits": main(env=[{"name": "1.a-b c", "value": "x"}]),
    "variables from elsewhere": main(
        env=[
            {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "B", "value": "", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        ],
        envFrom=[{"configMapRef": {"name": "c"}}, {"secretRef": {"name": "s"}}],
    ),
    "whole devices": asking({GPU: "1000m"}, {GPU: 1}),
    "devices as limits only": asking({}, {GPU: 2}),
    "parts of native resources": asking(
        {"cpu": "1500m", "memory": 1.5, "ephemeral-storage": "1e9"}, {}
    ),
    "huge pages": asking({"hugepages-2Mi": "4Mi", "cpu": 1}, {"hugepages-2Mi": "4Mi"}),
    "ports by number and name": main(
        ports=[{"containerPort": 80, "name": "http"}, {"containerPort": 80, "protocol": "UDP"}],
        readinessProbe={"httpGet": {"port": "http"}},
        livenessProbe={"tcpSocket": {"port": 80}, "periodSeconds": 5},
    ),
    "a probe of a command": main(startupProbe={"exec": {"command": ["true"]}}),
    "volumes": pod_spec(
        volumes=[
            {"name": "a", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
            {"name": "b", "configMap": {"name": "c", "defaultMode": 0o644}},
            {"name": "c", "secret": {"secretName": "s"}},
            {"name": "d", "hostPath": {"path": "/d"}},
            {"name": "e", "persistentVolumeClaim": {"claimName": "c"}},
            {"name": "f", "nfs": {"server": "s", "path": "/"}},
            {"name": "g"},
        ]
    ),
    "tolerations": pod_spec(
        tolerations=[
            {"operator": "Exists"},
            {"key": "a", "value": "b", "effect": "NoSchedule"},
            {"key": "c", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5},
        ]
    ),
    "affinity of nodes": on_nodes({"key": "a", "operator": "In", "values": ["b"]}),
    "affinity of pods": near(topologyKey="kubernetes.io/hostname", labelSelector={}),
    "the most weight": rather(100),
    "spread": pod_spec(topologySpreadConstraints=[SPREAD]),
    "names": pod_spec(hostname="a", subdomain="b", serviceAccountName="c.d"),
    "gates": pod_spec(schedulingGates=[{"name": "a"}, {"name": "example.com/a_b"}]),
    "numbers": pod_spec(activeDeadlineSeconds=1, terminationGracePeriodSeconds=-1),
    "a node's labels": pod_spec(nodeSelector={"a.b/c": "d", "e": ""}),
    "the host's network": pod_spec(hostNetwork=True, dnsPolicy="ClusterFirstWithHostNet"),
    "an init container that stays": pod_spec(
        initContainers=[{"name": "i", "image": "i", "restartPolicy": "Always"}]
    ),
}


@pytest.mark.parametrize("spec", ACCEPTED.values(), ids=ACCEPTED)
def test_is_accepted(spec: Object) -> None:
    assert template_problems(spec) == []


REFUSED: dict[str, tuple[Object, str]] = {
    "a command that is a text": (
        main(command="sleep 1"),
        'containers[0].command: Invalid value: "sleep 1": must be a list',
    ),
    "an argument that is a number": (
        main(args=["-n", 1]),
        'containers[0].args[1]: Invalid value: "1": must be a string',
    ),
    "a variable that is a number": (
        variable(value=5),
        'containers[0].env[0].value: Invalid value: "5": must be a string',
    ),
    "a variable that is a flag": (
        variable(value=True),
        'containers[0].env[0].value: Invalid value: "true": must be a string',
    ),
    "variables as an object": (
        main(env={"A": "b"}),
        'containers[0].env: Invalid value: "{"A": "b"}": must be a list',
    ),
    "containers as an object": (
        {"containers": {"name": "main"}},
        'containers: Invalid value: "{"name": "main"}": must be a list',
    ),
    "an image that is a number": (
        main(image=5),
        'containers[0].image: Invalid value: "5": must be a string',
    ),
    "a port that is a text": (
        main(ports=[{"containerPort": "80"}]),
        'containers[0].ports[0].containerPort: Invalid value: "80": must be an integer',
    ),
    "a port that is a fraction": (
        main(readinessProbe={"httpGet": {"port": 8.5}}),
        'readinessProbe.httpGet.port: Invalid value: "8.5": must be an integer or a string',
    ),
    "a flag that is a text": (
        pod_spec(hostNetwork="true"),
        'hostNetwork: Invalid value: "true": must be true or false',
    ),
    "a node's label that is a flag": (
        pod_spec(nodeSelector={"gpu": True}),
        'nodeSelector[gpu]: Invalid value: "true": must be a string',
    ),
    "a size that is none": (
        volume(emptyDir={"sizeLimit": "big"}),
        'volumes[0].emptyDir.sizeLimit: Invalid value: "big": quantities must match the regular',
    ),
    "an amount that is a list": (
        asking({"cpu": [1]}, {}),
        'resources.requests[cpu]: Invalid value: "[1]": quantities must match the regular',
    ),
    "amounts that are a list": (
        asking(["cpu"], {}),
        'resources.requests: Invalid value: "["cpu"]": must be an object',
    ),
    "part of a device": (
        asking({GPU: "500m"}, {GPU: "500m"}),
        f'resources.limits[{GPU}]: Invalid value: "500m": must be an integer',
    ),
    "a device without a limit": (
        asking({GPU: 1}, {}),
        f"resources.limits[{GPU}]: Required value: Limit must be set for non overcommitable",
    ),
    "fewer devices than the limit": (
        asking({GPU: 1}, {GPU: 2}),
        f'resources.requests[{GPU}]: Invalid value: "1": must be equal to {GPU} limit of 2',
    ),
    "a resource that is none": (
        asking({"gpu": 1}, {}),
        'requests[gpu]: Invalid value: "gpu": must be a standard resource type or fully qualified',
    ),
    "a resource's name that is none": (
        asking({"a/b/c d": 1}, {"a/b/c d": 1}),
        'limits[a/b/c d]: Invalid value: "a/b/c d": must be a standard resource type or fully',
    ),
    "a value and where it is from": (
        variable(value="a", valueFrom={"fieldRef": {"fieldPath": "metadata.name"}}),
        "env[0].valueFrom: may not be specified when `value` is not empty",
    ),
    "a value from nowhere": (
        variable(valueFrom={}),
        "env[0].valueFrom: Invalid value: must specify one of: `fieldRef`, `resourceFieldRef`",
    ),
    "a value from two places": (
        variable(
            valueFrom={
                "fieldRef": {"fieldPath": "metadata.name"},
                "secretKeyRef": {"name": "s", "key": "k"},
            }
        ),
        "env[0].valueFrom: Invalid value: may not have more than one of: `fieldRef`",
    ),
    "a secret without a key": (
        variable(valueFrom={"secretKeyRef": {"name": "s"}}),
        "env[0].valueFrom.secretKeyRef.key: Required value",
    ),
    "variables from nowhere": (
        main(envFrom=[{"prefix": "A"}]),
        "envFrom[0]: Invalid value: must specify one of: `configMapRef`, `secretRef`",
    ),
    "variables of no config map": (
        main(envFrom=[{"configMapRef": {}}]),
        "envFrom[0].configMapRef.name: Required value",
    ),
    "a probe of nothing": (
        main(livenessProbe={"periodSeconds": 5}),
        "livenessProbe: Invalid value: must specify one of: `exec`, `httpGet`",
    ),
    "a port's name that is none": (
        main(ports=[{"containerPort": 1, "name": "A_b"}]),
        'ports[0].name: Invalid value: "A_b": must contain only alpha-numeric characters',
    ),
    "a port's name without a letter": (
        main(ports=[{"containerPort": 1, "name": "80"}]),
        'ports[0].name: Invalid value: "80": must contain at least one letter',
    ),
    "a port's name too long": (
        main(ports=[{"containerPort": 1, "name": "a" * 16}]),
        "must be no more than 15 characters",
    ),
    "a port's name twice": (
        main(ports=[{"containerPort": n, "name": "a"} for n in (1, 2)]),
        'ports[1].name: Duplicate value: "a"',
    ),
    "a config map without a name": (
        volume(configMap={}),
        "volumes[0].configMap.name: Required value",
    ),
    "a secret without a name": (volume(secret={}), "volumes[0].secret.secretName: Required value"),
    "a claim without a name": (
        volume(persistentVolumeClaim={}),
        "volumes[0].persistentVolumeClaim.claimName: Required value",
    ),
    "a host's path that is none": (
        volume(hostPath={}),
        "volumes[0].hostPath.path: Required value",
    ),
    "a toleration of nothing": (
        tolerating(effect="NoSchedule"),
        "tolerations[0].operator: operator must be Exists when `key` is empty",
    ),
    "a toleration of any value that names one": (
        tolerating(key="a", operator="Exists", value="b"),
        'tolerations[0].operator: Invalid value: "b": value must be empty when `operator` is',
    ),
    "a toleration in an unknown way": (
        tolerating(key="a", operator="Is"),
        'tolerations[0].operator: Unsupported value: "Is"',
    ),
    "a toleration of an unknown effect": (
        tolerating(key="a", operator="Exists", effect="No"),
        'tolerations[0].effect: Unsupported value: "No": supported values: "NoSchedule"',
    ),
    "a toleration for a while of what does not evict": (
        tolerating(key="a", operator="Exists", effect="NoSchedule", tolerationSeconds=1),
        "tolerations[0].effect: effect must be 'NoExecute' when `tolerationSeconds` is set",
    ),
    "a term in an unknown way": (
        on_nodes({"key": "a", "operator": "Is", "values": ["b"]}),
        'nodeSelectorTerms[0].matchExpressions[0].operator: Unsupported value: "Is"',
    ),
    "a term of no label": (
        on_nodes({"operator": "Exists"}),
        "nodeSelectorTerms[0].matchExpressions[0].key: Required value",
    ),
    "pods nowhere near": (near(), "[0].topologyKey: Required value"),
    "too much weight": (
        rather(101),
        "[0].weight: Invalid value: 101: must be between 1 and 100, inclusive",
    ),
    "no weight": (rather(0), "[0].weight: Invalid value: 0: must be between 1 and 100, inclusive"),
    "spread over nothing": (
        pod_spec(topologySpreadConstraints=[{**SPREAD, "topologyKey": ""}]),
        "topologySpreadConstraints[0].topologyKey: Required value",
    ),
    "spread by nothing": (
        pod_spec(topologySpreadConstraints=[{**SPREAD, "maxSkew": 0}]),
        "maxSkew: Invalid value: 0: must be greater than or equal to 1",
    ),
    "spread in an unknown way": (
        pod_spec(topologySpreadConstraints=[{**SPREAD, "whenUnsatisfiable": "Maybe"}]),
        'whenUnsatisfiable: Unsupported value: "Maybe"',
    ),
    "a deadline before the start": (
        pod_spec(activeDeadlineSeconds=0),
        "activeDeadlineSeconds: Invalid value: 0: must be greater than or equal to 1",
    ),
    "an unknown way to find names": (
        pod_spec(dnsPolicy="Never"),
        'dnsPolicy: Unsupported value: "Never": supported values: "ClusterFirstWithHostNet"',
    ),
    "an unknown way to end": (
        main(terminationMessagePolicy="x"),
        'terminationMessagePolicy: Unsupported value: "x"',
    ),
    "a host's name that is none": (
        pod_spec(hostname="A.b"),
        'hostname: Invalid value: "A.b": a lowercase RFC 1123 label',
    ),
    "a domain's name that is none": (
        pod_spec(subdomain="A.b"),
        'subdomain: Invalid value: "A.b": a lowercase RFC 1123 label',
    ),
    "nothing in the list of containers": (
        {"containers": [None]},
        "template.spec.containers[0]: Required value",
    ),
    "nothing in the list of variables": (main(env=[None]), "containers[0].env[0]: Required value"),
    "nothing in the list of ports": (main(ports=[None]), "containers[0].ports[0]: Required value"),
    "nothing in the list of mounts": (
        main(volumeMounts=[None]),
        "containers[0].volumeMounts[0]: Required value",
    ),
    "nothing in the list of volumes": (
        pod_spec(volumes=[None]),
        "template.spec.volumes[0]: Required value",
    ),
    "nothing in the list of gates": (
        pod_spec(schedulingGates=[None]),
        "template.spec.schedulingGates[0]: Required value",
    ),
    "a gate without a name": (
        pod_spec(schedulingGates=[{}]),
        'schedulingGates[0]: Invalid value: "": name part must consist of alphanumeric',
    ),
    "a gate's name that is none": (
        pod_spec(schedulingGates=[{"name": "a b"}]),
        'schedulingGates[0]: Invalid value: "a b": name part must consist of alphanumeric',
    ),
    "a gate twice": (
        pod_spec(schedulingGates=[{"name": "a"}, {"name": "a"}]),
        'schedulingGates[1]: Duplicate value: "a"',
    ),
    "an account's name that is none": (
        pod_spec(serviceAccountName="A"),
        'serviceAccountName: Invalid value: "A": a lowercase RFC 1123 subdomain',
    ),
    "a node's label that is none": (
        pod_spec(nodeSelector={"a": "b c"}),
        'nodeSelector: Invalid value: "b c": a valid label must be an empty string',
    ),
    "a node's label of no name": (
        pod_spec(nodeSelector={"a b": "c"}),
        'nodeSelector: Invalid value: "a b": name part must consist of alphanumeric characters',
    ),
    "labels that must be in an unknown way": (
        near(topologyKey="zone", labelSelector={"matchExpressions": [{**IS_A, "operator": "in"}]}),
        'labelSelector.matchExpressions[0].operator: Unsupported value: "in": supported',
    ),
    "namespaces that must be greater": (
        near(
            topologyKey="zone", namespaceSelector={"matchExpressions": [{**IS_A, "operator": "Gt"}]}
        ),
        'namespaceSelector.matchExpressions[0].operator: Unsupported value: "Gt"',
    ),
    "labels that must be in nothing": (
        pod_spec(
            topologySpreadConstraints=[
                {**SPREAD, "labelSelector": {"matchExpressions": [{**IS_A, "values": []}]}}
            ]
        ),
        "matchExpressions[0].values: must be specified when `operator` is 'In' or 'NotIn'",
    ),
    "labels of no name": (
        near(topologyKey="zone", labelSelector={"matchExpressions": [{**IS_A, "key": ""}]}),
        "labelSelector.matchExpressions[0].key: Required value",
    ),
    "a term without a way": (
        on_nodes({"key": "a", "values": ["b"]}),
        "nodeSelectorTerms[0].matchExpressions[0].operator: Required value",
    ),
    "a label that must be there and have values": (
        on_nodes({"key": "a", "operator": "Exists", "values": ["b"]}),
        "values: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
    ),
    "more than two numbers": (
        on_nodes({"key": "a", "operator": "Gt", "values": ["1", "2"]}),
        "values: must be specified single value when `operator` is 'Lt' or 'Gt'",
    ),
    "a node's name that must exist": (
        pod_spec(affinity=of_fields({"key": "metadata.name", "operator": "Exists"})),
        'nodeSelectorTerms[0].matchFields[0].operator: Unsupported value: "Exists"',
    ),
    "rather near without saying how much": (
        pod_spec(affinity=rather_near(podAffinityTerm={"topologyKey": "zone"})),
        "[0].weight: Invalid value: 0: must be between 1 and 100, inclusive",
    ),
    "rather near to nothing": (
        pod_spec(affinity=rather_near(weight=1)),
        "[0]: Invalid value: must specify one of: `podAffinityTerm`",
    ),
    "rather near nowhere": (
        pod_spec(affinity=rather_near(weight=1, podAffinityTerm={})),
        "[0].podAffinityTerm.topologyKey: Required value",
    ),
    "spread without a bound": (
        pod_spec(topologySpreadConstraints=[{**SPREAD, "maxSkew": None}]),
        "maxSkew: Invalid value: 0: must be greater than or equal to 1",
    ),
    "spread without saying what else": (
        pod_spec(topologySpreadConstraints=[{**SPREAD, "whenUnsatisfiable": None}]),
        "whenUnsatisfiable: Required value",
    ),
    "less than nothing for the whole pod": (
        pod_spec(resources={"requests": {"cpu": -1}}),
        'template.spec.resources.requests[cpu]: Invalid value: "-1": must be greater than or equal',
    ),
    "less than nothing beside its containers": (
        pod_spec(overhead={"memory": "-1Gi"}),
        'template.spec.overhead[memory]: Invalid value: "-1Gi": must be greater than or equal to 0',
    ),
    "a number of more than 32 bits": (
        main(livenessProbe={"exec": {"command": ["true"]}, "periodSeconds": 2**31}),
        'periodSeconds: Invalid value: "2147483648": must be an integer of 32 bits',
    ),
    "a number of more than 64 bits": (
        pod_spec(terminationGracePeriodSeconds=2**63),
        'terminationGracePeriodSeconds: Invalid value: "9223372036854775808": must be an integer',
    ),
    "a claim of devices without a name": (
        pod_spec(resourceClaims=[{"resourceClaimName": "c"}]),
        "resourceClaims[0].name: Required value",
    ),
    "an init container that is never pulled right": (
        pod_spec(initContainers=[{"name": "i", "image": "i", "imagePullPolicy": "x"}]),
        'initContainers[0].imagePullPolicy: Unsupported value: "x"',
    ),
}


@pytest.mark.parametrize(("spec", "message"), REFUSED.values(), ids=REFUSED)
def test_is_refused(spec: Object, message: str) -> None:
    found = template_problems(spec)
    assert message in found[0]
    assert all(each.startswith("template.spec.") for each in found)


def test_the_labels_of_pods_are_labels() -> None:
    assert template_problems(pod_spec(), labels={"a": "b"}, annotations={"c": "any thing"}) == []
    assert template_problems(pod_spec(), labels={"a": "b c"})[0].startswith(
        'template.metadata.labels: Invalid value: "b c": a valid label'
    )
    assert template_problems(pod_spec(), annotations={"a": 1}) == [
        'template.metadata.annotations[a]: Invalid value: "1": must be a string'
    ]


def test_where_a_type_is_wrong_nothing_else_is_said_of_it_but_of_the_rest() -> None:
    spec = pod_spec(
        containers=[{"name": 5, "image": "", "env": "A=b"}], restartPolicy="x", volumes="v"
    )
    assert [problem.split(": ")[0] for problem in template_problems(spec)] == [
        "template.spec.containers[0].name",
        "template.spec.containers[0].env",
        "template.spec.volumes",
        "template.spec.restartPolicy",
        "template.spec.containers[0].image",
    ]


def ways() -> dict[str, tuple[str, ...]]:
    """The steps from the template to an object of each shape; those into lists end in ``[]``."""
    found: dict[str, tuple[str, ...]] = {"PodTemplateSpec": ()}
    left = list(found)
    while left:
        shape = left.pop(0)
        for field, kind in SHAPES[shape].items():
            inside = kind.strip("[]")
            if inside in SHAPES and inside not in found:
                found[inside] = (*found[shape], f"{field}[]" if kind[0] == "[" else field)
                left.append(inside)
    return found


def inside(way: tuple[str, ...], item: Any) -> Any:
    """A template that holds ``item`` there, and nothing else."""
    for step in reversed(way):
        item = {step.removesuffix("[]"): [item] if step.endswith("[]") else item}
    return item


WAYS = ways()


def test_every_shape_can_be_come_to() -> None:
    assert set(WAYS) == set(SHAPES)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_field_that_there_is_not_is_told_and_not_refused(shape: str) -> None:
    place = ".".join(("template", *WAYS[shape])).replace("[]", "[0]")
    findings = Findings()
    check_types(inside(WAYS[shape], {"swan": None}), "template", findings)
    assert findings.errors == []
    assert [str(each) for each in findings.warnings] == [f"{place}.swan: unknown field"]


def test_the_field_that_was_perhaps_meant_is_told() -> None:
    findings = Findings()
    spec = pod_spec(containers=[{"name": "a", "image": "a", "comand": ["x"]}], nodeselector={})
    check_template({"spec": spec}, "template", findings)
    assert [str(each) for each in findings.warnings] == [
        "template.spec.containers[0].comand: unknown field (did you mean command?)",
        "template.spec.nodeselector: unknown field (did you mean nodeSelector?)",
    ]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_field_takes_null_and_nothing_of_another_type(shape: str) -> None:
    place = ".".join(("template", *WAYS[shape])).replace("[]", "[0]")
    for field, kind in SHAPES[shape].items():
        plain = kind in {"text", "flag", "number", "int-or-string", "quantity"}
        for value, wrong in ((None, []), ({} if plain else 1.5, [f"{place}.{field}"])):
            findings = Findings()
            check_types(inside(WAYS[shape], {field: value}), "template", findings)
            assert [error.path for error in findings.errors] == wrong


def test_pods_of_a_task_may_not_say_which_devices_they_have() -> None:
    findings = Findings()
    told = {"volcano.sh/vgpu-ids-new": "GPU-a,NVIDIA,1,1:", "volcano.sh/vgpu-mode": "mig"}
    template = {"metadata": {"annotations": told}, "spec": main()}
    check_template(template, "spec.tasks[0].template", findings)
    assert [error.path for error in findings.errors] == [
        "spec.tasks[0].template.metadata.annotations[volcano.sh/vgpu-ids-new]"
    ]
