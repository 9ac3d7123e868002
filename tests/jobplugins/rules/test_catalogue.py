"""Which plugins there are, with which flags, and how a job's plugins are refused."""

from collections.abc import Mapping

import pytest

from app.jobplugins.rules import arguments as plugin_arguments
from app.jobplugins.rules.arguments import (
    Arguments,
    Env,
    Hcclrank,
    Jax,
    Mpi,
    Pytorch,
    Ray,
    Ssh,
    Svc,
    Tensorflow,
)
from app.jobplugins.rules.catalogue import KNOWN, NEEDS, completed, read
from app.jobplugins.rules.problems import PluginError

TASKS = ("master", "worker", "head")


def only(given: Mapping[str, list[str] | None]) -> Arguments:
    """The arguments of the last plugin to run, of plugins that are right."""
    reading = read(given, tasks=TASKS)
    assert reading.problems == ()
    return list(reading.arguments.values())[-1]


def said(given: Mapping[str, list[str] | None]) -> list[str]:
    return [str(problem) for problem in read(given, tasks=TASKS).problems]


@pytest.mark.parametrize(
    ("plugin", "flags"),
    [
        ("env", ""),
        ("svc", "publish-not-ready-addresses disable-network-policy inject-hosts-env"),
        ("ssh", "ssh-key-file-path ssh-private-key ssh-public-key ssh-port ssh-key-type"),
        ("tensorflow", "ps worker chief evaluator port"),
        (
            "pytorch",
            "master worker port wait-master-enabled wait-master-timeout wait-master-image"
            " elastic min-nodes max-nodes nproc-per-node max-restarts rdzv-backend rdzv-endpoint",
        ),
        ("mpi", "master worker port"),
        ("ray", "head headContainer worker workerContainer port dashboardPort clientPort"),
        ("jax", "coordinator worker port"),
        ("hcclrank", "master worker"),
    ],
)
def test_each_plugin_has_its_flags(plugin: str, flags: str) -> None:
    assert list(plugin_arguments.kinds(KNOWN[plugin])) == flags.split()


@pytest.mark.parametrize(
    ("plugin", "arguments", "meaning"),
    [
        ("env", [], Env()),
        ("env", None, Env()),
        ("svc", [], Svc(False, False, True)),
        (
            "svc",
            [
                "--publish-not-ready-addresses",
                "--disable-network-policy=true",
                "--inject-hosts-env=false",
            ],
            Svc(True, True, False),
        ),
        ("ssh", [], Ssh("/root/.ssh", "", "", 22, "rsa")),
        (
            "ssh",
            [
                "--ssh-key-file-path=/home/user/.ssh",
                "--ssh-private-key=private",
                "--ssh-public-key=public",
                "--ssh-port=2022",
                "--ssh-key-type=ed25519",
            ],
            Ssh("/home/user/.ssh", "private", "public", 2022, "ed25519"),
        ),
        ("tensorflow", [], Tensorflow("ps", "worker", "chief", "evaluator", 2222)),
        (
            "tensorflow",
            ["--ps=p", "--worker=w", "--chief=c", "--evaluator=e", "--port=1"],
            Tensorflow("p", "w", "c", "e", 1),
        ),
        ("pytorch", [], Pytorch("master", "worker", 23456, False, 300, "busybox:1.36.1")),
        (
            "pytorch",
            [
                "--master=m",
                "--worker=w",
                "--port=1",
                "--wait-master-enabled",
                "--wait-master-timeout=60",
                "--wait-master-image=alpine",
            ],
            Pytorch("m", "w", 1, True, 60, "alpine"),
        ),
        (
            "pytorch",
            [
                "--elastic",
                "--min-nodes=2",
                "--max-nodes=4",
                "--nproc-per-node=8",
                "--max-restarts=3",
                "--rdzv-backend=etcd-v2",
                "--rdzv-endpoint=etcd:2379",
            ],
            Pytorch(
                elastic=True,
                min_nodes=2,
                max_nodes=4,
                nproc_per_node="8",
                max_restarts=3,
                rdzv_backend="etcd-v2",
                rdzv_endpoint="etcd:2379",
            ),
        ),
        ("mpi", [], Mpi("master", "worker", 22)),
        ("mpi", ["--master=head", "--worker=w", "--port=2022"], Mpi("head", "w", 2022)),
        ("ray", [], Ray("head", "head", "worker", "worker", 6379, 8265, 10001)),
        (
            "ray",
            [
                "--head=master",
                "--headContainer=hc",
                "--worker=w",
                "--workerContainer=wc",
                "--port=1",
                "--dashboardPort=2",
                "--clientPort=3",
            ],
            Ray("master", "hc", "w", "wc", 1, 2, 3),
        ),
        ("jax", [], Jax("coordinator", "worker", 1234)),
        ("jax", ["--coordinator=c", "--worker=w", "--port=1"], Jax("c", "w", 1)),
        ("hcclrank", [], Hcclrank("master", "worker")),
        ("hcclrank", ["--master=m", "--worker=w"], Hcclrank("m", "w")),
    ],
)
def test_arguments_have_volcanos_names_and_defaults(
    plugin: str, arguments: list[str] | None, meaning: Arguments
) -> None:
    assert only({plugin: arguments}) == meaning


