"""``pumice queue``: what is sent, what is printed, how it ends."""

from __future__ import annotations

import json
from typing import ClassVar

import pytest
import yaml

from app.wire.kinds import COMMANDS, QUEUES
from tests.cli.stand import Stand, answering, group, queue


def line(name: str, *cells: str) -> str:
    """A line of the table: 25 characters for the name, eight for everything else."""
    return f"{name:<25}" + "".join(f"{cell:<8}" for cell in cells) + "\n"


COUNTED = ("Inqueue", "Pending", "Running", "Unknown", "Completed")
HEAD = line("Name", "Weight", "State", "Parent", *COUNTED)


def test_create_makes_the_queue_that_volcano_makes(stand: Stand) -> None:
    assert stand.printed("queue", "create", "-n", "a") == "create queue a successfully\n"
    [made] = stand.all(QUEUES)
    assert made["metadata"]["name"] == "a"
    assert made["spec"]["weight"] == 1
    assert set(made["spec"]) <= {"weight", "dequeueStrategy"}


def test_create_takes_limits_and_a_parent(stand: Stand) -> None:
    stand.printed(
        *["queue", "create", "--name", "a", "--weight", "4", "--state", "Open"],
        *["--parent", "root", "--capability", "cpu=8,memory=1Gi", "--deserved", "cpu=4"],
        *["--guarantee", "nvidia.com/gpu=2"],
    )
    [made] = stand.all(QUEUES)
    made["spec"].pop("dequeueStrategy", None)
    assert made["spec"] == {
        "weight": 4,
        "parent": "root",
        "capability": {"cpu": "8", "memory": "1Gi"},
        "deserved": {"cpu": "4"},
        "guarantee": {"resource": {"nvidia.com/gpu": "2"}},
    }
    assert stand.all(COMMANDS) == []


def test_a_queue_that_is_to_be_closed_is_closed_by_a_command(stand: Stand) -> None:
    said = stand.printed("queue", "create", "-n", "a", "-S", "Closed")
    assert said == "create queue a successfully\nasked the controllers to close queue a\n"
    [command] = stand.all(COMMANDS)
    assert (command["action"], command["target"]["name"]) == ("CloseQueue", "a")


@pytest.mark.parametrize(("action", "sent"), [("open", "OpenQueue"), ("close", "CloseQueue")])
def test_open_and_close_are_commands(action: str, sent: str, stand: Stand) -> None:
    [made] = stand.create(queue("a"))
    said = f"asked the controllers to {action} queue a\n"
    assert stand.printed("queue", "operate", "-n", "a", "-a", action) == said
    [command] = stand.all(COMMANDS)
    assert command["action"] == sent
    assert command["metadata"]["namespace"] == "default"
    assert command["metadata"]["name"].startswith(f"a-{sent.lower()}-")
    assert command["target"]["uid"] == made["metadata"]["uid"]
    assert command["target"]["kind"] == "Queue"


def test_update_changes_the_weight_alone(stand: Stand) -> None:
    stand.create(queue("a", capability={"cpu": "1"}))
    said = stand.printed("queue", "operate", "-n", "a", "-a", "update", "-w", "7")
    assert said == "update queue a successfully\n"
    [changed] = stand.all(QUEUES)
    assert (changed["spec"]["weight"], changed["spec"]["capability"]) == (7, {"cpu": "1"})


def test_list_counts_podgroups_by_phase(stand: Stand) -> None:
    stand.create(queue("default"), queue("a", parent="default", weight=3))
    stand.status(QUEUES, "default", {"state": "Open"})
    stand.create(
        *(group(f"g{i}", phase=phase) for i, phase in enumerate(["Running", "Running", ""])),
        *(
            group(f"a{i}", phase=phase, queue="a")
            for i, phase in enumerate(["Inqueue", "Unknown", "Completed", "Pending"])
        ),
    )
    assert stand.printed("queue", "list") == (
        HEAD
        + line("a", "3", "", "default", "1", "1", "0", "1", "1")
        + line("default", "1", "Open", "", "0", "1", "2", "0", "0")
    )


