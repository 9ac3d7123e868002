"""What a new job is refused for, in Volcano's words, with the field."""

from __future__ import annotations

from typing import Any

import pytest

from app.webhooks.world import Options
from app.wire.unstructured import Object
from tests.webhooks.objects import ask, facts, job, pod_spec, queue, task

ONE = [{"event": "PodFailed", "action": "RestartJob"}]
TOPOLOGY = {"highestTierAllowed": 1, "highestTierName": "rack"}
PARTITIONS = {"totalPartitions": 2, "partitionSize": 2, "minPartitions": 1}
QUEUES = facts(
    queue("closed", state="Closed"),
    queue("closing", state="Closing"),
    queue("fresh", state=""),
    queue("parent"),
    queue("child", parent="parent"),
    queue("other", parent="parent"),
)


def template(**spec: Any) -> Object:
    return {"template": {"spec": pod_spec(**spec)}}


def container(**fields: Any) -> Object:
    return template(containers=[{"name": "main", "image": "busybox", **fields}])


def policy(*policies: Object) -> Object:
    return job(policies=list(policies))


FAR: Object = {
    "requests": {"cpu": "1e999999999", "memory": "1e-999999999"},
    "limits": {"cpu": "12345678901234567890e999999999", "memory": "1" * 100},
}
"""Amounts that a naive reader writes out, which takes it minutes."""


def apart(*tasks: str) -> Object:
    """An affinity that keeps the sub-groups of these tasks apart."""
    term = {"subGroups": [*tasks], "topologyTier": 1}
    return {"subGroupAntiAffinity": {"required": [term]}}


ACCEPTED = {
    "one task": job(),
    "minimum below the replicas": job(task("a", 3, minAvailable=1), minAvailable=1),
    "no replicas": job(task("a", 0)),
    "no minimum": job(task("a", 0, minAvailable=0), task("b", 2, minAvailable=0), minAvailable=0),
    "no queue": {**job(), "spec": {"tasks": [task()]}},
    "names as long as they may be together": job(task("b" * 30), called="a" * 30),
    "an affinity of tasks": job(task("a"), task("b"), topologyAffinity=apart("a", "b")),
    "names longer by the numbers of replicas": job(task("b" * 30, 2000), called="a" * 30),
    "policies of job and task": job(
        task("a", policies=[{"event": "TaskCompleted", "action": "CompleteJob"}]), policies=ONE
    ),
    "several events": policy(
        {"events": ["PodFailed", "PodEvicted"], "action": "RestartJob"},
        {"event": "Unknown", "action": "AbortJob"},
        {"exitCode": 3, "action": "TerminateJob"},
        {"exitCode": -1, "action": "TerminateJob"},
    ),
    "any event and exit codes": policy(
        {"event": "*", "action": "RestartJob"}, {"exitCode": 3, "action": "AbortJob"}
    ),
    "every event": policy(
        *(
            {"event": event, "action": "RestartTask", "timeout": "5m"}
            for event in [
                "PodFailed",
                "PodEvicted",
                "PodPending",
                "Unknown",
                "TaskCompleted",
                "TaskFailed",
                "JobUpdated",
            ]
        )
    ),
    "every unit of time": job(
        policies=[{"event": "PodPending", "action": "AbortJob", "timeout": "1h2m3.5s4ms5us6ns"}],
        runningEstimate="90s",
    ),
    "no time at all, and less": policy(
        {"event": "PodFailed", "action": "AbortJob", "timeout": "0"},
        {"event": "PodEvicted", "action": "AbortJob", "timeout": "-1.5m"},
    ),
    "every action": policy(
        *(
            {"exitCode": code, "action": action}
            for code, action in enumerate(
                [
                    "AbortJob",
                    "RestartJob",
                    "RestartTask",
                    "RestartPod",
                    "RestartPartition",
                    "TerminateJob",
                    "CompleteJob",
                    "ResumeJob",
                ],
                start=1,
            )
        )
    ),
    "volumes": job(
        volumes=[
            {"mountPath": "/a", "volumeClaimName": "claim"},
            {"mountPath": "/b", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}},
        ]
    ),
    "dependencies": job(
        task("a"), task("b", dependsOn={"name": ["a"]}), task("c", dependsOn={"name": ["a", "b"]})
    ),
    "partitions": job(task("a", 4, minAvailable=2, partitionPolicy=PARTITIONS)),
    "partitions of which none are needed": job(
        task("a", 4, minAvailable=3, partitionPolicy={**PARTITIONS, "minPartitions": 0})
    ),
    "one partition of one pod": job(
        task("a", 1, partitionPolicy={"totalPartitions": 1, "partitionSize": 1})
    ),
    "all partitions needed": job(
        task("a", 4, minAvailable=4, partitionPolicy={**PARTITIONS, "minPartitions": 2})
    ),
    "plugins": job(plugins={"env": [], "svc": ["--disable-network-policy=true"], "ssh": []}),
    "mpi with its master": job(task("master"), task("worker"), plugins={"mpi": []}),
    "mpi with another master": job(
        task("boss"), task("worker"), plugins={"mpi": ["--master=boss"]}
    ),
    "a queue that is new": job(queue="fresh"),
    "a leaf": job(queue="child"),
    "whole cores": job(
        task("a", topologyPolicy="restricted", **container(resources={"limits": {"cpu": "2"}}))
    ),
    "no topology, any cores": job(
        task("a", topologyPolicy="none", **container(resources={"limits": {"cpu": "500m"}}))
    ),
    "whole cores asked for": job(
        task(
            "a",
            topologyPolicy="restricted",
            **container(resources={"requests": {"cpu": 1}, "limits": {"cpu": "1500m"}}),
        )
    ),
    "a privileged container": job(
        task("a", **container(securityContext={"privileged": True, "runAsUser": 0}))
    ),
    "one tier": job(networkTopology={"mode": "hard", "highestTierAllowed": 0}),
}


