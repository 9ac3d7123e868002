"""What cannot be served is refused with a 4xx and one line, and nothing is reserved for it."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.api import body as body_module
from app.api.body import MAX_BODY
from tests.api.stand import Stand, args, binding, recorded, stand
from tests.scale import examples
from tests.service.rig import Rig

VERBS = ("filter", "prioritize", "bind", "preempt")
PATHS = [f"{prefix}/{verb}" for prefix in ("", "/v1") for verb in VERBS]

NOT_JSON = {
    "empty": b"",
    "blank": b"  \n",
    "cut off": b'{"Pod": {"metadata": {',
    "not JSON": b"Pod: {}",
    "a list": b"[]",
    "null": b"null",
    "text": b'"filter"',
    "a number": b"1e999",
    "NaN": b'{"Pod": NaN, "NodeNames": ["n1"]}',
    "Infinity": b'{"Pod": Infinity, "NodeNames": ["n1"]}',
    "two values": b"{}{}",
    "not UTF-8": b'{"Pod": {"metadata": {"name": "\xff"}}, "NodeNames": ["n1"]}',
    "a byte-order mark": b"\xef\xbb\xbf{}",
    "a lone surrogate": b'{"PodName": "\\ud800", "PodNamespace": "", "PodUID": "u", "Node": "n1"}',
    "nested too deeply": b"[" * 100_000,
    "a deep object": b'{"Pod":' * 100_000,
    "no keys": b"{}",
    "a form": b"Pod=p&NodeNames=n1",
}


def cluster() -> Rig:
    rig = Rig()
    rig.node("n1")
    return rig


async def refused(at: Stand, path: str, body: Any, *, status: int | None = None) -> str:
    """The line that the call was refused with."""
    before = at.reserved()
    answer = await at.post(path, body)
    assert 400 <= answer.status_code < 500, answer.text
    if status is not None:
        assert answer.status_code == status
    assert answer.headers["content-type"].startswith("text/plain")
    text = answer.text
    assert text.endswith("\n")
    assert len(text.strip()) > 3
    assert text.count("\n") == 1
    assert len(text) < 1000
    assert "Traceback" not in text
    assert at.reserved() == before
    assert at.rig.api.tries == []
    return text.strip()


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("case", NOT_JSON)
async def test_what_is_not_a_request_is_refused(path: str, case: str) -> None:
    async with stand(cluster()) as at:
        await refused(at, path, NOT_JSON[case], status=400)


WRONG_ARGS: dict[str, dict[str, Any]] = {
    "no pod": {"Pod": None},
    "a pod that is text": {"Pod": "p"},
    "a pod without metadata": {"Pod": {"spec": {}}},
    "a pod without UID": {"Pod": {"metadata": {"name": "p"}, "spec": {}}},
    "a pod with an empty UID": {"Pod": {"metadata": {"name": "p", "uid": ""}, "spec": {}}},
    "a UID that is a number": {"Pod": {"metadata": {"name": "p", "uid": 7}, "spec": {}}},
    "no nodes at all": {"NodeNames": None},
    "names that are text": {"NodeNames": "n1"},
    "a name that is a number": {"NodeNames": ["n1", 2]},
    "a name that is null": {"NodeNames": [None]},
    "nodes that are a list": {"NodeNames": None, "Nodes": []},
    "nodes that are numbers": {"NodeNames": None, "Nodes": {"items": [1]}},
    "nodes without names": {"NodeNames": None, "Nodes": {"items": [{"metadata": {}}]}},
}


@pytest.mark.parametrize("verb", ["filter", "prioritize"])
@pytest.mark.parametrize("case", WRONG_ARGS)
async def test_wrong_types_are_refused_with_the_place(verb: str, case: str) -> None:
    async with stand(cluster()) as at:
        said = await refused(at, f"/{verb}", args("p") | WRONG_ARGS[case], status=400)
        assert said.startswith(f"{verb}: ")


async def test_both_kinds_of_nodes_missing_says_so() -> None:
    async with stand(cluster()) as at:
        said = await refused(at, "/filter", args("p") | {"NodeNames": None})
        assert said == "filter: neither Nodes nor NodeNames is given"


@pytest.mark.parametrize("verb", ["filter", "prioritize"])
async def test_nodes_that_are_all_unknown_are_refused(verb: str) -> None:
    async with stand(cluster()) as at:
        sent = args("p", nodes=["nowhere", "neither"])
        said = await refused(at, f"/{verb}", sent, status=404)
        assert said == "none of the 2 nodes is known, e.g. nowhere"


@pytest.mark.parametrize(
    "part",
    [
        {"PodUID": ""},
        {"PodUID": None},
        {"PodUID": 3},
        {"PodName": ""},
        {"Node": ""},
        {"Node": ["n1"]},
        {"PodNamespace": None},
    ],
)
async def test_a_wrong_bind_is_refused(part: dict[str, Any]) -> None:
    rig = cluster()
    rig.pod("p")
    await rig.cycle()
    async with stand(rig) as at:
        said = await refused(at, "/bind", binding() | part, status=400)
        assert next(iter(part)) in said


async def test_a_bind_to_an_unknown_node_is_refused() -> None:
    rig = cluster()
    rig.pod("p")
    await rig.cycle()
    async with stand(rig) as at:
        said = await refused(at, "/bind", binding(node="nowhere"), status=404)
        assert said == "bind: node nowhere is not known"


@pytest.mark.parametrize(
    ("part", "status"),
    [
        ({"NodeNameToMetaVictims": None}, 400),
        ({"NodeNameToMetaVictims": []}, 400),
        ({"NodeNameToMetaVictims": {"n1": {"Pods": [{}]}}}, 400),
        ({"NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": 1}]}}}, 400),
        ({"NodeNameToMetaVictims": {"n1": {"Pods": "all"}}}, 400),
        ({"NodeNameToMetaVictims": {"n1": {"Pods": [], "NumPDBViolations": "many"}}}, 400),
        ({"NodeNameToMetaVictims": {"n1": {"Pods": [], "NumPDBViolations": 1.5}}}, 400),
        ({"NodeNameToMetaVictims": {"nowhere": {"Pods": [{"UID": "u"}]}}}, 404),
        ({"Pod": {}}, 400),
    ],
)
async def test_a_wrong_preempt_is_refused(part: dict[str, Any], status: int) -> None:
    async with stand(cluster()) as at:
        body = json.loads(recorded("preempt.request"))
        body["NodeNameToMetaVictims"] = {"n1": {"Pods": [{"UID": "u"}]}}
        await refused(at, "/preempt", body | part, status=status)


@pytest.mark.parametrize("number", ["1" * 400, "-" + "9" * 30, "1e400"])
async def test_huge_numbers_break_nothing(number: str) -> None:
    async with stand(cluster()) as at:
        body = (
            b'{"Pod":{"metadata":{"name":"p","uid":"u"},"spec":{}},"NodeNameToMetaVictims":'
            b'{"n1":{"Pods":[{"UID":"u"}],"NumPDBViolations":%s}}}' % number.encode()
        )
        answer = await at.post("/preempt", body)
        assert answer.status_code in (200, 400)
        asked = args("p", priority=0)
        text = json.dumps(asked).replace('"priority": 0', f'"priority": {number}')
        answer = await at.post("/filter", text.encode())
        assert answer.status_code in (200, 400)


@pytest.mark.parametrize(
    "requests",
    [
        {"cpu": "many"},
        {"cpu": "1" * 100},
        {"memory": "-"},
        {"cpu": {}},
        {"cpu": "NaN"},
    ],
)
async def test_a_pod_that_cannot_be_read_is_refused_with_the_place(
    requests: dict[str, Any],
) -> None:
    async with stand(cluster()) as at:
        containers = [{"name": "c", "resources": {"requests": requests}}]
        said = await refused(at, "/filter", args("p", containers=containers), status=400)
        assert "containers[0].resources.requests" in said


@pytest.mark.parametrize("cpu", ["1e30", "9223372036854775807", "1E", "0", "1e-30"])
async def test_a_pod_that_asks_for_the_impossible_waits(cpu: str) -> None:
    async with stand(cluster()) as at:
        containers = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
        answer = await at.post("/filter", args("p", containers=containers))
        assert answer.status_code == 200
        assert at.rig.has_reservations() <= 1


async def test_names_with_odd_characters_stay_one_line() -> None:
    async with stand(cluster()) as at:
        for odd in ("a\nb\r\nc", "x" * 100_000, "\u2028", "\x00"):
            await refused(at, "/filter", args("p", nodes=[odd]), status=404)
            await refused(at, "/bind", binding(node=odd), status=404)


# --- size -----------------------------------------------------------------------------------------


async def streamed(size: int) -> AsyncIterator[bytes]:
    """``size`` bytes in pieces, without a length that was announced."""
    piece = b" " * (1 << 20)
    while size > 0:
        yield piece[:size]
        size -= len(piece)


@pytest.mark.parametrize("path", ["/filter", "/v1/bind"])
async def test_a_body_over_the_limit_is_refused_with_413(path: str) -> None:
    async with stand(cluster()) as at:
        said = await refused(at, path, b" " * (MAX_BODY + 1), status=413)
        assert said == f"body of {MAX_BODY + 1} bytes is over the limit of {MAX_BODY}"


async def test_an_announced_length_over_the_limit_is_refused_before_the_body_comes() -> None:
    async with stand(cluster()) as at:

        async def never() -> AsyncIterator[bytes]:
            raise AssertionError("was read")
            yield b""

        answer = await at.client.post(
            "/filter", content=never(), headers={"content-length": str(MAX_BODY + 1)}
        )
        assert answer.status_code == 413


async def test_a_chunked_body_over_the_limit_is_refused_and_one_below_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(body_module, "MAX_BODY", 3 << 20)

    async with stand(cluster()) as at:
        answer = await at.client.post("/filter", content=streamed((3 << 20) + 1))
        assert answer.status_code == 413

        async def pieces() -> AsyncIterator[bytes]:
            text = json.dumps(args("p")).encode()
            for i in range(0, len(text), 7):
                yield text[i : i + 7]

        answer = await at.client.post("/filter", content=pieces())
        assert answer.status_code == 200
        assert answer.json()["NodeNames"] == ["n1"]


# --- the rest of HTTP -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
async def test_the_content_type_does_not_matter(kind: str) -> None:
    """JSON is JSON, and what is not is refused whatever it calls itself."""

    async with stand(cluster()) as at:
        headers = {"content-type": kind}
        text = json.dumps(args("p")).encode()
        answer = await at.client.post("/filter", content=text, headers=headers)
        assert answer.status_code == 200
        answer = await at.client.post("/filter", content=b"p=1", headers=headers)
        assert answer.status_code == 400


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("POST", "/nothing", 404),
        ("POST", "/v2/filter", 404),
        ("POST", "/filter/", 404),
        ("GET", "/filter", 405),
        ("PUT", "/v1/bind", 405),
        ("DELETE", "/livez", 405),
        ("POST", "/metrics", 405),
        ("GET", "/explain/only-one", 404),
    ],
)
async def test_unknown_routes_and_methods(method: str, path: str, status: int) -> None:
    async with stand(cluster()) as at:
        answer = await at.client.request(method, path)
        assert answer.status_code == status
        assert answer.headers["content-type"].startswith("text/plain")
        assert answer.text.count("\n") == 1
        if status == 405:
            assert answer.headers["allow"]


# --- anything -------------------------------------------------------------------------------------

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["Pod", "NodeNames", "Nodes", "items", "metadata", "spec", "uid", "name", "PodUID"]
            )
            | st.text(max_size=4),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@examples(30)
@given(st.sampled_from(VERBS), json_values | st.dictionaries(st.text(max_size=3), json_values))
async def test_whatever_is_sent_the_answer_is_no_500_and_nothing_is_reserved(
    verb: str, value: Any
) -> None:
    async with stand(cluster()) as at:
        answer = await at.post(f"/{verb}", json.dumps(value).encode())
        assert 400 <= answer.status_code < 500
        assert at.reserved() == 0


@examples(30)
@given(st.binary(max_size=200), st.integers(0, 1000), st.sampled_from(VERBS))
async def test_a_damaged_body_is_refused_or_understood(
    noise: bytes, at_byte: int, verb: str
) -> None:
    name = {"bind": "bind.request", "preempt": "preempt.request"}.get(verb, "filter.request")
    text = recorded(name)
    place = at_byte % len(text)
    damaged = text[:place] + noise + text[place + len(noise) :]

    rig = Rig()
    rig.node("node-00000", "node-00001", "node-00002")
    async with stand(rig) as at:
        answer = await at.post(f"/{verb}", damaged)
        assert answer.status_code in (200, 400, 404)
