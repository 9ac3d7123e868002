"""Which namespace a command is about: the one given, else the context's, else ``default``."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
import yaml

from app.cli.root import app
from app.cli.standalone import PROGRAMS
from app.kube import config
from app.wire.kinds import JOB_FLOWS, JOBS
from tests.cli.stand import Object, Stand, job


@pytest.fixture
def at_work(stand: Stand) -> Stand:
    """The context names the namespace ``work``, another one of the same file ``rest``."""
    known = yaml.safe_load(stand.config.read_text())
    [context] = known["contexts"]
    context["context"]["namespace"] = "work"
    rest = {**context["context"], "namespace": "rest"}
    known["contexts"].append({"name": "rest", "context": rest})
    stand.config.write_text(yaml.safe_dump(known))
    stand.create(
        *(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            for name in ("work", "rest")
        )
    )
    return stand


def in_space(item: Object, space: str) -> Object:
    return {**item, "metadata": {**item["metadata"], "namespace": space}}


def flow(kind: str, name: str, space: str) -> Object:
    return {
        "apiVersion": "flow.volcano.sh/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, "namespace": space},
        "spec": {"flows": []} if kind == "JobFlow" else job("x")["spec"],
    }


def pod(name: str, space: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": space,
            "labels": {"volcano.sh/job-name": "j"},
        },
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }


VERBS: dict[str, tuple[typer.Typer, list[str]]] = {
    "job list": (app, ["job", "list"]),
    "job view": (app, ["job", "view", "-N", "{}"]),
    "job suspend": (app, ["job", "suspend", "-N", "{}"]),
    "job resume": (app, ["job", "resume", "-N", "{}"]),
    "job delete": (app, ["job", "delete", "-N", "{}"]),
    "jobflow list": (app, ["jobflow", "list"]),
    "jobflow get": (app, ["jobflow", "get", "-N", "{}"]),
    "jobflow describe": (app, ["jobflow", "describe", "-N", "{}"]),
    "jobflow describe all": (app, ["jobflow", "describe"]),
    "jobflow delete": (app, ["jobflow", "delete", "-N", "{}"]),
    "jobtemplate list": (app, ["jobtemplate", "list"]),
    "jobtemplate get": (app, ["jobtemplate", "get", "-N", "{}"]),
    "pod list": (app, ["pod", "list"]),
    "explain": (app, ["explain", "job/{}"]),
    "vjobs": (PROGRAMS["vjobs"], []),
    "vjobs of one": (PROGRAMS["vjobs"], ["-n", "{}"]),
    "vsuspend": (PROGRAMS["vsuspend"], ["-n", "{}"]),
    "vresume": (PROGRAMS["vresume"], ["-n", "{}"]),
    "vcancel": (PROGRAMS["vcancel"], ["-n", "{}"]),
}


@pytest.mark.parametrize("verb", VERBS)
def test_the_context_says_which(verb: str, at_work: Stand) -> None:
    for name, space in (("ours", "work"), ("theirs", "rest"), ("usual", "default")):
        at_work.create(
            in_space(job(name), space),
            flow("JobFlow", name, space),
            flow("JobTemplate", name, space),
            pod(name, space),
        )
    program, words = VERBS[verb]
    flag = "-n" if program is app else "-N"
    for name, more in (
        ("ours", []),
        ("theirs", ["--context", "rest"]),
        ("usual", [flag, "default"]),
    ):
        done = at_work.run(*(word.format(name) for word in words), *more, program=program)
        assert done.code == 0, done.err
        others = {"ours", "theirs", "usual"} - {name}
        assert name in done.out
        assert not [other for other in others if other in done.out]


def test_what_is_made_is_made_there(at_work: Stand, tmp_path: Path) -> None:
    file = tmp_path / "flow.yaml"
    item = flow("JobFlow", "f", "")
    del item["metadata"]["namespace"]
    file.write_text(yaml.safe_dump(item))
    bare = job("of-a-file")
    bare["metadata"].pop("namespace", None)
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(bare))
    at_work.printed("job", "run", "-N", "of-flags")
    at_work.printed("job", "run", "-f", str(tmp_path / "job.yaml"))
    at_work.printed("-n", "of-vsub", program=PROGRAMS["vsub"])
    at_work.printed("jobflow", "create", "-f", str(file))
    made = {item["metadata"]["name"]: item["metadata"]["namespace"] for item in at_work.all(JOBS)}
    assert made == dict.fromkeys(("of-flags", "of-a-file", "of-vsub"), "work")
    assert [item["metadata"]["namespace"] for item in at_work.all(JOB_FLOWS)] == ["work"]


def test_a_file_may_name_another_unless_one_is_asked_for(at_work: Stand, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(in_space(job("a"), "rest")))
    assert at_work.refusal("job", "run", "-f", str(file), "-n", "default")[0] == 2
    assert at_work.printed("job", "run", "-f", str(file)) == "run job a successfully\n"


def test_vsub_s_variable_goes_before_the_context(at_work: Stand) -> None:
    env = {"VOLCANO_DEFAULT_JOB_NAMESPACE": "rest"}
    assert at_work.run("-n", "a", program=PROGRAMS["vsub"], env=env).code == 0
    assert [item["metadata"]["namespace"] for item in at_work.all(JOBS)] == ["rest"]


def test_a_context_that_does_not_exist_is_code_2(at_work: Stand) -> None:
    code, why = at_work.refusal("job", "list", "--context", "nowhere")
    assert code == 2
    assert "nowhere" in why
    assert why.count("\n") == 1


def test_without_a_kubeconfig_it_is_the_default_one(
    stand: Stand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    stand.create(job("a"))
    shown = stand.printed("job", "list", "-o", "name", "--kubeconfig", "", "-s", stand.url)
    assert shown == "job.batch.volcano.sh/a\n"


def test_in_a_pod_it_is_the_pod_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(config.SERVICE_HOST, "10.0.0.1")
    monkeypatch.setattr(config, "SERVICE_ACCOUNT_NAMESPACE", str(tmp_path / "namespace"))
    assert config.namespace() == ""
    (tmp_path / "namespace").write_text("work\n")
    assert config.namespace() == "work"
