"""What a job needs before its pods: queue, claims, objects of plugins."""

import copy
from typing import Any

import pytest

from app.controllers.ports import Failure
from app.wire.kinds import (
    CLAIMS,
    CONFIG_MAPS,
    NETWORK_POLICIES,
    POD_GROUPS,
    PODS,
    QUEUES,
    SECRETS,
    SERVICES,
    Resource,
)
from app.wire.unstructured import Key, Object, name
from tests.controllers.job.rig import NAMESPACE, Rig, play, policy, task

_GANG: dict[str, Any] = {"minAvailable": 2, "tasks": [task()]}


def _with_volume(**volume: Any) -> dict[str, Any]:
    return {**_GANG, "volumes": [{"mountPath": "/data", **volume}]}


def _assert_fails_at_once(job: dict[str, Any], *, reason: str, text: str) -> None:
    async def scenario(rig: Rig) -> None:
        rig.start()
        rig.submit(job)
        await rig.settle()

    rig = play(scenario)
    assert rig.phases == ["Failed"]
    assert rig.status()["state"]["reason"] == reason
    assert text in rig.status()["state"]["message"]
    assert not rig.pods()


def test_a_claim_without_a_name_gets_one_and_is_made() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_with_volume(volumeClaim={"storageClassName": "s"}))

    rig = play(scenario)
    (claim,) = rig.api.all(CLAIMS)
    assert claim["spec"] == {"storageClassName": "s"}
    assert claim["metadata"]["ownerReferences"][0]["kind"] == "Job"
    assert rig.job()["spec"]["volumes"][0]["volumeClaimName"] == name(claim)
    (volume,) = rig.pod("job-main-0")["spec"]["volumes"]
    assert volume["persistentVolumeClaim"]["claimName"] == name(claim)
    assert rig.status()["controlledResources"] == {f"volume-pvc-{name(claim)}": name(claim)}


def test_a_claim_outlives_the_pods() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started(_with_volume(volumeClaim={}))
        rig.command("TerminateJob")
        await rig.drain()

    rig = play(scenario)
    assert rig.phase() == "Terminated"
    assert rig.api.all(CLAIMS)
    assert rig.status()["controlledResources"]


def test_a_job_waits_for_a_claim_that_is_not_there() -> None:
    async def scenario(rig: Rig) -> None:
        rig.start()
        rig.submit(_with_volume(volumeClaimName="c"))
        await rig.settle()
        await rig.later(600)
        assert not rig.api.all(POD_GROUPS)
        state = rig.status()["state"]
        assert (state["phase"], state["reason"]) == ("Pending", "PVCError")
        assert state["message"] == (
            "pvc c is not found, the job will be in the Pending state until the PVC is created"
        )
        assert ("Warning", "PVCError", state["message"]) in rig.events.told
        rig.api.put(CLAIMS, {"metadata": {"name": "c", "namespace": NAMESPACE}, "spec": {}})
        await rig.later(11)

    rig = play(scenario)
    assert len(rig.pods()) == 2
    assert "reason" not in rig.status()["state"]


def test_a_claim_that_cannot_be_read_is_not_said_to_be_missing() -> None:
    async def scenario(rig: Rig) -> None:
        rig.api.put(CLAIMS, {"metadata": {"name": "c", "namespace": NAMESPACE}, "spec": {}})
        rig.api.fail(
            Failure.PASSING,
            lambda r: (r.verb, r.resource) == ("get", CLAIMS),
            times=3,
            message="try later",
        )
        rig.start()
        rig.submit(_with_volume(volumeClaimName="c"))
        await rig.settle()
        state = rig.status()["state"]
        assert (state["reason"], state["message"]) == ("PVCError", "try later")
        await rig.later(2)

    rig = play(scenario)
    assert len(rig.pods()) == 2


