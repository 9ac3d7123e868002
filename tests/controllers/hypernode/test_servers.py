"""HyperNodes that servers tell: when these are asked, how, and what becomes of their answers."""

import asyncio
import base64
import json
from collections.abc import Mapping
from typing import Any

import pytest

from app.telemetry.metrics import REGISTRY
from app.wire.kinds import HYPER_NODES, NODES, SECRETS
from app.wire.unstructured import Key
from tests.controllers.hypernode.discovering import (
    FakeWeb,
    configure,
    discovered,
    hyper_node,
    node,
    run,
)
from tests.controllers.hypernode.test_by_ufm import port
from tests.controllers.play import Play, item
from tests.service import virtual_time

HOUR = 3600.0
UFM = Key("pumice-system", "ufm-credentials")


def by_ufm(**more: Any) -> Mapping[str, Any]:
    return {
        "source": "ufm",
        "enabled": True,
        "config": {"endpoint": "https://ufm:8443/", **more.pop("config", {})},
        "credentials": {"secretRef": {"name": UFM.name, "namespace": UFM.namespace}},
        **more,
    }


def by_rest(**more: Any) -> Mapping[str, Any]:
    return {"source": "rest", "enabled": True, "config": {"url": "https://tree/v1"}, **more}


def secret(stage: Play, *, kind: str = "Opaque", **data: str) -> None:
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    made = item(SECRETS, UFM.name, namespace=UFM.namespace, data=encoded, type=kind)
    stage.fake.put(SECRETS, made)


def ports(*links: str) -> bytes:
    """UFM's answer; ``n1-leaf1``: a computer and its switch."""
    return json.dumps([port(*link.split("-")) for link in links]).encode()


def document(**racks: list[str]) -> bytes:
    return json.dumps(
        {"domains": [{"name": name, "tier": 1, "nodes": found} for name, found in racks.items()]}
    ).encode()


def prepare(stage: Play, *nodes: str) -> None:
    """Nodes, and a user for UFM."""
    for each in nodes:
        node(stage, each)
    secret(stage, username="admin", password="123456")


def sample(name: str, source: str) -> float:
    return REGISTRY.get_sample_value(name, {"source": source}) or 0.0


def test_what_ufm_tells_becomes_hyper_nodes() -> None:
    async def scenario(stage: Play, web: FakeWeb) -> None:
        prepare(stage, "n1", "n2", "n3")
        hyper_node(stage, "by-hand", "n1")
        web.answer = ports("n1-leaf1", "n2-leaf1", "n3-leaf2")
        configure(stage, by_ufm())
        await stage.start()
        assert discovered(stage, "ufm") == {
            "leaf-hn-0": (1, ["n1", "n2"]),
            "leaf-hn-1": (1, ["n3"]),
            "spine-hn": (2, ["leaf-hn-0", "leaf-hn-1"]),
        }
        assert "by-hand" in stage.names(HYPER_NODES)
        at = sample("pumice_discovery_success_timestamp_seconds", "ufm")
        assert at == pytest.approx(virtual_time.START, abs=10)

    assert run(scenario).told.told == []


def test_ufm_is_asked_as_its_user_and_by_its_authority() -> None:
    async def scenario(stage: Play, web: FakeWeb) -> None:
        node(stage, "n1")
        secret(stage, **{"username": "admin", "password": "123:456\n", "ca.crt": "PEM"})
        configure(stage, by_ufm())
        await stage.start()
        (asked,) = web.requests
        assert asked.url == "https://ufm:8443/ufmRest/resources/ports"
        assert asked.headers["authorization"] == "Basic YWRtaW46MTIzOjQ1Ng=="
        assert (asked.authority, asked.insecure) == ("PEM", False)
        assert "YWRt" not in repr(asked)

    run(scenario)


def test_ufm_takes_a_token_at_another_path() -> None:
    async def scenario(stage: Play, web: FakeWeb) -> None:
        node(stage, "n1")
        secret(stage, token="czQYeCfKIe")
        configure(stage, by_ufm())
        await stage.start()
        (asked,) = web.requests
        assert asked.url == "https://ufm:8443/ufmRestV3/resources/ports"
        assert asked.headers["authorization"] == "Basic czQYeCfKIe"

    run(scenario)


