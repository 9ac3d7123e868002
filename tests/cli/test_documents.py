"""``-f``: what is read, and what is refused with file, document and field."""

from __future__ import annotations

import io
from itertools import pairwise
from pathlib import Path

import pytest

from app.cli.documents import read
from app.cli.endings import Code, CommandFailed
from app.wire.kinds import JOBS
from tests.cli.stand import Object

HEAD = "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\n"
GOOD = f"{HEAD}metadata: {{name: a}}\nspec: {{tasks: []}}\n"


def loaded(text: str, folder: Path) -> list[Object]:
    file = folder / "jobs.yaml"
    file.write_text(text)
    return read(str(file), JOBS, namespace="here")


def refusal(text: str, folder: Path) -> str:
    with pytest.raises(CommandFailed) as failure:
        loaded(text, folder)
    assert failure.value.code is Code.USAGE
    return str(failure.value).removeprefix(f"{folder / 'jobs.yaml'}: ")


def test_each_document_is_an_object_and_empty_ones_are_none(tmp_path: Path) -> None:
    text = f"---\n{GOOD}---\n# nothing here\n---\n{GOOD.replace('name: a', 'generateName: b-')}"
    first, second = loaded(text, tmp_path)
    assert first["metadata"] == {"name": "a", "namespace": "here"}
    assert second["metadata"] == {"generateName": "b-", "namespace": "here"}


def test_tabs_separate_as_for_kubectl(tmp_path: Path) -> None:
    [item] = loaded(GOOD.replace("kind: Job", "kind:\tJob\t# one"), tmp_path)
    assert item["kind"] == "Job"


def test_a_namespace_in_the_file_stays(tmp_path: Path) -> None:
    [item] = loaded(GOOD.replace("name: a", "name: a, namespace: there"), tmp_path)
    assert item["metadata"]["namespace"] == "there"


def test_a_list_is_taken_apart(tmp_path: Path) -> None:
    item = GOOD.replace("\n", "\n  ")
    text = f"apiVersion: v1\nkind: List\nitems:\n- {item}\n- {item}\n"
    assert len(loaded(text, tmp_path)) == 2


@pytest.mark.parametrize(
    "text", ["2020-01-01", "12:30:00", "1:30", "1:30.5", "1_a", "0o9", "1e", "-"]
)
def test_what_only_looks_like_a_date_or_a_number_is_text(text: str, tmp_path: Path) -> None:
    [item] = loaded(GOOD.replace("tasks: []", f"note: {text}"), tmp_path)
    assert item["spec"] == {"note": text}


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("-17", -17),
        ("1_000", 1000),
        ("0644", 420),
        ("0o644", 420),
        ("-0x1F", -31),
        ("0b101", 5),
        ("1.0", 1),
        ("1e3", 1000),
        ("-.5", -0.5),
        ("2.5e-1", 0.25),
    ],
)
def test_numbers_are_those_that_kubernetes_reads(text: str, number: float, tmp_path: Path) -> None:
    [item] = loaded(GOOD.replace("tasks: []", f"note: {text}"), tmp_path)
    assert item["spec"] == {"note": number}
    assert type(item["spec"]["note"]) is type(number)


def test_three_dashes_inside_a_text_do_not_end_a_document(tmp_path: Path) -> None:
    [item] = loaded(GOOD.replace("tasks: []", 'note: "a --- b"'), tmp_path)
    assert item["spec"]["note"] == "a --- b"


def given(text: bytes) -> io.TextIOWrapper:
    """Standard input, opened as in a shell of another language."""
    return io.TextIOWrapper(io.BytesIO(text), encoding="latin-1")


def test_standard_input_is_read_for_a_dash(monkeypatch: pytest.MonkeyPatch) -> None:
    text = GOOD.replace("spec:", "spec: # größer\n ")
    monkeypatch.setattr("sys.stdin", given(text.encode()))
    assert len(read("-", JOBS, namespace="here")) == 1


