"""env."""

import pytest

from tests.controllers.jobplugins.jobs import container, job, pod, task, variables, wanted

INDEX_1 = {"VK_TASK_INDEX": "1", "VC_TASK_INDEX": "1"}


def test_every_container_knows_the_index_of_its_pod() -> None:
    several = task(
        "ps",
        2,
        containers=[container("a"), container("b")],
        initContainers=[container("c")],
    )
    made = pod(job({"env": []}, several), "ps", 1)
    assert [variables(one) for one in made["spec"]["containers"]] == [INDEX_1, INDEX_1]
    assert [variables(one) for one in made["spec"]["initContainers"]] == [INDEX_1]


def test_what_a_container_has_stays_first_and_as_it_is() -> None:
    given = [{"name": "A", "value": "a"}, {"name": "VK_TASK_INDEX", "value": "mine"}]
    several = task("ps", 2, containers=[container(env=given)])
    made = pod(job({"env": []}, several), "ps", 1)
    assert made["spec"]["containers"][0]["env"] == [
        *given,
        {"name": "VC_TASK_INDEX", "value": "1"},
    ]


@pytest.mark.parametrize("nothing", [None, []])
def test_an_empty_list_of_variables_is_filled(nothing: list[object] | None) -> None:
    made = pod(job({"env": []}, task("ps", 2, containers=[container(env=nothing)])), "ps", 1)
    assert variables(made["spec"]["containers"][0]) == INDEX_1


def test_nothing_else_changes() -> None:
    made = pod(job({"env": []}, task("ps", 1, nodeSelector={"a": "b"})), "ps")
    assert made["spec"].keys() == {"containers", "nodeSelector"}
    assert made["metadata"]["annotations"] == {"volcano.sh/task-spec": "ps"}
    assert wanted(job({"env": []}, task("ps"))) == {}