def test_a_job_waits_for_its_queue() -> None:
    async def scenario(rig: Rig) -> None:
        rig.start()
        rig.submit({**_GANG, "queue": "q"})
        await rig.settle()
        await rig.later(4)
        assert rig.status()["state"]["message"] == "queue q is not found"
        assert set(rig.events.told) == {("Warning", "JobStatusError", "queue q is not found")}
        assert not rig.api.all(POD_GROUPS)
        rig.api.put(QUEUES, {"metadata": {"name": "q"}, "spec": {}})
        await rig.settle()
        await rig.later(11)

    rig = play(scenario)
    assert rig.group()["spec"]["queue"] == "q"
    assert "message" not in rig.status()["state"]


def _applied_before(resource: Resource, item: Object, job: dict[str, Any]) -> Rig:
    """The job is there a moment before what it names."""

    async def scenario(rig: Rig) -> None:
        rig.start()
        rig.submit(job)
        await rig.settle()
        await rig.later(1)
        assert rig.phase() == "Pending"
        rig.api.put(resource, item)
        await rig.later(1)

    return play(scenario)


def test_a_job_that_is_applied_together_with_its_queue_is_not_warned_of() -> None:
    queue = {"metadata": {"name": "q"}, "spec": {}}
    rig = _applied_before(QUEUES, queue, {**_GANG, "queue": "q"})
    assert rig.group()["spec"]["queue"] == "q"
    assert [told for told in rig.events.told if told[0] == "Warning"] == []


def test_a_job_that_is_applied_together_with_its_claim_is_not_warned_of() -> None:
    claim = {"metadata": {"name": "c", "namespace": NAMESPACE}, "spec": {}}
    rig = _applied_before(CLAIMS, claim, _with_volume(volumeClaimName="c"))
    assert len(rig.pods()) == 2
    assert [told for told in rig.events.told if told[0] == "Warning"] == []


def test_a_job_of_a_queue_that_extends_to_other_clusters_is_forwarded() -> None:
    async def scenario(rig: Rig) -> None:
        rig.api.edit(QUEUES, Key("", "default"), {"spec": {"extendClusters": [{"name": "c"}]}})
        await rig.started(_GANG)

    rig = play(scenario)
    assert rig.job()["metadata"]["annotations"] == {"volcano.sh/job-forwarding": "true"}


def test_plugins_add_to_pods_and_make_their_objects_first() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started({**_GANG, "plugins": {"env": [], "svc": [], "ssh": []}})

    rig = play(scenario)
    assert [name(item) for item in rig.api.all(CONFIG_MAPS)] == ["job-svc"]
    assert [name(item) for item in rig.api.all(SERVICES)] == ["job"]
    assert [name(item) for item in rig.api.all(SECRETS)] == ["job-ssh"]
    assert rig.status()["controlledResources"] == {
        "plugin-env": "env",
        "plugin-ssh": "ssh",
        "plugin-svc": "svc",
    }
    (container,) = rig.pod("job-main-1")["spec"]["containers"]
    assert {"name": "VC_TASK_INDEX", "value": "1"} in container["env"]
    assert rig.pod("job-main-1")["spec"]["subdomain"] == "job"


def test_objects_of_plugins_go_with_the_pods() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started({**_GANG, "plugins": {"svc": [], "ssh": ["--no-root"]}})
        rig.succeed()
        await rig.settle()

    rig = play(scenario)
    assert rig.phase() == "Completed"
    assert not rig.api.all(CONFIG_MAPS) + rig.api.all(SERVICES) + rig.api.all(SECRETS)
    assert "controlledResources" not in rig.status()


def test_a_restart_makes_the_objects_of_plugins_anew() -> None:
    async def scenario(rig: Rig) -> None:
        rules = [policy("PodFailed", "RestartJob")]
        await rig.started({**_GANG, "plugins": {"svc": []}, "policies": rules})
        rig.fail("job-main-0")
        await rig.settle()
        assert not rig.api.all(SERVICES)
        await rig.drain()

    rig = play(scenario)
    assert rig.phase() == "Pending"
    assert rig.api.all(SERVICES)
    assert rig.status()["controlledResources"] == {"plugin-svc": "svc"}


