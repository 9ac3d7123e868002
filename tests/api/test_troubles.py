"""Pods that have nodes and do not do their work are told of, wherever their job is."""

from dataclasses import replace

from app.service.telling.view.views import EVERY_S
from tests.api.stand import stand
from tests.api.view_reader import ONE, rows, whole
from tests.builders import make_pod
from tests.service.rig import Rig
from tests.service.virtual_time import advance

CRASHES = "container main: CrashLoopBackOff, 3 restarts"


async def test_a_job_whose_pods_run_and_do_not_work_says_so() -> None:
    rig = Rig()
    rig.node("n1", cpu=4_000)
    rig.group("train", minimum=3)
    group = {"scheduling.k8s.io/group-name": "train"}
    pods = [
        make_pod(f"train-{at}", annotations=group, node="n1", phase="Running", shape=ONE)
        for at in range(3)
    ]
    rig.store(*pods)
    await rig.cycle()
    async with stand(rig) as at:
        assert rows(await whole(at), "jobs")["default/train"]["trouble"] == ""
        rig.store(*(replace(each, trouble=CRASHES) for each in pods[1:]))
        await rig.cycle()
        await advance(EVERY_S)
        told = f"2 of 3 pods do not work: train-1: {CRASHES}"
        row = rows(await whole(at), "jobs")["default/train"]
        assert (row["trouble"], row["stage"], row["waits"]) == (told, "running", False)
        story = (await at.get("/view/jobs/default/train")).json()
        assert [each["trouble"] for each in story["members"]] == ["", CRASHES, CRASHES]
        assert story["job"]["trouble"] == told
        explained = (await at.get("/explain/default/train")).json()
        assert explained["trouble"] == told
        assert [each["trouble"] for each in explained["members"]] == ["", CRASHES, CRASHES]
        rig.store(*pods)
        await rig.cycle()
        await advance(EVERY_S)
        assert rows(await whole(at), "jobs")["default/train"]["trouble"] == ""