@pytest.mark.parametrize("given", ACCEPTED.values(), ids=ACCEPTED)
def test_is_accepted(given: Object) -> None:
    verdict = ask("/jobs/validate", given, cluster=QUEUES)
    assert verdict.message == ""
    assert verdict.allowed


REFUSED = {
    "no task": (job(tasks=[]), "spec.tasks: No task specified in job spec"),
    "an affinity of a task that there is not": (
        job(task("a"), topologyAffinity=apart("a", "b")),
        "spec.topologyAffinity: subGroups names b, and no task has that name;",
    ),
    "negative minimum": (
        job(minAvailable=-1),
        "spec.minAvailable: job 'minAvailable' must be >= 0",
    ),
    "negative retries": (job(maxRetry=-1), "spec.maxRetry: 'maxRetry' cannot be less than zero"),
    "negative time to live": (
        job(ttlSecondsAfterFinished=-1),
        "spec.ttlSecondsAfterFinished: 'ttlSecondsAfterFinished' cannot be less than zero",
    ),
    "minimum above the replicas": (
        job(task("a", 2), minAvailable=3),
        "spec.minAvailable: job 'minAvailable' should not be greater than total replicas in tasks;",
    ),
    "negative replicas": (
        job(task("a", -1)),
        "spec.tasks[0].replicas: 'replicas' < 0 in task: a, job: j;",
    ),
    "negative minimum of a task": (
        job(task("a", minAvailable=-1)),
        "spec.tasks[0].minAvailable: 'minAvailable' < 0 in task: a, job: j;",
    ),
    "minimum of a task above its replicas": (
        job(task("a", 1, minAvailable=2)),
        "spec.tasks[0].minAvailable: 'minAvailable' is greater than 'replicas' in task: a, job: j;",
    ),
    "a name twice": (
        job(task("a"), task("a")),
        "spec.tasks[1].name: duplicated task name a;",
    ),
    "a name that is no label": (
        job(task("A_b")),
        "a lowercase RFC 1123 label must consist of",
    ),
    "names too long together": (
        job(task("b" * 40), called="a" * 30),
        f"create pod with name {'a' * 30}-{'b' * 40}-0 validate failed [name part must be no more",
    ),
    "names too long together with the place of the task": (
        job(*(task(f"t{n}") for n in range(10)), task("b" * 30), called="a" * 30),
        f"spec.tasks[10].name: create pod with name {'a' * 30}-{'b' * 30}-10 validate failed [name",
    ),
    "a job's name that is none": (
        job(called="-a-"),
        "metadata.name: create job with name -a- validate failed",
    ),
    "both tiers": (
        job(networkTopology=TOPOLOGY),
        "spec.networkTopology: must not specify 'highestTierAllowed' and 'highestTierName' in "
        "networkTopology simultaneously",
    ),
    "an event and an exit code": (
        policy({"event": "PodFailed", "exitCode": 1, "action": "AbortJob"}),
        "spec.policies[0]: must not specify event and exitCode simultaneously",
    ),
    "neither": (
        policy({"action": "AbortJob"}),
        "spec.policies[0]: either event and exitCode should be specified",
    ),
    "an unknown event": (
        policy({"event": "PodRunning", "action": "AbortJob"}),
        "spec.policies[0].event: invalid policy event; valid events are [* PodFailed",
    ),
    "an unknown action": (
        policy({"event": "PodFailed", "action": "SyncJob"}),
        "spec.policies[0].action: invalid policy action; valid events are [",
    ),
    "an event twice": (
        policy(*ONE, *ONE),
        "spec.policies[1]: duplicate event PodFailed  across different policy",
    ),
    "exit code zero": (
        policy({"exitCode": 0, "action": "AbortJob"}),
        "spec.policies[0].exitCode: 0 is not a valid error code",
    ),
    "an exit code twice": (
        policy({"exitCode": 1, "action": "AbortJob"}, {"exitCode": 1, "action": "RestartJob"}),
        "spec.policies[1].exitCode: duplicate exitCode 1",
    ),
    "any event and another": (
        policy({"event": "*", "action": "AbortJob"}, *ONE),
        "spec.policies: if there's * here, no other policy should be here",
    ),
    "a policy of a task": (
        job(task("a", policies=[{"event": "PodFailed", "action": "x"}])),
        "spec.tasks[0].policies[0].action: invalid policy action",
    ),
    "a timeout without a unit": (
        policy({"event": "PodPending", "action": "AbortJob", "timeout": "300"}),
        'spec.policies[0].timeout: time: invalid duration "300"; write 90s or 1h30m;',
    ),
    "an empty timeout": (
        policy({"event": "PodPending", "action": "AbortJob", "timeout": ""}),
        'spec.policies[0].timeout: time: invalid duration ""; write',
    ),
    "a timeout of a thousand years": (
        policy({"event": "PodPending", "action": "AbortJob", "timeout": "8766000h"}),
        'spec.policies[0].timeout: time: invalid duration "8766000h"',
    ),
    "a timeout of a task in words": (
        job(
            task(
                "a", policies=[{"event": "PodFailed", "action": "AbortJob", "timeout": "5 minutes"}]
            )
        ),
        'spec.tasks[0].policies[0].timeout: time: invalid duration "5 minutes"',
    ),
    "an estimate in days": (
        job(runningEstimate="2d"),
        'spec.runningEstimate: time: invalid duration "2d"',
    ),
    "no mount path": (
        job(volumes=[{"volumeClaimName": "c"}]),
        "spec.volumes[0].mountPath: mountPath is required;",
    ),
    "a colon in the mount path": (
        job(volumes=[{"mountPath": "/a:b", "volumeClaimName": "c"}]),
        "spec.volumes[0].mountPath: mountPath must not contain ':'",
    ),
    "a mount path twice": (
        job(volumes=[{"mountPath": "/a", "volumeClaimName": c} for c in "cd"]),
        "spec.volumes[1].mountPath: duplicated mountPath: /a;",
    ),
    "no claim": (
        job(volumes=[{"mountPath": "/a"}]),
        "spec.volumes[0]: either VolumeClaim or VolumeClaimName must be specified;",
    ),
    "a claim and its name": (
        job(
            volumes=[{"mountPath": "/a", "volumeClaimName": "c", "volumeClaim": {"volumeName": ""}}]
        ),
        "spec.volumes[0]: conflict: If you want to use an existing PVC, just specify "
        "VolumeClaimName.",
    ),
    "a claim of other types": (
        job(volumes=[{"mountPath": "/a", "volumeClaim": {"accessModes": "ReadWriteOnce"}}]),
        'spec.volumes[0].volumeClaim.accessModes: Invalid value: "ReadWriteOnce": must be a list',
    ),
    "a claim's name that is none": (
        job(volumes=[{"mountPath": "/a", "volumeClaimName": "A"}]),
        "spec.volumes[0].volumeClaimName: invalid VolumeClaimName A : [a lowercase RFC 1123",
    ),
    "no queue of that name": (
        job(queue="nowhere"),
        'spec.queue: unable to find job queue: queues.scheduling.volcano.sh "nowhere" not found',
    ),
    "a closed queue": (
        job(queue="closed"),
        "spec.queue: can only submit job to queue with state `Open`, queue `closed` status is "
        "`Closed`",
    ),
    "a closing queue": (job(queue="closing"), "queue `closing` status is `Closing`"),
    "the root": (job(queue="root"), "spec.queue: can not submit job to root queue;"),
    "a queue with queues below": (
        job(queue="parent"),
        "spec.queue: can only submit job to leaf queue, queue `parent` has 2 child queues;",
    ),
    "tasks that wait for each other": (
        job(task("a", dependsOn={"name": ["b"]}), task("b", dependsOn={"name": ["a"]})),
        "spec.tasks[*].dependsOn: job has dependencies between tasks, but doesn't form a directed "
        "acyclic graph(DAG);",
    ),
    "a task that waits for none": (
        job(task("a", dependsOn={"name": ["b"]})),
        "doesn't form a directed acyclic graph(DAG); no task is named [b];",
    ),
    "an unknown plugin": (
        job(plugins={"nope": []}),
        "spec.plugins.nope: unable to find job plugin: nope; the known plugins are env, hcclrank",
    ),
    "a flag that cannot be read": (
        job(plugins={"ssh": ["--ssh-port=x"]}),
        "spec.plugins.ssh: --ssh-port: 'x' is not a port from 1 to 65535; write --ssh-port=PORT",
    ),
    "mpi without its master": (
        job(task("worker"), plugins={"mpi": []}),
        "spec.plugins.mpi: The specified mpi master task was not found",
    ),
    "no partitions": (
        job(task("a", 0, partitionPolicy={"totalPartitions": 0, "partitionSize": 0})),
        "spec.tasks[0].partitionPolicy.totalPartitions: 'TotalPartitions' must be greater than 0 "
        "in task: a, job: j; spec.tasks[0].partitionPolicy.partitionSize: 'PartitionSize' must be "
        "greater than 0 in task: a, job: j;",
    ),
    "partitions that do not divide": (
        job(task("a", 5, partitionPolicy={"totalPartitions": 2, "partitionSize": 2})),
        "spec.tasks[0].replicas: 'Replicas' are not equal to TotalPartitions*PartitionSize in "
        "task: a, job: j;",
    ),
    "a minimum that is no partitions": (
        job(task("a", 4, minAvailable=3, partitionPolicy=PARTITIONS)),
        "spec.tasks[0].minAvailable: 'MinAvailable' is not equal to MinPartitions*PartitionSize",
    ),
    "parts of a core asked for": (
        job(
            task(
                "a",
                topologyPolicy="best-effort",
                **container(resources={"requests": {"cpu": "1500m"}, "limits": {"cpu": 2}}),
            )
        ),
        "spec.tasks[0].topologyPolicy: the cpu request isn't an integer in spec.tasks[0] "
        "container[0].",
    ),
    "no cores": (
        job(task("a", topologyPolicy="single-numa-node")),
        "the cpu request isn't an integer in spec.tasks[0] container[0].",
    ),
    "no cores to prepare with": (
        job(
            task(
                "a",
                topologyPolicy="restricted",
                **template(
                    containers=[{"name": "a", "image": "i", "resources": {"requests": {"cpu": 1}}}],
                    initContainers=[{"name": "b", "image": "i"}],
                ),
            )
        ),
        "the cpu request isn't an integer in spec.tasks[0] container[1].",
    ),
    "a minimum that is no one partition": (
        job(task("a", 4, minAvailable=4, partitionPolicy=PARTITIONS)),
        "'MinAvailable' is not equal to MinPartitions*PartitionSize in task: a, job: j;",
    ),
    "both tiers of a partition": (
        job(
            task(
                "a", 4, minAvailable=2, partitionPolicy={**PARTITIONS, "networkTopology": TOPOLOGY}
            )
        ),
        "spec.tasks[0].partitionPolicy.networkTopology: must not specify 'highestTierAllowed' and",
    ),
    "parts of a core": (
        job(
            task("a", topologyPolicy="restricted", **container(resources={"limits": {"cpu": 0.5}}))
        ),
        "the cpu request isn't an integer in spec.tasks[0] container[0].",
    ),
    "no containers": (
        job(task("a", template={"spec": {}})),
        "spec.tasks[0].template.spec.containers: Required value",
    ),
    "no template": (
        job({"name": "a", "replicas": 1}),
        "spec.tasks[0].template.spec.containers: Required value",
    ),
    "no image": (
        job(task("a", template={"spec": {"containers": [{"name": "c"}]}})),
        "spec.tasks[0].template.spec.containers[0].image: Required value",
    ),
    "blanks around the image": (job(task("a", **container(image=" a "))), "leading or trailing"),
    "no container name": (
        job(task("a", template={"spec": {"containers": [{"image": "i"}]}})),
        "spec.tasks[0].template.spec.containers[0].name: Required value",
    ),
    "a container twice": (
        job(task("a", **template(initContainers=[{"name": "main", "image": "i"}]))),
        'spec.tasks[0].template.spec.containers[0].name: Duplicate value: "main"',
    ),
    "a container's name that is none": (
        job(task("a", **container(name="A"))),
        'containers[0].name: Invalid value: "A": a lowercase RFC 1123 label',
    ),
    "an unknown restart policy": (
        job(task("a", **template(restartPolicy="Sometimes"))),
        'template.spec.restartPolicy: Unsupported value: "Sometimes"',
    ),
    "a quantity that is none": (
        job(task("a", **container(resources={"requests": {"cpu": "much"}}))),
        'spec.tasks[0].template.spec.containers[0].resources.requests[cpu]: Invalid value: "much": '
        "quantities must match the regular expression",
    ),
    "a quantity of a very large power": (
        job(
            task("a", **container(resources={"requests": {"cpu": "1e999999999"}})),
            task("b", topologyPolicy="restricted", **container(resources=FAR)),
        ),
        "spec.tasks[0].template.spec.containers[0].resources.requests[cpu]: Invalid value: ",
    ),
    "a negative quantity": (
        job(task("a", **container(resources={"requests": {"memory": "-1Gi"}}))),
        'resources.requests[memory]: Invalid value: "-1Gi": must be greater than or equal to 0',
    ),
    "a request above its limit": (
        job(task("a", **container(resources={"requests": {"cpu": 2}, "limits": {"cpu": 1}}))),
        'resources.requests[cpu]: Invalid value: "2": must be less than or equal to cpu limit of 1',
    ),
    "an unknown pull policy": (
        job(task("a", **container(imagePullPolicy="Maybe"))),
        'imagePullPolicy: Unsupported value: "Maybe"',
    ),
    "a variable without a name": (
        job(task("a", **container(env=[{"value": "x"}]))),
        "containers[0].env[0].name: Required value",
    ),
    "a variable's name that is none": (
        job(task("a", **container(env=[{"name": "a=b"}]))),
        'env[0].name: Invalid value: "a=b": a valid environment variable name must consist only',
    ),
    "a port out of range": (
        job(task("a", **container(ports=[{"containerPort": 0}]))),
        "ports[0].containerPort: must be between 1 and 65535, inclusive",
    ),
    "an unknown protocol": (
        job(task("a", **container(ports=[{"containerPort": 1, "protocol": "IP"}]))),
        'ports[0].protocol: Unsupported value: "IP"',
    ),
    "a mount of no volume": (
        job(task("a", **container(volumeMounts=[{"name": "v", "mountPath": "/v"}]))),
        'volumeMounts[0].name: Not found: "v"',
    ),
    "a volume mounted nowhere": (
        job(
            task(
                "a",
                **template(
                    volumes=[{"name": "v", "emptyDir": {}}],
                    containers=[{"name": "c", "image": "i", "volumeMounts": [{"name": "v"}]}],
                ),
            )
        ),
        "volumeMounts[0].mountPath: Required value",
    ),
    "two mounts at one place": (
        job(
            task(
                "a",
                **template(
                    volumes=[{"name": "v"}, {"name": "v"}],
                    containers=[
                        {
                            "name": "c",
                            "image": "i",
                            "volumeMounts": [{"name": "v", "mountPath": "/v"}] * 2,
                        }
                    ],
                ),
            )
        ),
        'template.spec.volumes[1].name: Duplicate value: "v"; spec.tasks[0].template.spec.'
        'containers[0].volumeMounts[1].mountPath: Invalid value: "/v": must be unique;',
    ),
}