@pytest.mark.parametrize("crash", [False, True])
def test_objects_of_plugins_that_were_deleted_are_there_again_for_the_next_pod(
    crash: bool,
) -> None:
    """volcano#1894: pods waited for weeks for the ConfigMap of their job, those made later too."""
    made = ((CONFIG_MAPS, "job-svc"), (SERVICES, "job"), (SECRETS, "job-ssh"))

    async def scenario(rig: Rig) -> None:
        await rig.started({**_GANG, "plugins": _PLUGINS})
        await rig.later(60)
        for kind, called in made:
            rig.api.remove(kind, Key(NAMESPACE, called))
        if crash:
            await rig.kill()
            rig.start()
        rig.evict("job-main-0")
        await rig.settle()
        await rig.drain()

    rig = play(scenario)
    assert rig.pod("job-main-0")
    for kind, called in made:
        assert [name(item) for item in rig.api.all(kind)] == [called]
    created = [each.resource for each in rig.api.requests if each.verb == "create"]
    assert created[-1] is PODS


def test_objects_of_plugins_are_not_looked_at_for_each_pod_that_changes() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.started({**_GANG, "plugins": _PLUGINS})
        await rig.later(60)
        before = len(rig.api.requests)
        rig.run("job-main-0", restarts=1)
        await rig.settle()
        looked = [each for each in rig.api.requests[before:] if each.resource is CONFIG_MAPS]
        assert not looked

    play(scenario)


_OTHERS: list[tuple[Resource, str]] = [
    (SERVICES, "job"),
    (CONFIG_MAPS, "job-svc"),
    (NETWORK_POLICIES, "job"),
    (SECRETS, "job-ssh"),
]
_PLUGINS: dict[str, list[str]] = {"svc": [], "ssh": []}


@pytest.mark.parametrize(("kind", "named"), _OTHERS, ids=lambda part: str(part))
@pytest.mark.parametrize("owner", [None, "ReplicaSet"])
def test_an_object_of_others_is_left_alone_and_the_job_says_so(
    owner: str | None, kind: Resource, named: str
) -> None:
    """A tenant's own Secret, say, with the name that a plugin has for the job's."""
    theirs: dict[str, Any] = {"metadata": {"name": named, "namespace": NAMESPACE}}
    theirs["data"] = {"authorized_keys": "theirs"}
    if owner:
        reference = {"apiVersion": "apps/v1", "kind": owner, "name": "rs", "uid": "u-rs"}
        theirs["metadata"]["ownerReferences"] = [{**reference, "controller": True}]

    async def scenario(rig: Rig) -> None:
        before = copy.deepcopy(rig.api.put(kind, copy.deepcopy(theirs)))
        rig.start()
        rig.submit({**_GANG, "plugins": _PLUGINS})
        await rig.drain()
        assert rig.api.find(kind, Key(NAMESPACE, named)) == before

    rig = play(scenario)
    assert rig.phases == ["Pending", "Failed"]
    text = f"{kind.kind} ns/{named} does not belong to this job and is left alone"
    assert text in rig.status()["state"]["message"]
    assert text in rig.events.messages("PluginError")[0]
    assert not rig.pods()


def test_all_objects_that_are_in_the_way_are_named() -> None:
    async def scenario(rig: Rig) -> None:
        for kind, named in _OTHERS:
            rig.api.put(kind, {"metadata": {"name": named, "namespace": NAMESPACE}})
        rig.start()
        rig.submit({**_GANG, "plugins": _PLUGINS})
        await rig.drain()

    assert play(scenario).status()["state"]["message"] == (
        "ConfigMap ns/job-svc and Service ns/job and NetworkPolicy ns/job and Secret ns/job-ssh do"
        " not belong to this job and are left alone; delete them, or give the job another name"
    )


def test_a_job_that_runs_goes_on_beside_an_object_of_others_and_says_so() -> None:
    """Its own was replaced; no pods are made or taken away until that is over."""

    async def scenario(rig: Rig) -> None:
        await rig.started({**_GANG, "plugins": {"svc": []}})
        rig.api.remove(CONFIG_MAPS, Key(NAMESPACE, "job-svc"))
        rig.api.put(CONFIG_MAPS, {"metadata": {"name": "job-svc", "namespace": NAMESPACE}})
        rig.edit_job({"spec": {"tasks": [task(replicas=4)]}})
        await rig.settle()
        assert (rig.phase(), rig.pods()) == ("Running", ["job-main-0", "job-main-1"])
        assert "left alone" in rig.events.messages("PluginError")[0]
        rig.api.remove(CONFIG_MAPS, Key(NAMESPACE, "job-svc"))
        await rig.later(60)

    assert len(play(scenario).pods()) == 4