@pytest.mark.parametrize(
    ("data", "authorization"),
    [
        ({"token": "t"}, "Bearer t"),
        ({"username": "u", "password": "p"}, "Basic dTpw"),
        ({"ca.crt": "PEM"}, None),
    ],
)
def test_a_document_is_asked_for_with_what_the_secret_has(
    data: Mapping[str, str], authorization: str | None
) -> None:
    async def scenario(stage: Play, web: FakeWeb) -> None:
        node(stage, "n1")
        secret(stage, **data)
        configure(stage, by_rest(credentials=by_ufm()["credentials"]))
        await stage.start()
        (asked,) = web.requests
        assert (asked.url, asked.headers.get("authorization")) == ("https://tree/v1", authorization)

    run(scenario)


def test_what_a_document_tells_becomes_hyper_nodes_without_any_secret() -> None:
    async def scenario(stage: Play, web: FakeWeb) -> None:
        prepare(stage, "n1", "n2")
        web.answer = document(r1=["n1"], r2=["n2"])
        configure(stage, by_rest())
        await stage.start()
        assert discovered(stage, "rest") == {"r1": (1, ["n1"]), "r2": (1, ["n2"])}

    run(scenario)


def test_a_server_is_asked_again_after_its_interval_and_changes_are_followed() -> None:
    async def scenario(stage: Play, web: FakeWeb) -> None:
        prepare(stage, "n1", "n2")
        web.answer = document(r1=["n1"], r2=["n2"])
        configure(stage, by_rest(interval="10m"))
        await stage.start()
        web.answer = document(r1=["n1", "n2"])
        await stage.later(590)
        assert len(web.requests) == 1
        await stage.later(20)
        assert len(web.requests) == 2
        assert discovered(stage, "rest") == {"r1": (1, ["n1", "n2"])}
        await stage.later(2 * HOUR)
        assert len(web.requests) == 14

    run(scenario)


def test_nodes_that_come_and_go_are_followed_without_asking() -> None:
    async def scenario(stage: Play, web: FakeWeb) -> None:
        prepare(stage, "n1")
        web.answer = document(r1=["n1", "n2"])
        configure(stage, by_rest())
        await stage.start()
        assert discovered(stage, "rest") == {"r1": (1, ["n1"])}
        node(stage, "n2")
        await stage.settle()
        assert discovered(stage, "rest") == {"r1": (1, ["n1", "n2"])}
        stage.fake.remove(NODES, Key("", "n1"))
        await stage.settle()
        assert discovered(stage, "rest") == {"r1": (1, ["n2"])}
        assert len(web.requests) == 1

    run(scenario)


@pytest.mark.parametrize(
    "answer",
    ["no answer within 30 s", "HTTP 503", b"<html>", b"[]", b'[{"system_name": 1}]', ports("x-y")],
)
def test_a_server_that_tells_nothing_changes_nothing_and_is_told_of_once(
    answer: bytes | str,
) -> None:
    async def scenario(stage: Play, web: FakeWeb) -> None:
        prepare(stage, "n1", "n2")
        web.answer = ports("n1-leaf1", "n2-leaf2")
        configure(stage, by_ufm(interval="10m"))
        await stage.start()
        before = discovered(stage, "ufm")
        failed = sample("pumice_discovery_failures_total", "ufm")
        web.answer = answer
        await stage.later(HOUR)
        assert discovered(stage, "ufm") == before
        assert sample("pumice_discovery_failures_total", "ufm") > failed
        assert sample("pumice_discovery_success_timestamp_seconds", "ufm") < virtual_time.START + 60
        (said,) = stage.told.messages("DiscoveryFailed")
        assert said.startswith("ufm: https://ufm:8443/: ")
        assert said.endswith("; its HyperNodes stay as they are")
        web.answer = ports("n1-leaf1", "n2-leaf1")
        await stage.later(600)
        assert discovered(stage, "ufm")["leaf-hn-0"] == (1, ["n1", "n2"])
        assert stage.told.messages("Discovered") == ["ufm: the topology is known again"]

    run(scenario)