def test_get_shows_one(stand: Stand) -> None:
    stand.create(queue("a"), queue("b"), group("g", phase="Running", queue="b"))
    row = line("b", "1", "", "", "0", "0", "1", "0", "0")
    assert stand.printed("queue", "get", "-n", "b") == HEAD + row


def test_a_long_name_keeps_its_distance(stand: Stand) -> None:
    stand.create(queue("a-queue-with-a-very-long-name"))
    head, row = stand.printed("queue", "list").splitlines()
    assert row.startswith("a-queue-with-a-very-long-name 1 ")
    assert head.index("Weight") == row.index("1")


def test_wide_shows_limits(stand: Stand) -> None:
    stand.create(
        queue(
            "a",
            reclaimable=False,
            priority=5,
            capability={"memory": "1Gi", "cpu": "8"},
            deserved={"cpu": "4"},
            guarantee={"resource": {"cpu": "1"}},
        )
    )
    stand.status(QUEUES, "a", {"state": "Open", "allocated": {"cpu": "2", "memory": "0"}})
    head, row = stand.printed("queue", "list", "-o", "wide").splitlines()
    assert head.split()[-6:] == [
        "Reclaimable",
        "Priority",
        "Guarantee",
        "Deserved",
        "Capability",
        "Allocated",
    ]
    assert row.split()[-6:] == ["no", "5", "cpu=1", "cpu=4", "cpu=8,memory=1Gi", "cpu=2"]


def test_objects_are_printed(stand: Stand) -> None:
    stand.create(queue("a"), queue("b"))
    listed = json.loads(stand.printed("queue", "list", "-o", "json"))["items"]
    assert [item["metadata"]["name"] for item in listed] == ["a", "b"]
    assert yaml.safe_load(stand.printed("queue", "get", "-n", "a", "-o", "yaml")) == listed[0]
    assert stand.printed("queue", "get", "-n", "a", "-o", "name") == (
        "queue.scheduling.volcano.sh/a\n"
    )


def test_no_queue_at_all(stand: Stand) -> None:
    assert stand.printed("queue", "list") == "No resources found\n"


def test_delete_deletes_and_says_so(stand: Stand) -> None:
    stand.create(queue("a"))
    assert stand.printed("queue", "delete", "-n", "a") == "delete queue a successfully\n"
    assert stand.all(QUEUES) == []


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["create"], "queue name must be specified"),
        (["delete"], "queue name must be specified"),
        (["operate"], "queue name must be specified"),
        (["operate", "-n", "a"], "action can not be null"),
        (
            ["operate", "-n", "a", "-a", "burn"],
            "action burn invalid, valid actions are open, close and update",
        ),
        (
            ["operate", "-n", "a", "-a", "update"],
            "when update queue a, weight must be specified, the value must be greater than 0",
        ),
        (["get"], "name is mandatory to get the particular queue details"),
        (
            ["create", "-n", "a", "--capability", "8"],
            "--capability: invalid argument syntax 8, expected <resource>=<value>",
        ),
    ],
)
def test_bad_usage_is_code_2(arguments: list[str], why: str, stand: Stand) -> None:
    expected = (2, f"Failed to {arguments[0]} queue: {why}\n")
    assert stand.refusal("queue", *arguments) == expected
    assert stand.all(QUEUES) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["delete", "-n", "a"],
        ["get", "-n", "a"],
        ["operate", "-n", "a", "-a", "open"],
        ["operate", "-n", "a", "-a", "update", "-w", "1"],
    ],
)
def test_a_queue_that_is_not_there_is_code_3(arguments: list[str], stand: Stand) -> None:
    why = f'Failed to {arguments[0]} queue: queues.scheduling.volcano.sh "a" not found\n'
    assert stand.refusal("queue", *arguments) == (3, why)