def test_standard_input_in_another_encoding_is_called_that(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", given(b"kind: Job\n\xe9\n"))
    with pytest.raises(CommandFailed) as failure:
        read("-", JOBS, namespace="here")
    assert str(failure.value) == "-: not UTF-8 text"


def test_standard_input_that_is_closed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(CommandFailed) as failure:
        read("-", JOBS, namespace="here")
    assert str(failure.value) == "-: standard input is closed"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "there is no document in it"),
        ("---\n---\n", "there is no document in it"),
        ("- a\n", "document 1: a list is no object"),
        (GOOD + "---\njust text\n", "document 2: text is no object"),
        (
            "kind: Job\n",
            "document 1: apiVersion: is missing; 'batch.volcano.sh/v1alpha1' is expected",
        ),
        (GOOD.replace("kind: Job", "kind: Pod"), "document 1: kind: 'Pod' is not 'Job'"),
        (f"{HEAD}spec: {{}}\n", "document 1: metadata: is missing"),
        (GOOD.replace("name: a", "labels: {}"), "document 1: metadata.name: is missing"),
        (GOOD.replace("name: a", "name: 5"), "document 1: metadata.name: 5 is no text"),
        (
            GOOD.replace("name: a", "name: a, namespace: [b]"),
            "document 1: metadata.namespace: ['b'] is no text",
        ),
        (f"{HEAD}metadata: {{name: a}}\n", "document 1: spec: is missing"),
        ("apiVersion: v1\nkind: List\nitems: [5]\n", "document 1: 5 is no object"),
        ("apiVersion: v1\nkind: List\nitems: 5\n", "document 1: items: is no list"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, why: str, tmp_path: Path) -> None:
    assert refusal(text, tmp_path) == why


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: [\n", "line 2, column 1: expected the node content, but found '<stream end>'"),
        ("x: y\na: b: c\n", "line 2, column 5: mapping values are not allowed here"),
        ("\tx", "line 1, column 1: found character '\\t' that cannot start any token"),
        (
            "!!python/object:os.system x",
            "line 1, column 1: could not determine a constructor for the tag "
            "'tag:yaml.org,2002:python/object:os.system'",
        ),
        ("[" * 5000, "nested too deeply"),
        ("a: *b\n", "line 1, column 4: found undefined alias 'b'"),
        ("a: \x00\n", "character 4: U+0000 may not stand in YAML"),
        (f"a: {'9' * 5000}\n", "line 1, column 4: the value cannot be read"),
    ],
)
def test_what_is_not_yaml_is_one_line_with_the_place(text: str, why: str, tmp_path: Path) -> None:
    said = refusal(text, tmp_path)
    assert said.startswith("not YAML: ")
    assert said.removeprefix("not YAML: ") == why


def test_aliases_of_aliases_are_not_followed_for_ever(tmp_path: Path) -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x]"]
    for before, name in pairwise("abcdefghijkl"):
        lines.append(f"{name}: &{name} [{', '.join([f'*{before}'] * 8)}]")
    assert refusal("\n".join(lines), tmp_path) == "there are more than 2000000 values"


@pytest.mark.parametrize(
    "spec",
    ["&a {x: *a}", "{x: !!set {a}}", "{x: .inf}", "{x: 1e999}", "{x: .nan}", "{x: !!binary aGk=}"],
    ids=["circle", "set", "infinity", "beyond all", "no number", "bytes"],
)
def test_what_json_cannot_say_is_refused(spec: str, tmp_path: Path) -> None:
    why = refusal(f"{GOOD}---\n{GOOD.replace('{tasks: []}', spec)}", tmp_path)
    assert why.startswith("document 2: cannot be said in JSON: ")


def test_a_line_is_named_where_the_yaml_breaks(tmp_path: Path) -> None:
    assert "line 3, column" in refusal("a: 1\nb: 2\nc: [\n", tmp_path).replace("line 4", "line 3")


def test_files_that_cannot_be_read_are_said(tmp_path: Path) -> None:
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    for file, why in (
        (str(binary), "failed to read file: not UTF-8 text"),
        (str(tmp_path / "none.yml"), "failed to read file: No such file or directory"),
        (str(tmp_path), "failed to read file: Is a directory"),
    ):
        with pytest.raises(CommandFailed) as failure:
            read(file, JOBS, namespace="here")
        assert str(failure.value) == f"{file}: {why}"
