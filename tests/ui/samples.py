"""What the server says of a cluster, as the page reads it."""

from __future__ import annotations

from typing import Any

Document = dict[str, Any]

NOW = 1_795_980_000.0
GI = 1024**3


def amounts(cpu: float = 0, memory: float = 0, **more: int) -> Document:
    """Cores and gibibytes, as the server counts them."""
    return {"cpu": int(cpu * 1000), "memory": int(memory * GI), **more}


def queue(name: str, **said: Any) -> Document:
    known: Document = {
        "key": name,
        "name": name,
        "parent": "root",
        "state": "Open",
        "weight": 1,
        "priority": 0,
        "reclaimable": True,
        "capability": {},
        "deserved_set": {},
        "guarantee": {},
        "deserved": amounts(20, 80),
        "held": amounts(8, 32),
        "asked": amounts(30, 120),
        "limit": amounts(40, 160),
        "borrowed": None,
        "share": 0.4,
        "overused": False,
        "waiting": 1,
        "running": 2,
    }
    return known | said


def job(name: str, **said: Any) -> Document:
    """A job of the namespace default that runs, unless told."""
    namespace = said.pop("namespace", "default")
    members = {
        "min": 3,
        "total": 3,
        "waiting": 0,
        "gated": 0,
        "placed": 0,
        "bound": 3,
        "running": 3,
        "releasing": 0,
        "succeeded": 0,
        "failed": 0,
        "slots": 0,
    }
    known: Document = {
        "key": f"{namespace}/{name}-uid",
        "namespace": namespace,
        "group": f"{name}-uid",
        "name": name,
        "kind": "Job",
        "owner": f"Job {name}",
        "queue": "research",
        "phase": "Running",
        "stage": "running",
        "members": members | said.pop("members", {}),
        "priority": 0,
        "created": NOW - 600,
        "started": NOW - 540,
        "held": amounts(3, 6),
        "asked": amounts(3, 6),
        "waits": False,
        "cause": "",
        "reason": "",
        "outlook": "",
        "place": None,
        "held_at_barrier": 0,
        "evicting": 0,
        "trouble": "",
        "eta": None,
    }
    return known | said


def waiting(name: str, reason: str, **said: Any) -> Document:
    """A job that waits for a reason."""
    fixed: Document = {
        "phase": "Inqueue",
        "stage": "enqueued",
        "members": {"waiting": 3, "bound": 0, "running": 0},
        "held": {},
        "started": None,
        "waits": True,
        "cause": "QueueRoom",
        "reason": reason,
        "outlook": "not yet",
        "place": {"position": 1, "of": 2},
    }
    return job(name, **(fixed | said))


def holds(job: str, queue: str, pods: int, cpu: float) -> Document:
    return {"job": job, "queue": queue, "pods": pods, "amounts": amounts(cpu, cpu * 4)}


def node(name: str, *by: Document, **said: Any) -> Document:
    used = sum(each["amounts"]["cpu"] for each in by) / 1000
    known: Document = {
        "key": name,
        "name": name,
        "ready": True,
        "cordoned": False,
        "allocatable": amounts(8, 32, pods=110),
        "used": amounts(used, used * 4, pods=sum(each["pods"] for each in by)),
        "reserved": {},
        "releasing": {},
        "kept": {},
        "by": list(by),
        "zone": "",
        "path": [],
    }
    return known | said


def whole(**said: Any) -> Document:
    """An empty cluster whose replica leads, unless told; lists are those of the rows given."""
    known: Document = {
        "generation": 1,
        "at": NOW,
        "role": "leads",
        "notice": "",
        "viewer": {"user": "", "namespaces": None},
        "scheduler": {"plan": 1, "cycle_s": 0.004, "last_cycle": NOW, "notices": []},
        "resources": ["cpu", "memory", "pods"],
        "cluster": {
            "allocatable": amounts(40, 160, pods=550),
            "used": amounts(16, 64, pods=16),
            "idle": amounts(24, 96, pods=534),
            "nodes": 5,
            "nodes_down": 0,
            "nodes_cordoned": 0,
            "jobs_waiting": 0,
            "jobs_running": 0,
            "pods_running": 0,
            "pods_waiting": 0,
            "fragmentation": {"shape": {}, "basis": "", "fits": 0, "resources": {}},
        },
        "queues": [],
        "jobs": [],
        "nodes": [],
        "domains": [],
        "future": [],
    }
    return known | said


def history(**said: Any) -> Document:
    known: Document = {
        "at": NOW,
        "every": 15,
        "times": [],
        "queues": {},
        "events": [],
        "since": NOW - 3600,
    }
    return known | said


REASON = (
    "queue research has no room: asked cpu 3, free 1 of 20; team-b holds 12 more than it deserves"
)


