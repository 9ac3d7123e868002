"""tensorflow."""

import json

import pytest

from app.wire.unstructured import Object
from tests.controllers.jobplugins.jobs import (
    Plugins,
    container,
    job,
    pod,
    pod_variables,
    task,
    variables,
    wanted,
)

TF: Plugins = {"tensorflow": []}


def config(of: Object, task_name: str, index: int = 0) -> str:
    """``TF_CONFIG`` of a pod."""
    text = pod_variables(of, task_name, index)["TF_CONFIG"]
    assert isinstance(text, str)
    return text


@pytest.mark.parametrize(
    ("flags", "tasks", "place", "text"),
    [
        (
            [],
            [task("ps", 1), task("worker", 2)],
            ("worker", 1),
            '{"cluster":{"ps":["job-ps-0.job:2222"],'
            '"worker":["job-worker-0.job:2222","job-worker-1.job:2222"]},'
            '"task":{"type":"worker","index":1}}',
        ),
        (
            [],
            [task("chief"), task("evaluator"), task("worker"), task("ps")],
            ("evaluator", 0),
            '{"cluster":{"ps":["job-ps-0.job:2222"],"worker":["job-worker-0.job:2222"],'
            '"chief":["job-chief-0.job:2222"],"evaluator":["job-evaluator-0.job:2222"]},'
            '"task":{"type":"evaluator","index":0}}',
        ),
        (
            ["--ps=servers", "--worker=trainers", "--port=1"],
            [task("servers"), task("trainers")],
            ("servers", 0),
            '{"cluster":{"ps":["job-servers-0.job:1"],"worker":["job-trainers-0.job:1"]},'
            '"task":{"type":"ps","index":0}}',
        ),
        (
            ["--chief=first", "--evaluator=judge"],
            [task("first"), task("judge")],
            ("first", 0),
            '{"cluster":{"chief":["job-first-0.job:2222"],"evaluator":["job-judge-0.job:2222"]},'
            '"task":{"type":"chief","index":0}}',
        ),
        (
            [],
            [task("worker", 2), task("board")],
            ("board", 0),
            '{"cluster":{"worker":["job-worker-0.job:2222","job-worker-1.job:2222"]},'
            '"task":{"type":"board","index":0}}',
        ),
        (
            [],
            [task("worker", 2, subdomain="net"), task("ps", 0)],
            ("worker", 0),
            '{"cluster":{"worker":["job-worker-0.net:2222","job-worker-1.net:2222"]},'
            '"task":{"type":"worker","index":0}}',
        ),
    ],
)
def test_tf_config_is_the_cluster_and_the_place_in_it(
    flags: list[str], tasks: list[Object], place: tuple[str, int], text: str
) -> None:
    assert config(job({"tensorflow": flags}, *tasks), *place) == text
    json.loads(text)


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_single_pod_is_no_cluster(replicas: int) -> None:
    found = pod_variables(job(TF, task("worker", replicas)), "worker")
    assert ("TF_CONFIG" in found) == (replicas > 1)


def test_containers_proper_get_it_and_keep_their_own() -> None:
    mine = {"name": "TF_CONFIG", "value": "mine"}
    given = task(
        "worker",
        2,
        containers=[container("a"), container("b", env=[mine])],
        initContainers=[container("c")],
    )
    spec = pod(job(TF, given), "worker")["spec"]
    assert "TF_CONFIG" in variables(spec["containers"][0])
    assert variables(spec["containers"][1])["TF_CONFIG"] == "mine"
    assert "TF_CONFIG" not in variables(spec["initContainers"][0])


def test_the_hosts_resolve_since_svc_comes_with_it() -> None:
    given = job(TF, task("ps"), task("worker", 2))
    spec = pod(given, "worker", 1)["spec"]
    assert f"{spec['hostname']}.{spec['subdomain']}:2222" in config(given, "ps")
    assert "Service/job" in wanted(given)