def test_the_pauses_after_failures_double_up_to_the_interval() -> None:
    async def scenario(stage: Play, web: FakeWeb) -> None:
        prepare(stage, "n1")
        configure(stage, by_ufm(interval="1m"))
        await stage.start()
        counts = []
        for seconds in (4, 2, 8, 2, 18, 2, 38, 2, 58, 2):
            await stage.later(seconds)
            counts.append(len(web.requests))
        assert counts == [1, 2, 2, 3, 3, 4, 4, 5, 5, 6]

    run(scenario)


def test_a_server_that_is_down_at_the_start_deletes_nothing() -> None:
    async def scenario(stage: Play, web: FakeWeb) -> None:
        prepare(stage, "n1")
        web.answer = document(r1=["n1"])
        configure(stage, by_rest())
        await stage.start()
        await stage.kill()
        web.answer = "refused"
        await stage.start()
        node(stage, "n2")
        await stage.later(HOUR)
        assert discovered(stage, "rest") == {"r1": (1, ["n1"])}

    run(scenario)


def test_a_slow_server_holds_up_no_other_source() -> None:
    async def scenario(stage: Play, web: FakeWeb) -> None:
        prepare(stage)
        web.silent = asyncio.Event()
        web.answer = ports("n1-leaf1")
        levels = [{"nodeLabel": "rack"}, {"nodeLabel": "host"}]
        config = {"networkTopologyTypes": {"t": levels}}
        configure(stage, by_ufm(), {"source": "label", "enabled": True, "config": config})
        starting = asyncio.create_task(stage.start())
        await asyncio.sleep(1)
        node(stage, "n1", rack="r1")
        stage.fake.deliver()
        await asyncio.sleep(1)
        assert len(discovered(stage, "label")) == 1
        assert discovered(stage, "ufm") == {}
        web.silent.set()
        await starting
        await stage.settle()
        assert len(discovered(stage, "ufm")) == 2

    run(scenario)


def test_an_answer_to_a_configuration_of_before_is_not_used() -> None:
    async def scenario(stage: Play, web: FakeWeb) -> None:
        prepare(stage, "n1")
        web.silent = asyncio.Event()
        web.answer = document(old=["n1"])
        configure(stage, by_rest())
        starting = asyncio.create_task(stage.start())
        await asyncio.sleep(1)
        web.answer = document(new=["n1"])
        configure(stage, by_rest(config={"url": "https://other"}))
        stage.fake.deliver()
        await asyncio.sleep(1)
        web.silent.set()
        await starting
        await stage.settle()
        assert [each.url for each in web.requests] == ["https://tree/v1", "https://other"]
        assert discovered(stage, "rest") == {"new": (1, ["n1"])}

    run(scenario)


def test_a_change_of_the_configuration_is_followed_at_once() -> None:
    async def scenario(stage: Play, web: FakeWeb) -> None:
        prepare(stage, "n1")
        await stage.start()
        web.answer = document(r1=["n1"])
        configure(stage, by_rest())
        await stage.settle()
        assert discovered(stage, "rest") == {"r1": (1, ["n1"])}
        web.answer = document(r2=["n1"])
        configure(stage, by_rest(interval="2m"))
        await stage.settle()
        assert discovered(stage, "rest") == {"r2": (1, ["n1"])}
        configure(stage, by_rest(enabled=False))
        await stage.later(HOUR)
        assert len(web.requests) == 2
        assert discovered(stage, "rest") == {"r2": (1, ["n1"])}

    run(scenario)


def test_a_change_of_the_secret_counts_when_the_server_is_asked_again() -> None:
    async def scenario(stage: Play, web: FakeWeb) -> None:
        prepare(stage, "n1")
        web.answer = ports("n1-leaf1")
        configure(stage, by_ufm(interval="1m"))
        await stage.start()
        secret(stage, token="new")
        await stage.later(61)
        assert web.requests[-1].headers["authorization"] == "Basic new"

    run(scenario)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (None, "there is no Secret pumice-system/ufm-credentials"),
        ({}, "has no username and password, and no token"),
        ({"username": "u"}, "has no password"),
        ({"password": "p"}, "has no username"),
        ({"username": "u:v", "password": "p"}, "username of Secret"),
        ({"token": "a\r\nhost: evil"}, "has a user, password or token of more than one line"),
    ],
)
def test_a_secret_that_cannot_be_used_is_told_of(data: Mapping[str, str] | None, said: str) -> None:
    async def scenario(stage: Play, web: FakeWeb) -> None:
        node(stage, "n1")
        if data is not None:
            secret(stage, **data)
        configure(stage, by_ufm())
        await stage.start()
        assert web.requests == []

    (told,) = run(scenario).told.messages("DiscoveryFailed")
    assert said in told


