"""Every file of `examples/` on the real control plane, as it stands: accepted, and it runs.

Extender, controllers and webhooks are ours, kube-scheduler and kube-controller-manager are stock,
kubelets are simulated: a program that is not a shell's own runs for ever, unless `ENDS` says that
it ends. Files with a configuration beside them are not here: it would have to be in force
(`tests/scenarios/jobs/test_plugin_examples.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pytest

from tests.clusters.client import ApiError, Object, Objects
from tests.clusters.resources import (
    CRON_JOBS,
    JOB_FLOWS,
    JOB_TEMPLATES,
    JOBS,
    POD_GROUPS,
    PODS,
    QUEUES,
)
from tests.clusters.rig import Stage
from tests.controllers.job.stand import phase_of
from tests.e2e import examples
from tests.e2e.examples import Examples

pytestmark = pytest.mark.real

WAIT_S = 60
STORED = "stored"
EXPECTED = {
    "flows/diamond.yaml": "Succeed",
    "flows/mpi-after-workers.yaml": "Completed",
    "flows/pipeline-templates.yaml": STORED,
    "flows/pipeline.yaml": "Succeed",
    "flows/tasks-in-order.yaml": "Running",
    "frameworks/horovod.yaml": "Completed",
    "frameworks/mindspore-cpu.yaml": "Completed",
    "frameworks/mpi-sample.yaml": "Completed",
    "frameworks/mpi.yaml": "Completed",
    "frameworks/mxnet.yaml": "Completed",
    "frameworks/paddle-ctr.yaml": "Completed",
    "frameworks/pytorch.yaml": "Completed",
    "frameworks/ray.yaml": "Running",
    "frameworks/spark-pi.yaml": "Running",
    "frameworks/tensorflow-benchmark.yaml": "Completed",
    "frameworks/tensorflow-mnist.yaml": "Completed",
    "frameworks/tensorflow-sample.yaml": "Completed",
    "frameworks/workflow-mpi.yaml": "Completed",
    "frameworks/workflow-rights.yaml": STORED,
    "frameworks/workflow-step.yaml": "Completed",
    "jobs/cron.yaml": "Completed",
    "jobs/plugins.yaml": "Running",
    "jobs/simple.yaml": "Completed",
    "queues/deployment-queue.yaml": "Open",
    "queues/deployment.yaml": "Running",
    "queues/node-groups-jobs.yaml": "Running",
    "queues/node-groups.yaml": "Open",
    "queues/tree-jobs.yaml": "Running",
    "queues/tree.yaml": "Open",
    "scheduling/ascend-cores.yaml": "Running",
    "scheduling/cooldown.yaml": "Running",
    "scheduling/device-claims-queue.yaml": "Open",
    "scheduling/device-claims.yaml": "Running",
    "scheduling/fair-share-cpu.yaml": "Running",
    "scheduling/fair-share-memory.yaml": "Running",
    "scheduling/fair-share-small.yaml": "Running",
    "scheduling/gang-mpi.yaml": "Completed",
    "scheduling/gang.yaml": "Running",
    "scheduling/node-selector.yaml": "Running",
    "scheduling/memory-qos.yaml": "Running",
    "scheduling/network-topology.yaml": "Running",
    "scheduling/numa.yaml": "Running",
    "scheduling/offline-queue.yaml": "Open",
    "scheduling/offline.yaml": "Running",
    "scheduling/priority-elastic.yaml": "Running",
    "scheduling/priority-high.yaml": STORED,
    "scheduling/priority-job.yaml": "Running",
    "scheduling/priority-normal.yaml": STORED,
    "scheduling/rescheduling.yaml": "Running",
    "scheduling/revocable.yaml": "Running",
    "scheduling/shared-gpus.yaml": "Running",
    "scheduling/task-topology.yaml": "Running",
    "scheduling/topology-affinity.yaml": "Running",
    "scheduling/volumes.yaml": "Running",
    "scheduling/waiting-time.yaml": "Running",
}
"""The state in which a file's jobs, flows, queues or pods come to rest."""

ENDS = {
    "benchmark": "worker",
    "clicks": "trainer",
    "digits": "worker",
    "gang-mpi": "launcher",
    "mindspore": "trainer",
    "mnist": "worker",
    "mpi-sample": "launcher",
    "patient-mpi": "launcher",
    "pi-by-hand": "launcher",
    "ring": "driver",
    "tf-sample": "learner",
    "torch-sample": "master",
    "workflow-mpi": "launcher",
}
"""By job, the task whose program comes to its end."""

