"""The four verbs, against bodies recorded from the stock scheduler and odd ones."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.model.ids import NodeName, PodUid
from app.wire import extender
from app.wire.errors import DecodeError
from app.wire.extender import BindRequest, Victims
from tests.wire.manifests import encode, pod

RECORDED = Path(__file__).parent / "recorded"
NAMES = ["node-00001", "node-00002", "node-00000"]


def recorded(name: str) -> bytes:
    return (RECORDED / f"{name}.json").read_bytes()


def parsed(text: bytes) -> Any:
    return msgspec.json.decode(text)


def args(**parts: Any) -> bytes:
    return encode({"Pod": pod(), "Nodes": None, "NodeNames": None} | parts)


def test_filter_reads_names_and_the_pods_identity() -> None:
    request = extender.decode_filter(recorded("filter.request"))
    assert request.names == NAMES
    assert request.objects is None
    asked = request.pod
    assert asked.uid == "601eaec6-3a6b-4021-9518-8c1ca87b2392"
    assert (asked.namespace, asked.name, asked.scheduler) == ("default", "low0", "volcano")
    assert (asked.node, asked.nominated) == ("", "")


def test_the_whole_pod_is_decoded_when_asked() -> None:
    found = extender.decode_filter(recorded("filter.request")).pod.decode()
    assert found.group == "default/g1"
    assert dict(found.shape.requests)["cpu"] == 1000


def test_filter_may_be_asked_about_the_nominated_node_alone() -> None:
    request = extender.decode_filter(recorded("filter.nominated.request"))
    assert request.names == ["node-00002"]
    assert request.pod.nominated == "node-00002"


def test_filter_answers_names_as_recorded() -> None:
    request = extender.decode_filter(recorded("filter.request"))
    answer = extender.filter_answer(request, request.names)
    assert parsed(answer) == parsed(recorded("filter.response"))


def test_filter_answers_whole_nodes_as_they_came() -> None:
    request = extender.decode_filter(recorded("filter.nodes.request"))
    assert sorted(request.names) == sorted(NAMES)
    answer = parsed(extender.filter_answer(request, request.names))
    expected = parsed(recorded("filter.nodes.response"))
    asked = parsed(recorded("filter.nodes.request"))
    assert answer["Nodes"]["items"] == asked["Nodes"]["items"]
    by_name = {item["metadata"]["name"]: item for item in expected["Nodes"]["items"]}
    assert {item["metadata"]["name"]: item for item in answer["Nodes"]["items"]} == by_name
    assert answer["NodeNames"] is None
    assert answer.keys() == expected.keys()


def test_one_node_is_answered_without_a_word_about_the_others() -> None:
    request = extender.decode_filter(recorded("filter.request"))
    assert extender.filter_answer(request, [NodeName("node-00002")]) == (
        b'{"NodeNames":["node-00002"],"Nodes":null,"FailedNodes":{},'
        b'"FailedAndUnresolvableNodes":{},"Error":""}'
    )


@pytest.mark.parametrize("body", ["filter.request", "filter.nodes.request"])
def test_all_nodes_can_be_refused_for_one_reason(body: str) -> None:
    request = extender.decode_filter(recorded(body))
    answer = parsed(extender.filter_answer(request, [], refused='waiting for "gang"'))
    assert answer["FailedAndUnresolvableNodes"] == dict.fromkeys(NAMES, 'waiting for "gang"')
    assert answer["FailedNodes"] == {}
    passed = answer["NodeNames"] if request.objects is None else answer["Nodes"]["items"]
    assert passed == []


def test_some_nodes_can_be_refused() -> None:
    request = extender.decode_filter(recorded("filter.request"))
    answer = parsed(extender.filter_answer(request, [NodeName(NAMES[0])], refused="promised"))
    assert answer["NodeNames"] == NAMES[:1]
    assert answer["FailedAndUnresolvableNodes"] == dict.fromkeys(NAMES[1:], "promised")


@given(st.lists(st.text(max_size=6) | st.just('","'), unique=True), st.text(max_size=6))
def test_odd_names_and_texts_are_escaped(names: list[str], text: str) -> None:
    request = extender.decode_filter(args(NodeNames=names))
    answer = parsed(extender.filter_answer(request, [], refused=text))
    expected = dict.fromkeys(names, text) if text else {}
    assert answer["FailedAndUnresolvableNodes"] == expected


def test_a_failed_call_has_no_nodes() -> None:
    answer = parsed(extender.filter_error('too "many"'))
    assert answer.keys() == parsed(recorded("filter.response")).keys()
    assert answer["Error"] == 'too "many"'
    assert (answer["NodeNames"], answer["Nodes"]) == (None, None)


def test_no_names_and_no_items_are_no_nodes() -> None:
    assert extender.decode_filter(args(NodeNames=[])).names == []
    empty = extender.decode_filter(args(Nodes={"metadata": {}, "items": None}))
    assert (empty.names, empty.objects) == ([], {})
    assert parsed(extender.filter_answer(empty, [], refused="x"))["Nodes"] == {"items": []}


@pytest.mark.parametrize("form", ["prioritize", "prioritize.nodes"])
def test_prioritize_is_answered_as_recorded(form: str) -> None:
    request = extender.decode_prioritize(recorded(f"{form}.request"))
    assert sorted(request.names) == sorted(NAMES)
    assert request.pod.uid
    expected = parsed(recorded(f"{form}.response"))
    scores = [(NodeName(entry["Host"]), entry["Score"]) for entry in expected]
    assert parsed(extender.prioritize_answer(scores)) == expected


def test_bind_is_answered_as_recorded() -> None:
    assert extender.decode_bind(recorded("bind.request")) == BindRequest(
        PodUid("601eaec6-3a6b-4021-9518-8c1ca87b2392"),
        "default",
        "low0",
        NodeName("node-00002"),
    )
    assert parsed(extender.bind_answer()) == parsed(recorded("bind.response"))
    assert parsed(extender.bind_answer('no "room"')) == {"Error": 'no "room"'}


@pytest.mark.parametrize("form", ["preempt", "preempt.nodes"])
def test_preempt_is_answered_as_recorded(form: str) -> None:
    request = extender.decode_preempt(recorded(f"{form}.request"))
    assert request.pod.name == "high-same"
    assert sorted(request.victims) == sorted(NAMES)
    assert all(len(v.uids) == 2 and not v.budget_violations for v in request.victims.values())
    answer = extender.preempt_answer(request.victims)
    assert parsed(answer) == parsed(recorded(f"{form}.response"))


def test_budget_violations_are_read_and_answered() -> None:
    victims = {"n1": {"Pods": [{"UID": "u"}], "NumPDBViolations": 2}, "n2": {"Pods": None}}
    body = encode({"Pod": pod(), "NodeNameToMetaVictims": victims})
    request = extender.decode_preempt(body)
    assert request.victims == {"n1": Victims((PodUid("u"),), 2), "n2": Victims(())}
    kept = {NodeName("n1"): request.victims[NodeName("n1")]}
    assert parsed(extender.preempt_answer(kept)) == {"NodeNameToMetaVictims": {"n1": victims["n1"]}}


def test_an_empty_map_is_a_veto() -> None:
    assert extender.preempt_answer({}) == b'{"NodeNameToMetaVictims":{}}'


@pytest.mark.parametrize(
    ("decode", "body", "message"),
    [
        (extender.decode_filter, args(), "neither Nodes nor NodeNames is given"),
        (extender.decode_prioritize, args(), "neither Nodes nor NodeNames is given"),
        (extender.decode_filter, b"{}", "Object missing required field `Pod`"),
        (
            extender.decode_filter,
            args(Pod=None, NodeNames=[]),
            "Pod: Expected `object`, got `null`",
        ),
        (
            extender.decode_filter,
            args(Pod={"metadata": {"name": "p"}, "spec": {}}, NodeNames=[]),
            "Pod.metadata.uid: is missing",
        ),
        (
            extender.decode_filter,
            args(Pod={"metadata": {"uid": "u"}}, NodeNames=[]),
            "Pod: Object missing required field `spec`",
        ),
        (
            extender.decode_filter,
            args(NodeNames=["a", 1]),
            "NodeNames[1]: Expected `str`, got `int`",
        ),
        (
            extender.decode_filter,
            args(Nodes={"items": [{"metadata": {}}]}),
            "Nodes.items[0].metadata: Object missing required field `name`",
        ),
        (extender.decode_filter, b"not json", "not JSON: "),
        (extender.decode_filter, b"", "not JSON: "),
        (extender.decode_bind, b"{}", "Object missing required field `PodName`"),
        (
            extender.decode_bind,
            encode({"PodName": "p", "PodNamespace": "d", "PodUID": "", "Node": "n"}),
            "PodUID: is empty",
        ),
        (
            extender.decode_bind,
            encode({"PodName": "p", "PodNamespace": "d", "PodUID": "u", "Node": ""}),
            "Node: is empty",
        ),
        (
            extender.decode_preempt,
            encode({"Pod": pod(), "NodeNameToVictims": None, "NodeNameToMetaVictims": None}),
            "neither NodeNameToVictims nor NodeNameToMetaVictims is given",
        ),
        (
            extender.decode_preempt,
            encode({"Pod": pod(), "NodeNameToMetaVictims": {"n": {"Pods": [{}]}}}),
            "NodeNameToMetaVictims[...].Pods[0]: Object missing required field `UID`",
        ),
    ],
)
def test_a_body_that_cannot_be_read_says_where(decode: Any, body: bytes, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(body)
    assert str(caught.value).startswith(message)


def test_a_pod_that_cannot_be_read_is_only_noticed_when_it_is_asked_for() -> None:
    request = extender.decode_filter(args(Pod=pod(priority="high"), NodeNames=["n"]))
    with pytest.raises(DecodeError) as caught:
        request.pod.decode()
    assert caught.value.path == "Pod.spec.priority"
