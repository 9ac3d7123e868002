"""``pumice jobflow`` and ``pumice jobtemplate``: the same five verbs on two kinds."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from app.wire.kinds import JOB_FLOWS, JOB_TEMPLATES, Resource
from tests.cli.stand import Done, Object, Stand, job

KINDS = {"jobflow": JOB_FLOWS, "jobtemplate": JOB_TEMPLATES}
WORDS = {"jobflow": "jobflow", "jobtemplate": "job template"}


def made(word: str, name: str, namespace: str = "default") -> Object:
    specs: dict[str, Object] = {
        "jobflow": {"jobRetainPolicy": "retain", "flows": [{"name": "one"}, {"name": "two"}]},
        "jobtemplate": job("x")["spec"],
    }
    resource = KINDS[word]
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": specs[word],
    }


@pytest.fixture(params=KINDS)
def word(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def resource(word: str) -> Resource:
    return KINDS[word]


@pytest.fixture
def file(word: str, tmp_path: Path) -> Path:
    path = tmp_path / "things.yaml"
    plain = made(word, "a")
    del plain["metadata"]["namespace"]
    path.write_text(yaml.safe_dump_all([plain, made(word, "b", "kube-system")]))
    return path


def test_create_and_delete_take_files(
    word: str, resource: Resource, file: Path, stand: Stand
) -> None:
    kind = resource.kind
    assert stand.printed(word, "create", "--file", str(file)) == (
        f"Created {kind}: default/a\nCreated {kind}: kube-system/b\n"
    )
    assert len(stand.all(resource)) == 2
    assert stand.printed(word, "delete", "-f", str(file)) == (
        f"Deleted {kind}: default/a\nDeleted {kind}: kube-system/b\n"
    )
    assert stand.all(resource) == []


def test_a_file_may_have_any_name(word: str, file: Path, stand: Stand) -> None:
    other = file.rename(file.with_suffix(".json"))
    assert stand.run(word, "create", "-f", str(other)).code == 0


def test_create_goes_on_after_one_that_is_there(
    word: str, resource: Resource, file: Path, stand: Stand
) -> None:
    stand.create(made(word, "a"))
    done = stand.run(word, "create", "-f", str(file))
    assert done.code == 6
    assert done.out == f"Created {resource.kind}: kube-system/b\n"
    assert done.err == f'Failed to create {word}: {resource} "a" already exists\n'


def test_delete_goes_on_after_one_that_is_gone(
    word: str, resource: Resource, file: Path, stand: Stand
) -> None:
    stand.create(made(word, "b", "kube-system"))
    done = stand.run(word, "delete", "-f", str(file))
    assert done.code == 3
    assert done.out == f"Deleted {resource.kind}: kube-system/b\n"
    assert done.err == f'Failed to delete {word}: {resource} "a" not found\n'


def test_delete_takes_a_name(word: str, resource: Resource, stand: Stand) -> None:
    stand.create(made(word, "a"))
    assert stand.printed(word, "delete", "-N", "a") == f"Deleted {resource.kind}: default/a\n"


def test_flows_are_listed_with_phase_and_age(stand: Stand) -> None:
    stand.create(made("jobflow", "first-flow"), made("jobflow", "b", "kube-system"))
    stand.status(JOB_FLOWS, "first-flow", {"state": {"phase": "Running"}})
    head, row = stand.printed("jobflow", "list").splitlines()
    assert re.fullmatch(r"Name          Namespace    Phase      Age +", head)
    assert re.fullmatch(r"first-flow    default      Running    \S+ +", row)
    assert len(stand.printed("jobflow", "list", "--all-namespaces").splitlines()) == 3
    only = stand.printed("jobflow", "get", "-N", "b", "-n", "kube-system").splitlines()
    assert re.fullmatch(r"b       kube-system             \S+ +", only[1])


def test_templates_are_listed_with_namespace(stand: Stand) -> None:
    stand.create(made("jobtemplate", "a"), made("jobtemplate", "longer"))
    assert stand.printed("jobtemplate", "list") == (
        "Name      Namespace    \na         default      \nlonger    default      \n"
    )
    assert stand.printed("jobtemplate", "get", "--name", "a") == (
        "Name    Namespace    \na       default      \n"
    )


def test_wide_shows_what_is_in_them(stand: Stand) -> None:
    stand.create(made("jobflow", "f"), made("jobtemplate", "t"))
    stand.status(JOB_FLOWS, "f", {"runningJobs": ["f-one"], "completedJobs": ["x", "y"]})
    stand.status(JOB_TEMPLATES, "t", {"jobDependsOnList": ["f-one", "g-one"]})
    head, row = stand.printed("jobflow", "list", "-o", "wide").splitlines()
    assert head.split()[-6:] == ["Flows", "Pending", "Running", "Completed", "Failed", "Terminated"]
    assert row.split()[-6:] == ["2", "0", "1", "2", "0", "0"]
    assert stand.printed("jobtemplate", "list", "-o", "wide").splitlines()[1].split() == [
        "t",
        "default",
        "1",
        "f-one,g-one",
    ]


def test_describe_prints_the_object(word: str, resource: Resource, stand: Stand) -> None:
    stand.create(made(word, "a"))
    described = stand.printed(word, "describe", "-N", "a", "-o", "json")
    shown = json.loads(described)
    assert (shown["apiVersion"], shown["kind"]) == (resource.api_version, resource.kind)
    assert "managedFields" not in shown["metadata"]
    assert yaml.safe_load(stand.printed(word, "describe", "-N", "a")) == shown
    assert stand.printed(word, "get", "-N", "a", "--output", "json") == described


def test_describe_without_a_name_prints_all_of_the_namespace(word: str, stand: Stand) -> None:
    stand.create(made(word, "a"), made(word, "b"), made(word, "c", "kube-system"))
    documents = list(yaml.safe_load_all(stand.printed(word, "describe")))
    assert [item["metadata"]["name"] for item in documents] == ["a", "b"]


def test_nothing_is_said_to_be_nothing(word: str, stand: Stand) -> None:
    assert stand.printed(word, "list") == "No resources found\n"
    for form in ("yaml", "json"):
        assert stand.run(word, "describe", "-o", form) == Done(0, "", "No resources found\n")


@pytest.mark.parametrize("verb", ["get", "describe", "delete"])
def test_what_is_not_there_is_code_3(
    verb: str, word: str, resource: Resource, stand: Stand
) -> None:
    why = f'Failed to {verb} {word}: {resource} "gone" not found\n'
    assert stand.refusal(word, verb, "-N", "gone") == (3, why)


def test_names_and_files_are_asked_for(word: str, stand: Stand) -> None:
    name = WORDS[word]
    for verb, why in (
        ("get", f"name is mandatory to get the particular {name} details"),
        ("delete", f"{name} name must be specified"),
        ("create", "the path to a YAML file (--file or -f) is mandatory"),
    ):
        assert stand.refusal(word, verb) == (2, f"Failed to {verb} {word}: {why}\n")


def test_a_file_of_another_kind_is_refused_whole(
    word: str, resource: Resource, stand: Stand, tmp_path: Path
) -> None:
    path = tmp_path / "mixed.yaml"
    path.write_text(yaml.safe_dump_all([made(word, "a"), job("b")]))
    assert stand.refusal(word, "create", "-f", str(path)) == (
        2,
        f"Failed to create {word}: {path}: document 2: apiVersion: "
        f"'batch.volcano.sh/v1alpha1' is not '{resource.api_version}'\n",
    )
    assert stand.all(resource) == []