FAULTS = {
    "refused/event-twice.yaml": "spec.policies[1]: duplicate event PodFailed",
    "refused/minimum-too-high.yaml": (
        "job 'minAvailable' should not be greater than total replicas in tasks"
    ),
    "refused/task-name-twice.yaml": "duplicated task name twin",
}
"""What is said against the files that are refused."""

ALL = [file for file in examples.files() if not examples.has_configuration(file)]


@pytest.fixture(scope="module")
def run(stage: Stage) -> Iterator[Examples]:
    """All examples, applied at once."""
    with examples.opened(stage.rig()) as made:
        made.apply([file for file in ALL if not examples.is_refused(file)], ENDS)
        yield made


def check_job(run: Examples, job: Object, phase: str) -> None:
    """It was Running; all pods run, unless it is over."""
    name = job["metadata"]["name"]
    found = run.api.until_one(
        JOBS,
        name,
        lambda job: phase_of(job) == phase,
        namespace=run.namespace,
        timeout_s=WAIT_S,
    )
    assert "Running" in [entry["status"] for entry in found["status"]["conditions"]]
    if phase == "Running":
        replicas = sum(task["replicas"] for task in job["spec"]["tasks"])
        check_order(job, wait_running(run, replicas, f"volcano.sh/job-name={name}"))


def check_order(job: Object, pods: Objects) -> None:
    """Pods of a task were made when those that the task depends on ran."""

    def of(task: str) -> Objects:
        return [pod for pod in pods if pod["metadata"]["labels"]["volcano.sh/task-spec"] == task]

    for task in job["spec"]["tasks"]:
        made = [pod["metadata"]["creationTimestamp"] for pod in of(task["name"])]
        for target in task.get("dependsOn", {}).get("name", ()):
            assert max(pod["status"]["startTime"] for pod in of(target)) <= min(made)


def check_cron_job(run: Examples, cron_job: Object, phase: str) -> None:
    """Its jobs run; nobody waits for their hour."""
    name = cron_job["metadata"]["name"]

    def change(**spec: object) -> None:
        run.api.patch(CRON_JOBS, name, {"spec": spec}, namespace=run.namespace)

    change(schedule="@every 1s")
    run.api.until(
        JOBS,
        lambda jobs: any(
            job["metadata"]["name"].startswith(f"{name}-") and phase_of(job) == phase
            for job in jobs
        ),
        namespace=run.namespace,
        timeout_s=WAIT_S,
    )
    change(suspend=True)
    run.api.until_one(
        CRON_JOBS,
        name,
        lambda found: "lastSuccessfulTime" in found["status"],
        namespace=run.namespace,
    )


def check_flow(run: Examples, flow: Object, phase: str) -> None:
    """Each of its jobs came after the end of those it depends on."""
    name = flow["metadata"]["name"]
    run.api.until_one(
        JOB_FLOWS, name, lambda found: phase_of(found) == phase, namespace=run.namespace
    )
    for step in flow["spec"]["flows"]:
        job = run.api.get(JOBS, f"{name}-{step['name']}", namespace=run.namespace)
        for target in step.get("dependsOn", {}).get("targets", ()):
            before = run.api.get(JOBS, f"{name}-{target}", namespace=run.namespace)
            ended = before["status"]["state"]["lastTransitionTime"]
            assert ended <= job["metadata"]["creationTimestamp"]


def check_template(run: Examples, template: Object, _: str) -> None:
    """A flow has made a job of it."""
    run.api.until_one(
        JOB_TEMPLATES,
        template["metadata"]["name"],
        lambda found: bool(found.get("status", {}).get("jobDependsOnList")),
        namespace=run.namespace,
        timeout_s=WAIT_S,
    )


def check_deployment(run: Examples, deployment: Object, phase: str) -> None:
    """Its pods run, as one group in the queue that they name."""
    spec = deployment["spec"]
    labels = spec["selector"]["matchLabels"].items()
    selector = ",".join(f"{key}={value}" for key, value in labels)
    pods = wait_running(run, spec["replicas"], selector)
    (group,) = {pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] for pod in pods}
    found = run.api.until_one(
        POD_GROUPS, group, lambda each: in_phase(each, phase), namespace=run.namespace
    )
    asked = spec["template"]["metadata"]["annotations"]
    assert found["spec"]["queue"] == asked["scheduling.volcano.sh/queue-name"]
    least = deployment["metadata"]["annotations"]["scheduling.volcano.sh/group-min-member"]
    assert found["spec"]["minMember"] == int(least)