@pytest.mark.parametrize(("given", "message"), REFUSED.values(), ids=REFUSED)
def test_is_refused(given: Object, message: str) -> None:
    verdict = ask("/jobs/validate", given, cluster=QUEUES)
    assert not verdict.allowed
    assert message in verdict.message


def test_everything_wrong_is_in_one_answer() -> None:
    given = job(
        task("a", 1, minAvailable=2),
        task("a", policies=[{"action": "AbortJob"}]),
        minAvailable=9,
        queue="nowhere",
        volumes=[{"mountPath": "/a"}],
    )
    message = ask("/jobs/validate", given).message
    for part in (
        "'minAvailable' is greater than 'replicas' in task: a",
        "duplicated task name a;",
        "either event and exitCode should be specified",
        "should not be greater than total replicas",
        "unable to find job queue",
        "either VolumeClaim or VolumeClaimName must be specified",
    ):
        assert part in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("volume", "warning"),
    [
        (
            {"mountPath": "/myinput"},
            "spec.volumes[0]: either VolumeClaim or VolumeClaimName must be specified",
        ),
        (
            {"mountPath": "/a", "volumeClaimName": "c", "volumeClaim": {"volumeName": ""}},
            "spec.volumes[0]: conflict: If you want to use an existing PVC, just specify",
        ),
    ],
    ids=["scratch room", "a claim of a given name"],
)
def test_volumes_as_volcano_s_first_releases_took_them_may_be_allowed(
    volume: Object, warning: str
) -> None:
    given = job(volumes=[volume])
    assert not ask("/jobs/validate", given).allowed
    verdict = ask("/jobs/validate", given, options=Options(loose_volumes=True))
    assert verdict.allowed
    assert [told.startswith(warning) for told in verdict.warnings] == [True]


def test_a_flag_that_a_plugin_does_not_have_is_only_warned_of() -> None:
    verdict = ask("/jobs/validate", job(plugins={"ssh": ["--no-root"]}), cluster=QUEUES)
    assert verdict.allowed
    (warning,) = verdict.warnings
    assert warning.startswith(
        "spec.plugins.ssh: there is no flag --no-root, it has no effect; its flags are --ssh-key-"
    )


def test_loose_volumes_still_need_places_and_names() -> None:
    given = job(volumes=[{"volumeClaimName": "A"}])
    message = ask("/jobs/validate", given, options=Options(loose_volumes=True)).message
    assert "mountPath is required" in message
    assert "invalid VolumeClaimName A" in message