def test_a_secret_that_holds_no_text_is_told_of() -> None:
    async def scenario(stage: Play, web: FakeWeb) -> None:
        node(stage, "n1")
        made = item(SECRETS, UFM.name, namespace=UFM.namespace, data={"token": "/w=="})
        stage.fake.put(SECRETS, made)
        configure(stage, by_ufm())
        await stage.start()
        assert web.requests == []

    (told,) = run(scenario).told.messages("DiscoveryFailed")
    assert "token of Secret pumice-system/ufm-credentials is no text" in told


def test_the_token_of_a_service_account_is_sent_to_no_server() -> None:
    async def scenario(stage: Play, web: FakeWeb) -> None:
        node(stage, "n1")
        secret(stage, kind="kubernetes.io/service-account-token", token="t")
        configure(stage, by_rest(credentials=by_ufm()["credentials"]))
        await stage.start()
        assert web.requests == []

    (told,) = run(scenario).told.messages("DiscoveryFailed")
    assert "is the token of a ServiceAccount, which is not sent" in told


@pytest.mark.parametrize("consents", [False, True])
def test_a_secret_of_another_namespace_has_to_allow_its_use(consents: bool) -> None:
    async def scenario(stage: Play, web: FakeWeb) -> None:
        node(stage, "n1")
        annotations = {"pumice.sh/discovery": "true"} if consents else {}
        data = {"token": base64.b64encode(b"theirs").decode()}
        made = item(SECRETS, "s", namespace="ns", data=data, metadata={"annotations": annotations})
        stage.fake.put(SECRETS, made)
        reference = {"secretRef": {"name": "s", "namespace": "ns"}}
        configure(stage, by_rest(credentials=reference))
        await stage.start()
        assert len(web.requests) == consents

    (said,) = run(scenario).told.messages("DiscoveryFailed")
    assert ("Secret ns/s is in another namespace" in said) is not consents


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (
            {"insecureSkipVerify": True},
            "insecureSkipVerify: the certificate of https://ufm:8443/ is not checked",
        ),
        ({"endpoint": "http://ufm"}, "what http://ufm says and is sent is not encrypted"),
    ],
)
def test_a_server_that_is_not_checked_is_warned_of(config: Mapping[str, Any], said: str) -> None:
    async def scenario(stage: Play, web: FakeWeb) -> None:
        prepare(stage, "n1")
        web.answer = ports("n1-leaf1")
        configure(stage, by_ufm(config=config))
        await stage.start()
        assert web.requests[0].insecure is config.get("insecureSkipVerify", False)

    assert run(scenario).told.messages("InsecureSource") == [f"ufm: {said}"]


def test_a_hyper_node_that_was_changed_by_hand_is_put_right_without_asking() -> None:
    async def scenario(stage: Play, web: FakeWeb) -> None:
        prepare(stage, "n1")
        web.answer = ports("n1-leaf1")
        configure(stage, by_ufm())
        await stage.start()
        before = discovered(stage, "ufm")
        stage.fake.edit(HYPER_NODES, Key("", "leaf-hn-0"), {"spec": {"tier": 7}})
        stage.fake.remove(HYPER_NODES, Key("", "spine-hn"))
        await stage.settle()
        assert discovered(stage, "ufm") == before
        assert len(web.requests) == 1

    run(scenario)


def test_without_a_config_map_no_server_is_asked() -> None:
    async def scenario(stage: Play, web: FakeWeb) -> None:
        prepare(stage, "n1")
        await stage.start()
        assert web.requests == []

    assert run(scenario).told.told == []
