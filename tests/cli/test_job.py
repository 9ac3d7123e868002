"""``pumice job``: what is sent, what is printed, how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from app.cli.standalone import PROGRAMS
from app.wire.kinds import COMMANDS, JOBS
from tests.cli.stand import CREATED, Stand, event, job

QUOTES = "--command: a quotation mark is not closed, or a backslash ends it"

EMPTY = "No resources found\n"
HEAD = (
    "Creation       Phase       JobType     Replicas    Min   Pending   Running   "
    "Succeeded   Failed    Unknown     RetryCount"
)


def line(text: str) -> str:
    """A line of the table, whose last column is padded."""
    return f"{text}\n"


def test_run_makes_one_task_of_flags(stand: Stand) -> None:
    said = stand.printed(
        *["job", "run", "--name", "one", "--image", "nginx", "--min", "2", "--replicas", "3"],
        *["-R", "cpu=1,memory=1Gi", "-L", "cpu=2"],
        *["--scheduler", "other", "--queue", "batch", "--command", "sh -c 'sleep 1'"],
    )
    assert said == "run job one successfully\n"
    [made] = stand.all(JOBS)
    assert made["metadata"]["namespace"] == "default"
    assert made["spec"]["minAvailable"] == 2
    assert made["spec"]["schedulerName"] == "other"
    assert made["spec"]["queue"] == "batch"
    [task] = made["spec"]["tasks"]
    assert task["replicas"] == 3
    assert task["template"]["metadata"]["labels"] == {"job.volcano.sh": "one"}
    assert task["template"]["spec"] == {
        "restartPolicy": "Never",
        "containers": [
            {
                "name": "one",
                "image": "nginx",
                "imagePullPolicy": "IfNotPresent",
                "command": ["sh", "-c", "sleep 1"],
                "resources": {
                    "requests": {"cpu": "1", "memory": "1Gi"},
                    "limits": {"cpu": "2"},
                },
            }
        ],
    }


def test_run_without_more_flags_asks_for_what_volcano_asks_for(stand: Stand) -> None:
    stand.printed("job", "run", "-N", "one")
    [made] = stand.all(JOBS)
    [container] = made["spec"]["tasks"][0]["template"]["spec"]["containers"]
    amounts = {"cpu": "1000m", "memory": "100Mi"}
    assert container["resources"] == {"requests": amounts, "limits": amounts}
    assert (container["image"], made["spec"]["minAvailable"]) == ("busybox", 1)
    assert made["spec"]["schedulerName"] == "volcano"


@pytest.mark.parametrize("name", ["jobs.yaml", "jobs.yml"])
def test_run_takes_a_file_of_many_documents(name: str, stand: Stand, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_text("# first\n---\n" + yaml.safe_dump_all([job("a"), job("b")]))
    said = stand.printed("job", "run", "-f", str(file))
    assert said == "run job a successfully\nrun job b successfully\n"
    assert [made["metadata"]["name"] for made in stand.all(JOBS)] == ["a", "b"]


def test_run_tells_what_the_api_server_warns_of(stand: Stand) -> None:
    item = job("a")
    item["spec"]["retries"] = item["spec"]["tasks"][0]["retries"] = 3
    done = stand.run("job", "run", "-f", "-", stdin=yaml.safe_dump(item))
    assert (done.code, done.out) == (0, "run job a successfully\n")
    assert sorted(done.err.splitlines()) == [
        'Warning: unknown field "spec.retries"',
        'Warning: unknown field "spec.tasks[0].retries"',
    ]


def test_run_reads_standard_input(stand: Stand) -> None:
    item = job("a")
    del item["metadata"]["namespace"]
    done = stand.run("job", "run", "-f", "-", "-n", "kube-public", stdin=yaml.safe_dump(item))
    assert (done.code, done.out) == (0, "run job a successfully\n")
    assert stand.all(JOBS)[0]["metadata"]["namespace"] == "kube-public"


def test_run_does_not_put_a_job_elsewhere_than_asked(stand: Stand) -> None:
    words = yaml.safe_dump_all([job("a"), job("b")])
    done = stand.run("job", "run", "-f", "-", "-n", "kube-public", stdin=words)
    assert (done.code, done.err) == (
        2,
        "Failed to run job: a is in the namespace default: "
        "the namespace of the provided object does not match the namespace sent on the request\n",
    )
    assert stand.all(JOBS) == []


def test_run_without_a_namespace_takes_that_of_the_file(stand: Stand) -> None:
    item = job("a")
    item["metadata"]["namespace"] = "kube-public"
    assert stand.run("job", "run", "-f", "-", stdin=yaml.safe_dump(item)).code == 0
    assert stand.all(JOBS)[0]["metadata"]["namespace"] == "kube-public"


def test_run_shows_what_was_made(stand: Stand) -> None:
    made = json.loads(stand.printed("job", "run", "-N", "a", "-o", "json"))
    assert (made["kind"], made["metadata"]["name"]) == ("Job", "a")
    assert "managedFields" not in made["metadata"]
    assert stand.printed("job", "run", "-N", "b", "-o", "name") == "job.batch.volcano.sh/b\n"


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        ([], "job name cannot be left blank"),
        (["-f", "jobs.json"], "jobs.json: only support yaml file"),
        (["-f", "/no/such.yaml"], "/no/such.yaml: failed to read file: No such file or directory"),
        (
            ["-N", "a", "-R", "cpu"],
            "--requests: invalid argument syntax cpu, expected <resource>=<value>",
        ),
        (["-N", "a", "-R", "cpu=1,cpu=2"], "--requests: cpu is there twice"),
        (["-N", "a", "-L", "cpu=x"], '--limits: cpu: "x" is not a quantity'),
        (
            ["-N", "a", "-c", "'"],
            QUOTES,
        ),
        (["-N", "a", "--timeout", "5"], "--timeout: '5' is not a duration such as 1h30m"),
        (["-N", "a", "--timeout=-5s"], "--timeout: '-5s' is less than nothing"),
    ],
    ids=[
        *["nothing", "no YAML", "no file", "no amount", "twice", "no quantity", "quote"],
        *["no duration", "negative"],
    ],
)
def test_run_refuses_bad_usage_with_2(flags: list[str], why: str, stand: Stand) -> None:
    assert stand.refusal("job", "run", *flags) == (2, f"Failed to run job: {why}\n")
    assert stand.all(JOBS) == []


def test_run_says_in_one_line_what_the_api_server_refuses(stand: Stand) -> None:
    code, why = stand.refusal("job", "run", "-N", "Bad_Name")
    assert code == 6
    assert why.startswith('Failed to run job: Job.batch.volcano.sh "Bad_Name" is invalid: ')
    assert why.count("\n") == 1
    stand.printed("job", "run", "-N", "twice")
    again = stand.refusal("job", "run", "-N", "twice")
    assert again == (
        6,
        'Failed to run job: jobs.batch.volcano.sh "twice" already exists\n',
    )


def test_list_has_volcano_s_columns(stand: Stand) -> None:
    stand.create(job("a"), job("longer-name"))
    counts = {"pending": 1, "running": 2, "succeeded": 3, "failed": 4, "unknown": 5}
    state = {"state": {"phase": "Running"}, "minAvailable": 2, "retryCount": 6, **counts}
    stand.status(JOBS, "a", state)
    assert stand.printed("job", "list") == (
        line(f"Name          {HEAD}")
        + line(
            "a             2023-11-14     Running     Batch       3           2     1         "
            "2         3           4         5           6         "
        )
        + line(
            "longer-name   2023-11-14                 Batch       3           0     0         "
            "0         0           0         0           0         "
        )
    )


def test_list_of_all_namespaces_begins_with_the_namespace(stand: Stand) -> None:
    stand.create(job("a"))
    expected = line(f"Namespace   Name   {HEAD}") + line(
        "default     a      2023-11-14                 Batch       3           0     0         "
        "0         0           0         0           0         "
    )
    for flag in ("--all-namespaces", "-A", "--all-namespaces=true"):
        assert stand.printed("job", "list", flag, "-n", "kube-system") == expected


def test_list_shows_the_type_that_a_label_says(stand: Stand) -> None:
    item = job("a")
    item["metadata"]["labels"] = {"volcano.sh/job-type": "Training"}
    stand.create(item)
    _, row = stand.printed("job", "list").splitlines()
    assert row.split()[2] == "Training"


def test_no_terminal_is_too_narrow(stand: Stand) -> None:
    stand.create(job("a-job-whose-name-is-longer-than-twenty"))
    for arguments in (["job", "list", "-o", "wide"], ["job", "view", "-N", "a-job-whose-name"]):
        assert stand.run(*arguments, env={"COLUMNS": "20"}) == stand.run(*arguments)


def test_list_wide_shows_where_a_job_stands(stand: Stand) -> None:
    stand.create(job("a", priorityClassName="high"))
    stand.status(JOBS, "a", {"state": {"phase": "Failed", "reason": "TooFewSucceeded"}})
    head, row = stand.printed("job", "list", "-o", "wide").splitlines()
    assert head.split()[-4:] == ["Queue", "Scheduler", "PriorityClass", "Reason"]
    assert row.split()[-4:] == ["default", "volcano", "high", "TooFewSucceeded"]
    assert head.index("Queue") == row.index("default")


@pytest.mark.parametrize(
    ("flags", "names"),
    [
        ([], ["a1", "a2", "b"]),
        (["--selector", "a"], ["a1", "a2"]),
        (["-S", "other"], ["a2"]),
        (["-q", "batch"], ["b"]),
        (["--all-namespaces=false"], ["a1", "a2", "b"]),
    ],
)
def test_list_chooses(flags: list[str], names: list[str], stand: Stand) -> None:
    stand.create(job("a1"), job("a2", schedulerName="other"), job("b", queue="batch"))
    rows = stand.printed("job", "list", *flags).splitlines()
    assert rows[0].startswith("Name ")
    assert [row.split()[0] for row in rows[1:]] == names


def test_list_of_nothing_says_so(stand: Stand) -> None:
    assert stand.printed("job", "list") == EMPTY
    assert json.loads(stand.printed("job", "list", "-o", "json"))["items"] == []
    assert stand.printed("job", "list", "-o", "name") == ""


def test_list_of_nothing_that_matches_says_so(stand: Stand) -> None:
    stand.create(job("a"), job("b", queue="batch"))
    assert stand.printed("job", "list", "--selector=a", "--queue=batch") == EMPTY


def test_list_prints_objects(stand: Stand) -> None:
    stand.create(job("a"), job("b"))
    listed = json.loads(stand.printed("job", "list", "-o", "json"))
    assert (listed["apiVersion"], listed["kind"]) == ("v1", "List")
    assert [item["metadata"]["name"] for item in listed["items"]] == ["a", "b"]
    assert yaml.safe_load(stand.printed("job", "list", "-o", "yaml")) == listed
    assert stand.printed("job", "list", "-o", "name") == (
        "job.batch.volcano.sh/a\njob.batch.volcano.sh/b\n"
    )


def test_view_shows_the_job_and_its_events(stand: Stand) -> None:
    [made, other] = stand.create(job("a"), job("ab"))
    stand.create(event(made, "ExecuteAction", "Start"), event(other, "Other", "no"))
    text = stand.printed("job", "view", "--name", "a")
    assert text.startswith("Name:       \ta\nNamespace:  \tdefault\n")
    assert text.splitlines()[-1].startswith("Normal         \tExecuteAction ")
    assert f"UID:               \t{made['metadata']['uid']}\n" in text


def test_view_prints_the_object(stand: Stand) -> None:
    stand.create(job("a"))
    shown = yaml.safe_load(stand.printed("job", "view", "-N", "a", "-o", "yaml"))
    assert list(shown)[:3] == ["apiVersion", "kind", "metadata"]
    assert shown["metadata"]["creationTimestamp"] == CREATED


@pytest.mark.parametrize(("verb", "action"), [("suspend", "AbortJob"), ("resume", "ResumeJob")])
def test_suspend_and_resume_are_commands(verb: str, action: str, stand: Stand) -> None:
    [made] = stand.create(job("a"))
    stand.status(JOBS, "a", {"state": {"phase": "Running" if verb == "suspend" else "Aborted"}})
    assert stand.printed("job", verb, "-N", "a") == f"asked the controllers to {verb} job a\n"
    [command] = stand.all(COMMANDS)
    reference = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "name": "a",
        "uid": made["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    assert command["action"] == action
    assert command["target"] == reference
    assert command["metadata"]["ownerReferences"] == [reference]
    assert command["metadata"]["namespace"] == "default"
    assert command["metadata"]["name"].startswith(f"a-{action.lower()}-")


@pytest.mark.parametrize(
    ("verb", "phase", "why"),
    [
        ("suspend", "Aborted", "is suspended already"),
        ("suspend", "Aborting", "is being suspended already"),
        ("suspend", "Completing", "is about to end, and no action changes that"),
        ("resume", "Running", "is not suspended, so there is nothing to resume"),
        ("resume", "Terminating", "is about to end, and no action changes that"),
    ],
)
def test_what_the_controllers_will_refuse_is_told_at_once(
    verb: str, phase: str, why: str, stand: Stand
) -> None:
    stand.create(job("a"))
    stand.status(JOBS, "a", {"state": {"phase": phase}})
    warned = f"Warning: as things stand the controllers will refuse it: job a {why}\n"
    done = stand.run("job", verb, "-N", "a")
    assert (done.code, done.out) == (0, f"asked the controllers to {verb} job a\n")
    assert done.err == warned
    assert stand.run("-n", "a", program=PROGRAMS[f"v{verb}"]).err == warned


def test_the_rest_of_a_file_is_run_though_one_is_refused(stand: Stand, tmp_path: Path) -> None:
    file = tmp_path / "jobs.yaml"
    file.write_text("---\n".join(yaml.safe_dump(job(name)) for name in ("a", "B_", "c")))
    stand.create(job("a"))
    done = stand.run("job", "run", "-f", str(file))
    assert (done.code, done.out) == (6, "run job c successfully\n")
    start, _, rest = done.err.partition("; ")
    assert start == 'Failed to run job: jobs.batch.volcano.sh "a" already exists'
    assert 'Job.batch.volcano.sh "B_" is invalid' in rest
    assert done.err.count("\n") == 1


def test_a_name_beside_a_file_is_said_to_have_no_effect(stand: Stand, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(job("a")))
    done = stand.run("job", "run", "-f", str(file), "-N", "b")
    assert (done.code, done.out) == (0, "run job a successfully\n")
    assert done.err == (
        f"Warning: --name b is not heeded: the jobs of {file} have names of their own\n"
    )


def test_which_of_several_was_refused_is_said(stand: Stand, tmp_path: Path) -> None:
    file = tmp_path / "jobs.yaml"
    wrong = job("b")
    wrong["metadata"]["namespace"] = "nowhere"
    file.write_text("---\n".join(yaml.safe_dump(each) for each in (job("a"), wrong)))
    done = stand.run("job", "run", "-f", str(file))
    assert (done.code, done.out) == (3, "run job a successfully\n")
    assert done.err == 'Failed to run job: b: namespaces "nowhere" not found\n'


@pytest.mark.parametrize("verb", ["suspend", "resume"])
@pytest.mark.parametrize("phase", ["Completed", "Failed", "Terminated"])
def test_a_job_that_has_ended_is_not_suspended_or_resumed(
    phase: str, verb: str, stand: Stand
) -> None:
    stand.create(job("a"))
    stand.status(JOBS, "a", {"state": {"phase": phase}})
    why = f"Failed to {verb} job: job default/a has ended: it is {phase}\n"
    assert stand.refusal("job", verb, "-N", "a") == (6, why)
    assert stand.all(COMMANDS) == []


def test_delete_deletes(stand: Stand) -> None:
    stand.create(job("a"))
    assert stand.printed("job", "delete", "-N", "a") == "delete job a successfully\n"
    assert stand.all(JOBS) == []


@pytest.mark.parametrize("verb", ["view", "suspend", "resume", "delete"])
def test_a_job_that_is_not_there_is_code_3(verb: str, stand: Stand) -> None:
    why = f'Failed to {verb} job: jobs.batch.volcano.sh "gone" not found\n'
    assert stand.refusal("job", verb, "-N", "gone") == (3, why)


@pytest.mark.parametrize(
    ("verb", "hint"),
    [("view", " (specified by --name or -N)"), ("suspend", ""), ("resume", ""), ("delete", "")],
)
def test_a_job_must_be_named(verb: str, hint: str, stand: Stand) -> None:
    why = f"Failed to {verb} job: job name{hint} is mandatory to {verb} a particular job\n"
    assert stand.refusal("job", verb) == (2, why)