def check_phase(run: Examples, item: Object, phase: str) -> None:
    run.api.until_one(
        run.api.resource_of(item),
        item["metadata"]["name"],
        lambda each: in_phase(each, phase),
        namespace=run.namespace,
        timeout_s=WAIT_S,
    )


def check_queue(run: Examples, queue: Object, phase: str) -> None:
    found = run.api.get(QUEUES, queue["metadata"]["name"])
    assert found["status"]["state"] == phase
    assert found["spec"]["parent"] == queue["spec"].get("parent", "root")


def check_stored(run: Examples, item: Object, _: str) -> None:
    resource = run.api.resource_of(item)
    assert run.api.find(resource, item["metadata"]["name"], namespace=run.namespace) is not None


def check_colocation(run: Examples, item: Object, _: str) -> None:
    """Its pods are told what it says."""
    name = item["metadata"]["name"]
    label, value = next(iter(item["spec"]["selector"]["matchLabels"].items()))

    def are_told(pods: Objects) -> bool:
        key = "volcano.sh/colocation-config-name"
        return bool(pods) and all(pod["metadata"]["annotations"].get(key) == name for pod in pods)

    run.api.until(
        PODS, are_told, namespace=run.namespace, label_selector=f"{label}={value}", what="told"
    )


CHECKS: Mapping[str, Callable[[Examples, Object, str], None]] = {
    "ColocationConfiguration": check_colocation,
    "ConfigMap": check_stored,
    "PersistentVolume": check_stored,
    "PersistentVolumeClaim": check_stored,
    "CronJob": check_cron_job,
    "Deployment": check_deployment,
    "DeviceClass": check_stored,
    "Job": check_job,
    "JobFlow": check_flow,
    "JobTemplate": check_template,
    "Pod": check_phase,
    "PodGroup": check_phase,
    "PriorityClass": check_stored,
    "Queue": check_queue,
    "ResourceClaimTemplate": check_stored,
    "ResourceSlice": check_stored,
    "Role": check_stored,
    "RoleBinding": check_stored,
    "ServiceAccount": check_stored,
}


def in_phase(item: Object, phase: str) -> bool:
    return bool(item.get("status", {}).get("phase") == phase)


def wait_running(run: Examples, count: int, selector: str) -> Objects:
    """The pods, once there are that many, all bound and Running."""

    def do_run(pods: Objects) -> bool:
        running = [pod for pod in pods if in_phase(pod, "Running") and pod["spec"].get("nodeName")]
        return len(pods) == len(running) == count

    return run.api.until(
        PODS, do_run, namespace=run.namespace, label_selector=selector, timeout_s=WAIT_S
    )


def test_every_example_has_an_expectation() -> None:
    assert sorted([*EXPECTED, *FAULTS]) == ALL


@pytest.mark.parametrize("file", [file for file in ALL if not examples.is_refused(file)])
def test_an_example_is_accepted_and_runs(run: Examples, file: str) -> None:
    assert file not in run.refusals, run.refusals[file]
    for item in examples.documents(file):
        CHECKS[item["kind"]](run, item, EXPECTED[file])


@pytest.mark.parametrize("file", [file for file in ALL if examples.is_refused(file)])
def test_a_faulty_example_is_refused_by_its_fault(run: Examples, file: str) -> None:
    (job,) = examples.documents(file)
    with pytest.raises(ApiError) as refused:
        run.api.create(job, resource=JOBS, namespace=run.namespace)
    assert refused.value.code in {403, 422}
    assert FAULTS[file] in str(refused.value)


def test_every_example_says_what_it_shows_and_is_in_the_guide() -> None:
    guide = (examples.ROOT / "README.md").read_text()
    for file in examples.files():
        lines = (examples.ROOT / file).read_text().splitlines()
        comments = [line.startswith("# ") for line in lines[:4]]
        assert comments[0], file
        assert not comments[3], file
        assert f"| `{file}` |" in guide, file