def test_what_the_api_server_refuses_is_code_6(stand: Stand) -> None:
    code, why = stand.refusal("queue", "create", "-n", "a", "-w", "-1")
    assert code == 6
    assert why.startswith('Failed to create queue: Queue.scheduling.volcano.sh "a" is invalid')


class TestPreview:
    """``pumice queue preview``, with an extender that says this."""

    FOUND: ClassVar[dict[str, object]] = {
        "queue": "a",
        "evicts": False,
        "capability": {"cpu": 2000},
        "holds": {"cpu": 5000, "memory": 1 << 30},
        "over": {"cpu": 3000},
        "kept": {"cpu": 1000},
        "pods": [
            {
                "pod": f"default/g-{number}",
                "node": "n1",
                "group": "default/g",
                "queue": "a",
                "kind": "surplus" if number else "single",
                "priority": 7,
                "request": {"cpu": 500},
            }
            for number in range(3)
        ],
        "candidates": 4,
        "spared": {"protected by a PodDisruptionBudget": 1},
        "problem": "",
    }

    def test_it_shows_who_would_go_with_numbers_and_how_to_ask_for_it(self, stand: Stand) -> None:
        with answering(json.dumps(self.FOUND).encode()) as (url, asked):
            asks = ["queue", "preview", "-n", "a", "--capability", "cpu=2,memory=1Gi"]
            text = stand.printed(*asks, "--extender-url", url)
        assert asked == ["/preview/queue/a?capability=cpu%3D2%2Cmemory%3D1Gi"]
        head, rows = text.split("\n\n")
        assert head.splitlines() == [
            "Queue:             a",
            "Capability:        cpu=2",
            "Holds:             cpu=5,memory=1Gi",
            "Beyond it:         cpu=3",
            "Would evict:       3 pods: 2 beyond the minimum of its group, 1 of use by itself",
            "Would stay beyond: cpu=1",
            "May not go:        1 protected by a PodDisruptionBudget",
            "Annotation:        pumice.sh/evict-over-capability is not set: no pod is evicted. "
            "To evict: kubectl annotate queue a pumice.sh/evict-over-capability=true",
        ]
        assert rows.splitlines()[1].split() == [
            *("default/g-0", "n1", "default/g", "a", "single", "7", "cpu=500m")
        ]

    def test_a_queue_that_gives_nothing_up_says_so(self, stand: Stand) -> None:
        nothing = {"pods": [], "over": {}, "kept": {}, "spared": {}, "evicts": True}
        with answering(json.dumps(self.FOUND | nothing).encode()) as (url, _):
            text = stand.printed("queue", "preview", "-n", "a", "--extender-url", url)
        assert "Would evict:       no pod\n" in text
        assert text.endswith("is set: what is beyond the capability is evicted\n")

    def test_programs_get_the_answer_as_it_is(self, stand: Stand) -> None:
        with answering(json.dumps(self.FOUND).encode()) as (url, _):
            asks = ["queue", "preview", "-n", "a", "--extender-url", url, "-o", "json"]
            assert json.loads(stand.printed(*asks)) == self.FOUND

    @pytest.mark.parametrize(
        ("answer", "status", "code"),
        [(b"no queue a is known\n", 404, 3), (b"another leads\n", 503, 5), (b"not JSON", 200, 5)],
    )
    def test_an_extender_that_does_not_tell_is_a_failure(
        self, answer: bytes, status: int, code: int, stand: Stand
    ) -> None:
        with answering(answer, status) as (url, _):
            done = stand.run("queue", "preview", "-n", "a", "--extender-url", url)
        assert done.code == code
        assert "preview queue" in done.err

    def test_the_address_of_the_extender_must_be_known(self, stand: Stand) -> None:
        done = stand.run("queue", "preview", "-n", "a")
        assert done.code == 2
        assert "say where the extender answers" in done.err
