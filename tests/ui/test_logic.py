"""What modules of the page work out without a document: words, updates, addresses, events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.ui import samples
from tests.ui.chromium import Wire, tab
from tests.ui.site import PAGE, Site, serving


@pytest.fixture(scope="module")
def call(chromium: Wire) -> Iterator[Any]:
    """Call a function of a module."""
    with serving(Site(samples.whole())) as site, tab(chromium) as page:
        page.open(f"{site.url}/ui")

        def called(module: str, code: str) -> Any:
            body = f"import('{site.url}/ui/{module}.js').then(it => JSON.stringify({code}))"
            return json.loads(page.value(body))

        yield called


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("it.span(0)", "0 s"),
        ("it.span(59.6)", "1 min"),
        ("it.span(90061)", "1 d 1 h"),
        ("it.span(86401)", "1 d"),
        ("it.distance(100, 100.4)", "now"),
        ("it.distance(100, 160)", "1 min ago"),
        ("it.distance(160, 100)", "in 1 min"),
        ("it.amount('cpu', 2500)", "2.5"),
        ("it.amount('cpu', 123456)", "123"),
        ("it.amount('cpu', 1)", "1m"),
        ("it.amount('cpu', -1)", "-1m"),
        ("it.amount('memory', 1536 * 1024 * 1024)", "1.5Gi"),
        ("it.amount('nvidia.com/gpu', 8)", "8"),
        ("it.amounts({cpu: 1000, memory: 0, pods: 4})", "1 cpu"),
        ("it.amounts({})", "nothing"),
        ("it.percent(1.204)", "120 %"),
        ("it.count(1, 'job')", "1 job"),
        ("it.count(12345, 'job')", "12345 jobs"),
    ],
)
def test_amounts_and_times_are_told_in_words(call: Any, code: str, text: str) -> None:
    assert call("words", code).replace("\xa0", " ") == text


def test_a_delta_changes_and_removes_rows_and_values(call: Any) -> None:
    whole = {
        "generation": 3,
        "at": 10,
        "cluster": {"nodes": 1},
        **{name: [] for name in ("queues", "nodes", "domains", "future")},
        "jobs": [{"key": "a", "n": 1}, {"key": "b", "n": 1}],
    }
    delta = {
        "generation": 4,
        "before": 3,
        "at": 11,
        "cluster": {"nodes": 2},
        "changed": {"jobs": [{"key": "a", "n": 2}, {"key": "c", "n": 1}]},
        "gone": {"jobs": ["b"]},
    }
    code = (
        f"(() => {{ const view = it.viewOf({json.dumps(whole)}, 0);"
        f" const followed = [it.follow(view, {json.dumps(delta)}),"
        f" it.follow(view, {json.dumps(delta)})];"
        " return [followed, view.generation, view.cluster.nodes, [...view.jobs.values()]]; })()"
    )
    rows = [{"key": "a", "n": 2}, {"key": "c", "n": 1}]
    assert call("store", code) == [[True, False], 4, 2, rows]


def test_the_clock_is_that_of_the_server_also_when_nothing_has_changed_for_long(call: Any) -> None:
    lists: dict[str, list[Any]] = {
        name: [] for name in ("queues", "jobs", "nodes", "domains", "future")
    }
    whole = json.dumps({"generation": 1, "at": 100, **lists})
    delta = json.dumps({"generation": 2, "before": 1, "at": 170})
    code = (
        f"(() => {{ const view = it.viewOf({whole}, 160); const first = it.now(view);"
        f" it.follow(view, {delta}); return [first, it.now(view), view.at].map(Math.floor); }})()"
    )
    assert call("store", code) == [160, 170, 170]


def test_events_are_read_wherever_the_stream_is_cut(call: Any) -> None:
    stream = (
        'event: whole\r\nid: 1\r\ndata: {"a":\r\ndata: 1}\r\n\r\n: beat\n\nevent: x\ndata: 2\n\n'
    )
    code = (
        "(cut => { const found = []; const events = new it.Events(e => found.push(e));"
        f" const all = {json.dumps(stream)};"
        " events.feed(all.slice(0, cut)); events.feed(all.slice(cut)); return found; })"
    )
    expected = [{"name": "whole", "data": '{"a":\n1}'}, {"name": "x", "data": "2"}]
    cuts = range(len(stream))
    assert call("live", f"{json.dumps(list(cuts))}.map({code})") == [expected] * len(cuts)


@pytest.mark.parametrize(
    ("hash_", "route"),
    [
        ("", {"view": "queues", "names": [], "options": {}}),
        ("#/jobs/a/b%2Fc", {"view": "jobs", "names": ["a", "b/c"], "options": {}}),
        (
            "#/jobs?text=a+b&queue=",
            {"view": "jobs", "names": [], "options": {"text": "a b", "queue": ""}},
        ),
        ("#/jobs/%", {"view": "jobs", "names": ["%"], "options": {}}),
    ],
)
def test_addresses_are_read(call: Any, hash_: str, route: dict[str, Any]) -> None:
    assert call("routes", f"it.read({json.dumps(hash_)})") == route


def test_addresses_that_are_written_are_read_again(call: Any) -> None:
    code = "it.read(it.link('jobs', ['a/b', '<c>%'], {text: 'x & y', none: ''}))"
    written = {"view": "jobs", "names": ["a/b", "<c>%"], "options": {"text": "x & y"}}
    assert call("routes", code) == written


def test_queues_are_listed_below_their_parents_whatever_these_are(call: Any) -> None:
    parents = {"root": "", "b": "root", "a": "root", "a2": "a", "lost": "gone", "self": "self"}
    queues = json.dumps([[k, {"key": k, "name": k, "parent": v}] for k, v in parents.items()])
    code = f"it.tree(new Map({queues})).map(each => [each.queue.name, each.depth])"
    assert call("queues", code) == [
        ["lost", 0],
        ["root", 0],
        ["a", 1],
        ["a2", 2],
        ["b", 1],
        ["self", 0],
    ]


def test_a_list_that_changes_becomes_what_it_is_told(call: Any) -> None:
    """Whatever order of keys follows on another, the elements stay the same ones."""
    code = """(() => {
      const place = document.createElement('ul');
      const rows = keys => keys.map(key => it.h('li', {key}, key));
      const made = new Map();
      const orders = ['abc', 'cab', 'a', '', 'dcba', 'abcd', 'bd'];
      return orders.map(order => {
        it.paint(place, rows([...order]));
        for (const li of place.children) {
          const before = made.get(li.textContent);
          if (before && before.isConnected && before !== li) return 'made anew';
          made.set(li.textContent, li);
        }
        return place.textContent;
      });
    })()"""
    assert call("dom", code) == ["abc", "cab", "a", "", "dcba", "abcd", "bd"]


def test_no_file_writes_markup_or_is_long() -> None:
    for file in PAGE.glob("*.js"):
        text = file.read_text()
        assert "innerHTML" not in text
        assert "insertAdjacentHTML" not in text
        assert len(text.splitlines()) <= 400
