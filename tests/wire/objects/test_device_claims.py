"""ResourceClaims and ResourceClaimTemplates, as the API server has them."""

from typing import Any

import pytest

from app.model.device_claims import Allocation, Allotted, DeviceRequest, Request, SameAttribute
from app.model.shape import NodeTerm, Operator, PodClaim, PodClaims, Requirement
from app.wire.errors import DecodeError
from app.wire.objects.device_claims import decode_claim_template, decode_device_claim
from app.wire.objects.pods import decode_pod
from tests.wire.manifests import encode

META = {"name": "c", "namespace": "default", "uid": "u"}
EXACT = {"name": "r", "exactly": {"deviceClassName": "gpu", "count": 2}}


def requests(*given: dict[str, Any], **devices: Any) -> tuple[Request, ...]:
    body = {"metadata": META, "spec": {"devices": {"requests": list(given), **devices}}}
    return decode_device_claim(encode(body)).spec.requests


@pytest.mark.parametrize(
    ("exactly", "option"),
    [
        ({}, DeviceRequest("gpu")),
        ({"count": 3, "allocationMode": "ExactCount"}, DeviceRequest("gpu", count=3)),
        ({"allocationMode": "All"}, DeviceRequest("gpu", every=True)),
        ({"adminAccess": True}, DeviceRequest("gpu", admin=True)),
        (
            {"selectors": [{"cel": {"expression": "true"}}, {}]},
            DeviceRequest("gpu", selectors=("true", "")),
        ),
        (
            {"capacity": {"requests": {"memory": "8Gi", "cores": 5}}},
            DeviceRequest("gpu", capacity=(("cores", 5), ("memory", 8 << 30))),
        ),
    ],
)
def test_a_request_is_read(exactly: dict[str, Any], option: DeviceRequest) -> None:
    [found] = requests({"name": "r", "exactly": {"deviceClassName": "gpu", **exactly}})
    assert found == Request("r", (option,))


def test_alternatives_are_read_in_their_order() -> None:
    [found] = requests(
        {
            "name": "r",
            "firstAvailable": [
                {"name": "big", "deviceClassName": "big"},
                {"name": "small", "deviceClassName": "small", "count": 2},
            ],
        }
    )
    options = DeviceRequest("big", name="big"), DeviceRequest("small", name="small", count=2)
    assert found == Request("r", options, prioritized=True)
    assert found.option("r/small") == options[1]
    assert (found.option("r"), found.option("q/small"), found.option("r/x")) == (None, None, None)


def test_constraints_are_read() -> None:
    constraints = [{"requests": ["r"], "matchAttribute": "d/numa"}, {"matchAttribute": "d/x"}]
    spec = {"devices": {"requests": [EXACT], "constraints": constraints}}
    found = decode_device_claim(encode({"metadata": META, "spec": spec})).spec.constraints
    assert found == (SameAttribute("d/numa", ("r",)), SameAttribute("d/x"))


def test_a_template_has_the_claim_of_each_pod() -> None:
    found = decode_claim_template(
        encode({"metadata": META, "spec": {"spec": {"devices": {"requests": [EXACT]}}}})
    )
    assert found.key == "default/c"
    assert found.spec.requests == (Request("r", (DeviceRequest("gpu", count=2),)),)


def test_what_a_claim_has_is_read() -> None:
    field = {"key": "metadata.name", "operator": "In", "values": ["n"]}
    result = {"request": "r", "driver": "d", "pool": "p", "device": "x"}
    part = {**result, "device": "y", "shareID": "s", "consumedCapacity": {"memory": "1Gi"}}
    status = {
        "reservedFor": [
            {"resource": "pods", "name": "a", "uid": "uid-a"},
            {"resource": "others", "name": "b", "uid": "uid-b"},
        ],
        "allocation": {
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
            "devices": {"results": [result, part, {**result, "adminAccess": True}]},
        },
    }
    found = decode_device_claim(encode({"metadata": META, "status": status}))
    assert found.users == {"uid-a"}
    assert found.allocation == Allocation(
        (
            Allotted("r", "d", "p", "x"),
            Allotted("r", "d", "p", "y", consumed=(("memory", 1 << 30),), shared=True),
            Allotted("r", "d", "p", "x", admin=True),
        ),
        (NodeTerm(fields=(Requirement("metadata.name", Operator.IN, ("n",)),)),),
    )


def test_a_claim_names_the_pod_that_it_was_made_for() -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "uid-a", "controller": True}
    annotations = {"resource.kubernetes.io/pod-claim-name": "gpu"}
    head = {**META, "ownerReferences": [owner], "annotations": annotations}
    found = decode_device_claim(encode({"metadata": head}))
    assert (found.pod, found.entry) == ("uid-a", "gpu")
    other = decode_device_claim(encode({"metadata": META}))
    assert (other.pod, other.entry) == ("", "")


def test_a_capacity_that_is_no_quantity_is_told_with_its_place() -> None:
    wrong = {"deviceClassName": "gpu", "capacity": {"requests": {"memory": "much"}}}
    with pytest.raises(DecodeError) as error:
        requests({"name": "r", "exactly": wrong})
    assert error.value.path == "spec.devices.requests[0].exactly.capacity.requests.memory"


def pod(**spec: Any) -> bytes:
    return encode({"metadata": {"name": "p", "namespace": "default", "uid": "u"}, "spec": spec})


def test_the_claims_of_a_pod_are_part_of_its_shape() -> None:
    claims = [
        {"name": "a", "resourceClaimName": "shared"},
        {"name": "b", "resourceClaimTemplateName": "own"},
    ]
    found = decode_pod(pod(resourceClaims=claims)).shape.claims
    assert found == PodClaims("default", (PodClaim("a", claim="shared"), PodClaim("b", "", "own")))
    assert found.shared == ("default/shared",)


@pytest.mark.parametrize("none", [None, []])
def test_most_pods_claim_nothing(none: Any) -> None:
    assert decode_pod(pod(resourceClaims=none)).shape is decode_pod(pod()).shape
