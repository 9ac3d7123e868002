"""The plugins of a job together."""

from copy import deepcopy

import pytest

from app.jobplugins import catalogue
from app.jobplugins.plugin import PodOfJob
from app.jobplugins.rules.catalogue import KNOWN
from app.jobplugins.rules.problems import PluginError
from tests.controllers.jobplugins.jobs import bare_pod, container, job, one_key, task
from tests.wire.deep import depth, nested

TASKS = (task("master"), task("worker", 2), task("head", containers=[container("head")]))
ALL: dict[str, list[str]] = {name: [] for name in KNOWN}


def test_every_known_plugin_can_be_used() -> None:
    plugins = catalogue.parse(job(ALL, *TASKS), make_keys=one_key)
    assert list(plugins.plugins) == list(KNOWN)
    assert plugins.controlled_resources() == {f"plugin-{name}": name for name in KNOWN}


@pytest.mark.parametrize("nothing", [None, {}])
def test_a_job_without_plugins_changes_nothing(nothing: object) -> None:
    given = job({}, *TASKS)
    given["spec"]["plugins"] = nothing
    plugins = catalogue.parse(given)
    pod = bare_pod(given, "worker", 1)
    assert plugins.pod(pod, PodOfJob("worker", 1)) == pod
    assert plugins.objects() == ()
    assert plugins.controlled_resources() == {}


def test_plugins_that_were_brought_along_are_told_of() -> None:
    plugins = catalogue.parse(job({"mpi": []}, *TASKS), make_keys=one_key)
    assert plugins.controlled_resources() == {
        "plugin-svc": "svc",
        "plugin-ssh": "ssh",
        "plugin-mpi": "mpi",
    }


def test_a_pod_is_copied_before_it_is_changed() -> None:
    given = job(ALL, *TASKS)
    pod = bare_pod(given, "worker", 1)
    before = deepcopy(pod)
    assert catalogue.parse(given, make_keys=one_key).pod(pod, PodOfJob("worker", 1)) != before
    assert pod == before


def test_and_however_deep_it_is() -> None:
    given = job(ALL, *TASKS)
    pod = bare_pod(given, "worker", 1)
    pod["spec"]["unknown"] = nested(500)
    made = catalogue.parse(given, make_keys=one_key).pod(pod, PodOfJob("worker", 1))
    assert depth(made["spec"]["unknown"]) == 500


def test_the_job_is_not_changed() -> None:
    given = job(ALL, *TASKS)
    before = deepcopy(given)
    plugins = catalogue.parse(given, make_keys=one_key)
    for wanted in plugins.objects():
        wanted.step(None)
    assert given == before


def test_plugins_applied_twice_change_nothing_the_second_time() -> None:
    given = job({**ALL, "pytorch": ["--wait-master-enabled"]}, *TASKS)
    plugins = catalogue.parse(given, make_keys=one_key)
    for place in (PodOfJob("worker", 1), PodOfJob("master", 0), PodOfJob("head", 0)):
        once = plugins.pod(bare_pod(given, place.task, place.index), place)
        waiters = list(once["spec"].get("initContainers") or ())
        once["spec"].pop("initContainers", None)
        again = plugins.pod(once, place)
        again["spec"].pop("initContainers", None)
        assert again == once
        assert len(waiters) == (place.task == "worker")


def test_all_that_is_wrong_is_raised_at_once() -> None:
    with pytest.raises(PluginError) as caught:
        catalogue.parse(job({"spark": [], "ssh": ["--ssh-port=x"], "mpi": []}, task("ps")))
    assert [problem.path for problem in caught.value.problems] == [
        "spec.plugins.spark",
        "spec.plugins.ssh",
        "spec.plugins.mpi",
    ]


def test_no_two_objects_have_one_name() -> None:
    plugins = catalogue.parse(job(ALL, *TASKS), make_keys=one_key)
    where = [(wanted.resource, wanted.key) for wanted in plugins.objects()]
    assert len(set(where)) == len(where) == 5