@pytest.mark.parametrize(
    ("plugins", "text"),
    [
        ({"fly": []}, "unable to find job plugin: fly; the known plugins are env"),
        ({"ssh": ["--ssh-port=x"]}, "spec.plugins.ssh"),
    ],
)
def test_a_job_whose_plugins_cannot_be_read_has_failed(plugins: Any, text: str) -> None:
    job = {**_GANG, "plugins": plugins}
    _assert_fails_at_once(job, reason="PluginError", text=text)


def test_a_job_of_more_pods_than_any_cluster_runs_has_failed() -> None:
    job = {"minAvailable": 1, "tasks": [task(replicas=2_000_000_000)]}
    _assert_fails_at_once(
        job, reason="TooManyPods", text="2000000000 pods are more than the 150000"
    )


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("PodGroup", "PodGroupError"),
        ("ConfigMap", "PluginError"),
        ("PersistentVolumeClaim", "PVCError"),
    ],
)
def test_what_cannot_be_made_is_told_while_it_lasts(kind: str, reason: str) -> None:
    async def scenario(rig: Rig) -> None:
        rig.api.fail(
            Failure.PASSING,
            lambda r: (r.verb, r.resource.kind) == ("create", kind),
            times=3,
            message="no room",
        )
        rig.start()
        rig.submit({**_with_volume(volumeClaim={}), "plugins": {"svc": []}})
        await rig.settle()
        state = rig.status()["state"]
        assert (state["reason"], state["message"]) == (reason, "no room")
        await rig.later(2)

    rig = play(scenario)
    assert "no room" in rig.events.messages(reason)
    assert "reason" not in rig.status()["state"]
    assert len(rig.pods()) == 2


def test_an_older_name_of_the_group_is_kept() -> None:
    async def scenario(rig: Rig) -> None:
        job = rig.submit(_GANG)
        owner = {"kind": "Job", "apiVersion": job["apiVersion"], "name": "job", "controller": True}
        metadata = {
            "name": "job",
            "namespace": NAMESPACE,
            "ownerReferences": [{**owner, "uid": job["metadata"]["uid"]}],
        }
        rig.api.put(POD_GROUPS, {"metadata": metadata, "spec": {"minMember": 7}})
        rig.start()
        await rig.settle()

    rig = play(scenario)
    assert name(rig.group()) == "job"
    assert rig.group()["spec"]["minMember"] == 2


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ({"spec": "sleep"}, "spec.tasks[0].template.spec: Invalid value"),
        ({"metadata": "web", "spec": {}}, "spec.tasks[0].template.metadata: Invalid value"),
        (
            {"metadata": {"labels": ["web"]}},
            "spec.tasks[0].template.metadata.labels: Invalid value",
        ),
        (
            {"spec": {"containers": "sleep"}},
            "spec.tasks[0].template.spec.containers: Invalid value",
        ),
        ({"spec": {"containers": [5]}}, "spec.tasks[0].template.spec.containers[0]: Invalid value"),
        ({"spec": {"schedulingGates": "wait"}}, "spec.tasks[0].template.spec.schedulingGates"),
        (
            {"spec": {"schedulingGates": [None]}},
            "spec.tasks[0].template.spec.schedulingGates[0]: Required value",
        ),
        ({"spec": {"containers": [None]}}, "spec.tasks[0].template.spec.containers[0]: Required"),
        (
            {"spec": {"containers": [{"name": "c", "env": [None]}]}},
            "spec.tasks[0].template.spec.containers[0].env[0]: Required value",
        ),
    ],
)
def test_a_job_whose_template_is_none_has_failed(template: Any, text: str) -> None:
    job = {**_GANG, "tasks": [{**task(), "template": template}]}
    _assert_fails_at_once(job, reason="TemplateError", text=text)