def test_a_job_without_plugins_has_none() -> None:
    assert read({}, tasks=()).arguments == {}
    assert completed({}) == {}


@pytest.mark.parametrize(
    ("plugin", "brought"),
    [
        ("env", []),
        ("svc", []),
        ("ssh", []),
        ("tensorflow", ["svc"]),
        ("pytorch", ["svc"]),
        ("mpi", ["svc", "ssh"]),
        ("ray", ["svc"]),
        ("jax", ["svc"]),
        ("hcclrank", []),
    ],
)
def test_a_plugin_brings_what_it_needs(plugin: str, brought: list[str]) -> None:
    assert completed({plugin: ["--x"]}) == {plugin: ["--x"]} | {name: [] for name in brought}
    assert sorted(read({plugin: []}, tasks=TASKS).arguments) == sorted([plugin, *brought])


def test_a_needed_plugin_keeps_the_arguments_it_was_given() -> None:
    given = {"mpi": [], "svc": ["--disable-network-policy"], "ssh": None}
    assert completed(given) == {"mpi": [], "svc": ["--disable-network-policy"], "ssh": []}
    assert read(given, tasks=TASKS).arguments["svc"] == Svc(disable_network_policy=True)


def test_completing_twice_changes_nothing() -> None:
    once = completed({name: [] for name in NEEDS})
    assert completed(once) == once


def test_plugins_run_in_one_order_however_they_are_written() -> None:
    names = list(KNOWN)
    given: dict[str, list[str] | None] = {name: [] for name in reversed(names)}
    assert list(read(given, tasks=TASKS).arguments) == names


def test_an_unknown_plugin_is_refused_with_the_list_of_known_ones() -> None:
    assert said({"svc": [], "spark": []}) == [
        "spec.plugins.spark: unable to find job plugin: spark; the known plugins are"
        " env, hcclrank, jax, mpi, pytorch, ray, ssh, svc, tensorflow"
    ]


def test_a_flag_of_another_release_is_no_problem_and_named_with_those_there_are() -> None:
    reading = read({"hcclrank": ["--chief=a"], "env": ["--x"]}, tasks=TASKS)
    assert reading.problems == ()
    assert [str(ignored) for ignored in reading.ignored] == [
        "spec.plugins.env: there is no flag --x; this plugin takes no flags",
        "spec.plugins.hcclrank: there is no flag --chief;"
        " its flags are --master=NAME, --worker=NAME",
    ]


def test_all_problems_of_all_plugins_are_told_at_once() -> None:
    ssh = ["--ssh-port=x", "--ssh-key-type=y"]
    given = {"a": [], "ssh": ssh, "b": None, "mpi": ["--port=z", "--master=nobody"]}
    assert [problem.path for problem in read(given, tasks=TASKS).problems] == [
        "spec.plugins.a",
        "spec.plugins.b",
        "spec.plugins.ssh",
        "spec.plugins.ssh",
        "spec.plugins.mpi",
        "spec.plugins.mpi",
    ]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (
            {"mpi": []},
            "spec.plugins.mpi: The specified mpi master task was not found;"
            " name a task 'master' or write --master=TASK",
        ),
        (
            {"ray": ["--head=main"]},
            "spec.plugins.ray: The specified ray head task was not found;"
            " name a task 'main' or write --head=TASK",
        ),
    ],
)
def test_a_task_that_a_plugin_cannot_do_without_must_exist(
    given: Mapping[str, list[str]], problem: str
) -> None:
    (found,) = read(given, tasks=("worker",)).problems
    assert str(found) == problem


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (
            {"pytorch": ["--min-nodes=2"]},
            "spec.plugins.pytorch: --min-nodes has no effect without --elastic;"
            " add --elastic or remove it",
        ),
        (
            {"pytorch": ["--elastic", "--min-nodes=3", "--max-nodes=2"]},
            "spec.plugins.pytorch: --min-nodes=3 is above --max-nodes=2;"
            " lower the one or raise the other",
        ),
        (
            {"pytorch": ["--elastic", "--rdzv-backend=etcd"]},
            "spec.plugins.pytorch: --rdzv-backend=etcd needs to know its server;"
            " write --rdzv-endpoint=HOST:PORT",
        ),
        (
            {"ray": ["--dashboardPort=6379"]},
            "spec.plugins.ray: --port, --dashboardPort and --clientPort are not three ports;"
            " give each its own",
        ),
    ],
)
def test_flags_that_do_not_go_together_are_refused(
    given: Mapping[str, list[str]], problem: str
) -> None:
    assert said(given) == [problem]


def test_an_error_tells_all_its_problems() -> None:
    problems = read({"a": [], "ssh": ["--ssh-port"]}, tasks=()).problems
    error = PluginError(problems)
    assert error.problems == problems
    assert str(error).startswith("spec.plugins.a: unable to find job plugin: a; the known")
    assert str(error).endswith("ssh: --ssh-port has no value; write --ssh-port=PORT")
