"""HyperNodes of a JSON document."""

import json
from typing import Any

import pytest

from app.controllers.hypernode import by_document
from app.controllers.hypernode.making import Known, TopologyError
from app.wire.unstructured import spec
from tests.controllers.hypernode.shapes import known, nodes, source_of, tree

NOTHING = Known({})


def rack(name: str, *members: object, **more: Any) -> dict[str, Any]:
    return {"name": name, "tier": 1, "nodes": members, **more}


def row(name: str, *below: str, tier: int = 2, **more: Any) -> dict[str, Any]:
    return {"name": name, "tier": tier, "domains": below, **more}


def domains(*each: object) -> by_document.Domains:
    return by_document.read_document(json.dumps({"domains": each}).encode())


def test_domains_become_hyper_nodes_of_their_names() -> None:
    told = domains(
        row("row-1", "rack-2", "rack-1", tierName="row"),
        rack("rack-1", "a", "b", tierName="rack", comment="north"),
        rack("rack-2", "c"),
    )
    found = by_document.hyper_nodes(told, nodes("a", "b", "c"), NOTHING)
    assert tree(found) == {
        "rack-1": (1, ["a", "b"]),
        "rack-2": (1, ["c"]),
        "row-1": (2, ["rack-1", "rack-2"]),
    }
    assert [spec(found[name]).get("tierName") for name in sorted(found)] == ["rack", None, "row"]
    assert {source_of(each) for each in found.values()} == {"rest"}


def test_branches_may_be_of_different_depth() -> None:
    told = domains(rack("r", "a"), row("s", "r"), row("top", "s", tier=5, nodes=["b"]))
    found = by_document.hyper_nodes(told, nodes("a", "b"), NOTHING)
    assert tree(found) == {"r": (1, ["a"]), "s": (2, ["r"]), "top": (5, ["s", "b"])}


def test_nodes_that_are_not_there_are_left_out_and_domains_that_have_none() -> None:
    told = domains(
        rack("r1", "a", "gone"), rack("r2", "gone-too"), row("s1", "r1"), row("s2", "r2")
    )
    found = by_document.hyper_nodes(told, nodes("a", "b"), NOTHING)
    assert tree(found) == {"r1": (1, ["a"]), "s1": (2, ["r1"])}


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ([rack("a", "n"), row("a")], "domain a is there twice"),
        ([row("a", "b")], "domain a: there is no domain 'b'"),
        ([row("a", "b"), row("b", "a")], "domain b is below a, their tiers are 2 and 2"),
        ([row("a", "a")], "domain a is below a, their tiers are 2 and 2"),
        (
            [row("a", "b"), row("b", "c", tier=3), row("c", "a", tier=4)],
            "domain b is below a, their tiers are 3 and 2",
        ),
        ([rack("r", "n"), row("a", "r"), row("b", "r")], "domain r is in both a and b"),
        ([rack("r", "n"), rack("s", "n")], "node n is in both r and s"),
        ([rack("Rack 1", "n")], "domain 'Rack 1': a lowercase RFC 1123 subdomain"),
        ([rack("x" * 300, "n")], "must be no more than 253"),
        ([rack("r", 7)], r"Expected `str`, got `int` - at `\$.domains\[0\].nodes\[0\]`"),
        ([{"name": "r"}], "missing required field `tier`"),
        ([{"name": "r", "tier": -1}], "`int` >= 0"),
        ([{"name": "r", "tier": "1"}], "Expected `int`, got `str`"),
        ([], "length >= 1"),
        ([rack(f"r{n}") for n in range(20_001)], "length <= 20000"),
    ],
)
def test_what_is_no_tree_is_refused(told: list[Any], said: str) -> None:
    with pytest.raises(TopologyError, match=said):
        domains(*told)


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b"null", b'{"domains": null}', b'{"domains":' + b"[" * 100_000]
)
def test_what_is_no_document_is_refused(body: bytes) -> None:
    with pytest.raises(TopologyError, match="not a document of domains"):
        by_document.read_document(body)


def test_a_document_of_another_cluster_is_refused() -> None:
    with pytest.raises(TopologyError, match="no domain has a node of this cluster"):
        by_document.hyper_nodes(domains(rack("r", "a")), nodes("b"), NOTHING)


def test_a_hyper_node_that_was_made_by_hand_is_not_taken_over() -> None:
    told = domains(rack("r", "a"))
    with pytest.raises(TopologyError, match="HyperNode r is there already"):
        by_document.hyper_nodes(told, nodes("a"), known({}, ["r"]))


def test_a_hundred_thousand_nodes_are_read() -> None:
    told = domains(*(rack(f"r{n}", *(f"n{n}-{m}" for m in range(20))) for n in range(5000)))
    found = by_document.hyper_nodes(told, nodes("n7-3"), NOTHING)
    assert tree(found) == {"r7": (1, ["n7-3"])}