def busy() -> Document:
    """Three queues, jobs of all kinds, racks, and something that is to come."""
    succeeded = {"running": 0, "bound": 0, "succeeded": 3}
    jobs = [
        job("train-1"),
        job("train-2", queue="serving", owner="CronJob nightly", created=NOW - 4000),
        waiting("train-3", REASON, eta={"at": NOW + 420, "text": "expected in 7 min"}),
        waiting(
            "too-large",
            "no node has room: 8 cpu are the most any node has, each member asks for 16",
            outlook="never",
            cause="NoNodeFits",
            place={"position": 2, "of": 2},
            namespace="team-b",
        ),
        job("done", phase="Completed", stage="ended", members=succeeded),
    ]
    nodes = [
        node(
            f"node-{i}",
            *([holds("default/train-1-uid", "research", 2, 4)] if i % 2 else []),
            *([holds("default/train-2-uid", "serving", 1, 1.5)] if i % 3 else []),
            *([{"job": "", "others": True, "queue": "", "pods": 1, "amounts": amounts(0.5, 1)}]),
            path=["spine-1", f"rack-{i // 4}"],
            cordoned=i == 3,
            ready=i != 5,
        )
        for i in range(12)
    ]
    domains = [
        {"key": "spine-1", "name": "spine-1", "tier": 2, "tier_name": "spine", "parent": ""},
        *(
            {
                "key": f"rack-{i}",
                "name": f"rack-{i}",
                "tier": 1,
                "tier_name": "rack",
                "parent": "spine-1",
            }
            for i in range(3)
        ),
    ]
    sizes = {"nodes": 4, "allocatable": amounts(32, 128), "used": amounts(10, 40)}
    future = [
        {
            "key": "expected default/train-3-uid",
            "kind": "expected",
            "job": "default/train-3-uid",
            "queue": "research",
            "since": NOW,
            "at": NOW + 420,
            "pods": 3,
            "nodes": 0,
            "amounts": amounts(3, 6),
            "text": "expected to start",
        },
        {
            "key": "collecting team-b/too-large-uid",
            "kind": "collecting",
            "job": "team-b/too-large-uid",
            "queue": "research",
            "since": NOW - 60,
            "at": None,
            "pods": 3,
            "nodes": 2,
            "amounts": amounts(6, 6),
            "text": "free room is kept for it on 2 nodes",
        },
    ]
    made = whole(
        queues=[
            queue("root", parent="", held=amounts(16, 64), limit=amounts(40, 160), deserved=None),
            queue("research", weight=3),
            queue("serving", parent="root", overused=True, held=amounts(24, 90), reclaimable=False),
            queue("night", parent="serving", state="Closed", limit=None, asked=amounts(2, 8)),
        ],
        jobs=jobs,
        nodes=nodes,
        domains=[each | sizes for each in domains],
        future=future,
    )
    made["cluster"] |= {"jobs_waiting": 2, "jobs_running": 2, "nodes": 12, "nodes_down": 1}
    made["cluster"]["fragmentation"] = {
        "shape": amounts(1, 2),
        "basis": "waiting",
        "fits": 31,
        "resources": {
            "cpu": {"idle": 50_000, "usable": 31_000, "stranded": 19_000},
            "memory": {"idle": 200 * GI, "usable": 62 * GI, "stranded": 138 * GI},
        },
    }
    return made


def busy_history() -> Document:
    times = [NOW - 3600 + 60 * i for i in range(61)]

    def wave(most: int, turn: int) -> Document:
        held = [int(most * (0.3 + 0.02 * ((i * turn) % 30))) for i in range(61)]
        flat = [most] * 61
        return {
            "held": {"cpu": held},
            "asked": {"cpu": flat},
            "deserved": {"cpu": flat},
            "limit": {},
        }

    names = {"root": 40_000, "research": 20_000, "serving": 20_000}
    queues = {name: wave(most, turn + 1) for turn, (name, most) in enumerate(names.items())}
    train = {"job": "default/train-1-uid", "name": "train-1", "queue": "research", "pods": 3}
    other = {"job": "default/train-2-uid", "name": "train-2", "queue": "serving", "pods": 3}
    done = {"job": "default/done-uid", "name": "done"}
    events: list[Document] = [
        {"at": NOW - 3000, "kind": "started", **other, "text": ""},
        {
            "at": NOW - 1500,
            "kind": "evicted",
            **other,
            "pods": 1,
            "text": "reclaimed for default/train-1",
            "preemptor": "default/train-1-uid",
            "pod": "default/train-2-w-0",
            "node": "node-1",
            "rule": "proportion",
        },
        {"at": NOW - 540, "kind": "started", **train, "text": ""},
        {"at": NOW - 200, "kind": "ended", **train, **done, "text": ""},
    ]
    return history(times=times, queues=queues, events=events)


def story(of: Document, **said: Any) -> Document:
    """The story of a job that has not come further than its stage."""
    stages = ["submitted", "enqueued", "planned", "held", "bound", "running", "ended"]
    reached = stages.index(of["stage"])
    why = {each: of[each] for each in ("cause", "reason", "outlook", "place")}
    known: Document = {
        "key": of["key"],
        "job": of,
        "stages": [
            {
                "stage": name,
                "at": of["created"] + 10 * i if i <= reached else None,
                "text": f"the group is {name}" if i <= reached else "",
            }
            for i, name in enumerate(stages)
        ],
        "current": of["stage"],
        "why": why if of["waits"] else None,
        "members": [
            {
                "pod": f"{of['namespace']}/{of['name']}-w-{i}",
                "role": "w",
                "state": "waiting" if of["waits"] else "running",
                "node": "" if of["waits"] else f"node-{i}",
                "since": of["created"],
                "gates": [],
                "trouble": "",
            }
            for i in range(3)
        ],
        "members_total": 3,
        "slots": [],
        "steps": [
            {
                "at": of["created"] + 1,
                "who": "group",
                "before": "Pending",
                "after": "Inqueue",
                "by": "cycle",
                "node": "",
                "why": "",
            }
        ],
        "evictions": {"by": [], "of": []},
    }
    return known | said


def evicted(pod: str, **said: Any) -> Document:
    known: Document = {
        "at": NOW - 1500,
        "pod": pod,
        "job": "default/train-2-uid",
        "queue": "serving",
        "node": "node-1",
        "rule": "proportion",
        "action": "reclaim",
        "state": "gone",
        "preemptor": "default/train-1-uid",
    }
    return known | said
