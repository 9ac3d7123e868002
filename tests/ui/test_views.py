"""Every view in a real browser, over answers of a cluster that the tests make up."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

from tests.ui import samples
from tests.ui.chromium import Tab
from tests.ui.site import Site

NAUGHTY = "<img src=x onerror=document.title='taken'>"


def names(page: Tab, selector: str = "tbody tr th a") -> list[str]:
    found: str = page.value(
        f"JSON.stringify([...document.querySelectorAll({json.dumps(selector)})]"
        ".map(it => it.textContent))"
    )
    return list(json.loads(found))


def test_queues_are_a_tree_with_bars_that_are_told_in_numbers(page: Tab, site: Site) -> None:
    page.open(f"{site.url}/ui")
    page.shows("8 of 20 deserved (40 %)", "asks for 30 · limit 40", "has all it deserves")
    assert names(page) == ["root", "research", "serving", "night"]
    label = page.value("document.querySelectorAll('svg.bar')[1].getAttribute('aria-label')")
    assert label == "cpu: holds 8 of 20 deserved, asks for 30, limit 40"
    page.wait("document.querySelectorAll('svg.line .first').length === 3")
    assert page.value("document.querySelectorAll('svg.line .mark').length") == 1


def test_a_queue_that_only_others_below_it_use_has_their_sums(page: Tab, site: Site) -> None:
    site.whole["queues"][0] |= {"held": {}, "asked": {}, "deserved": {}}
    below = [each for each in site.whole["queues"][1:] if each["parent"] == "root"]
    asked = sum(each["asked"]["cpu"] for each in below) // 1000
    page.open(f"{site.url}/ui")
    page.shows(f"asks for {asked}")
    label = page.value("document.querySelectorAll('svg.bar')[0].getAttribute('aria-label')")
    held = sum(each["held"]["cpu"] for each in below) // 1000
    assert label.startswith(f"cpu: holds {held}, asks for {asked}")


def test_a_tenant_is_told_that_a_queue_above_has_nothing_of_its_own(page: Tab, site: Site) -> None:
    """What other tenants' queues below it hold is not in a tenant's view."""
    site.whole["viewer"] = {"user": "ann", "namespaces": ["team-a"]}
    site.whole["queues"][0] |= {"held": {}, "asked": {}, "deserved": {}}
    page.open(f"{site.url}/ui")
    page.shows("nothing of its own")
    assert "0 of 0 deserved" not in page.text("main")


def test_the_resource_of_the_bars_is_part_of_the_address(page: Tab, site: Site) -> None:
    page.open(f"{site.url}/ui#/queues?resource=memory")
    page.shows("32Gi of 80Gi deserved")
    page.choose("Resource", "cpu")
    page.shows("8 of 20 deserved")
    page.wait("location.hash === '#/queues?resource=cpu'")


def test_one_queue_is_shown_with_all_its_resources(page: Tab, site: Site) -> None:
    page.open(f"{site.url}/ui#/queues/research")
    page.shows("Queue research", "memory: holds 32Gi of 80Gi deserved", "Its jobs")
    page.open(f"{site.url}/ui#/queues/none")
    page.shows("There is no queue none")


def test_jobs_that_wait_come_first_with_their_reason_and_when_they_start(
    page: Tab, site: Site
) -> None:
    page.open(f"{site.url}/ui#/jobs")
    page.shows("5 jobs, 2 of them wait", samples.REASON, "Place 1 of 2 in line.")
    page.shows("expected in 7 min", "not without a change")
    assert names(page)[:2] == ["train-3", "too-large"]


def test_when_jobs_start_is_foretold(page: Tab, site: Site) -> None:
    text = "It starts in 7m to 9m on node-1, after the end of default/train-1."
    later = "Later than in 7d: so far was looked."
    site.whole["jobs"][2]["eta"] = {"at": samples.NOW + 420, "late": None, "text": text}
    site.whole["jobs"][3]["eta"] = {"at": None, "late": None, "text": later}
    page.open(f"{site.url}/ui#/jobs")
    page.shows("It starts in 7m to 9m on node-1, after the end of", later)
    page.open(f"{site.url}/ui#/jobs/default/train-3")
    page.shows("It starts in 7m to 9m on node-1, after the end of")


def test_a_job_that_has_gone_is_named_as_it_was_and_leads_to_its_story(
    page: Tab, site: Site
) -> None:
    gone = "default/old-1-2c5d06e2-a927-451d-bb29-047712b4c948"
    site.whole["jobs"][2]["reason"] = f"held by {gone} (cpu 4)"
    page.open(f"{site.url}/ui#/jobs")
    page.shows("held by old-1 (cpu 4)")
    assert page.value("!!document.querySelector('a[href=\"#/jobs/default/old-1\"]')")


def test_a_job_that_runs_and_wants_more_is_told_to_run(page: Tab, site: Site) -> None:
    site.whole["jobs"][2] |= {"stage": "running", "waits": True}
    page.open(f"{site.url}/ui#/jobs")
    page.shows("▶ running, waits for more")


def test_a_job_that_runs_and_does_not_work_says_so(page: Tab, site: Site) -> None:
    crashes = "container main: CrashLoopBackOff, 3 restarts"
    job = site.whole["jobs"][0]
    job["trouble"] = f"1 of 3 pods does not work: train-1-w-1: {crashes}"
    told = site.answers["/view/jobs/default/train-1"] = samples.story(job)
    told["members"][1]["trouble"] = crashes
    page.open(f"{site.url}/ui#/jobs")
    page.choose("State", "in trouble")
    page.shows("1 of 5 jobs", "! running, in trouble", job["trouble"])
    assert names(page) == ["train-1"]
    page.open(f"{site.url}/ui#/jobs/default/train-1")
    page.shows("What is wrong", job["trouble"], f"running\n{crashes}")


def test_the_filter_of_jobs_is_part_of_the_address(page: Tab, site: Site) -> None:
    page.open(f"{site.url}/ui#/jobs")
    page.choose("Queue", "serving")
    page.shows("1 of 5 jobs")
    assert names(page) == ["train-2"]
    page.choose("Queue", "")
    page.choose("Text", "NIGHTLY")
    page.wait("document.querySelectorAll('tbody tr').length === 1")
    assert names(page) == ["train-2"]
    page.wait("location.hash === '#/jobs?text=NIGHTLY'")
    page.choose("Text", "no such job")
    page.shows("No job is like that.")


def test_jobs_are_grouped(page: Tab, site: Site) -> None:
    page.open(f"{site.url}/ui#/jobs?group=queue")
    page.wait("document.querySelectorAll('main table').length === 2")
    assert names(page, "main h2") == ["research 4 jobs", "serving 1 job"]


def test_changes_are_shown_as_they_come_and_told_to_a_screen_reader(page: Tab, site: Site) -> None:
    page.open(f"{site.url}/ui#/jobs")
    page.shows("5 jobs, 2 of them wait")
    site.change(jobs=[samples.job("train-3")])
    page.shows("5 jobs, 1 of them wait")
    page.wait("document.querySelector('#spoken').textContent === 'train-3: running'")
    site.remove(jobs=["default/done-uid"])
    page.shows("4 jobs")
    site.change(jobs=[samples.job("new")])
    page.shows("5 jobs")
    assert "new" in names(page)


def test_an_update_that_does_not_follow_is_asked_for_anew(page: Tab, site: Site) -> None:
    page.open(f"{site.url}/ui#/jobs")
    page.shows("5 jobs")
    site.tell("delta", {"generation": 9, "before": 8, "at": samples.NOW, "gone": {"jobs": ["x"]}})
    site.whole = samples.whole(generation=9, jobs=[samples.job("only")])
    site.tell("delta", {"generation": 11, "before": 10, "at": samples.NOW})
    page.shows("1 job, 0 of them wait")


def test_a_story_has_its_stages_with_times_its_members_and_its_evictions(
    page: Tab, site: Site
) -> None:
    job = site.whole["jobs"][0]
    by = [samples.evicted("default/train-2-w-0")]
    of = [samples.evicted("default/train-1-w-9", preemptor="team-b/other", rule="priority")]
    slots = [{"role": "w", "node": "node-7"}]
    told = samples.story(job, evictions={"by": by, "of": of}, slots=slots)
    site.answers["/view/jobs/default/train-1"] = told
    page.open(f"{site.url}/ui#/jobs/default/train-1")
    page.shows("Submitted", "Held at the barrier", "Running", "after 10 s", "train-1-w-0")
    page.shows("Pods that were evicted for it", "default/train-2-w-0", "by the rule of proportion")
    page.shows("Its own pods that were evicted", "team-b/other", "Room is kept for 1 member")
    assert page.text("li[aria-current=step]").startswith("Running")
    page.click("All steps (1)")
    page.shows("Inqueue")


def test_why_a_job_waits_is_asked_further_on_demand(page: Tab, site: Site) -> None:
    steps = [{"text": "nodes", "nodes": 12}, {"text": "with room for one now", "nodes": 1}]
    funnel = {"role": "w", "lacking": 3, "fit": 1, "steps": steps}
    site.answers["/explain/default/train-3-uid"] = {"funnels": [funnel], "network": ""}
    site.answers["/advice/default/train-3-uid"] = {
        "changes": [{"kind": "limit", "text": "raise the limit of queue research to cpu 23"}],
        "tried": 4,
        "complete": True,
    }
    page.open(f"{site.url}/ui#/jobs/default/train-3")
    page.shows("Why it waits", samples.REASON)
    page.click("How nodes narrow down")
    page.shows("3 members needed, room for 1 now.", "1 with room for one now")
    page.click("Find a change that would let it run")
    page.shows("raise the limit of queue research to cpu 23")
    page.shows("The answer of ")
    page.click("Who is ahead in the queue")
    page.shows("nothing is known of /line/default/train-3-uid")


def test_the_story_of_an_unknown_job_says_so(page: Tab, site: Site) -> None:
    page.open(f"{site.url}/ui#/jobs/default/none")
    page.shows("Nothing is known of a job of this name.")


def test_the_map_shows_nodes_by_racks_and_what_one_holds(page: Tab, site: Site) -> None:
    page.open(f"{site.url}/ui#/map?by=job")
    page.shows("12 nodes, 1 not ready", "train-1: 12 pods on 6 nodes", "other pods: 12 pods")
    page.shows("31 more members of 1 cpu, 2Gi memory would find room", "19 (38 %)")
    page.wait("document.querySelector('canvas').getAttribute('aria-label')")
    page.value("document.querySelector('canvas').focus()")
    page.press("ArrowRight")
    page.shows("Node node-0")
    page.press("ArrowRight")
    page.shows("Node node-1", "train-1 (queue research): 2 pods")
    page.wait("location.hash === '#/map?by=job&node=node-1'")
    page.value("document.querySelector('input[type=checkbox]').click()")
    page.shows("4.5 of 8", "takes no pods", "spine-1 / rack-2")


def test_the_colours_of_the_map_are_those_of_its_legend(page: Tab, site: Site) -> None:
    page.open(f"{site.url}/ui#/map?by=queue")
    page.shows("research: 12 pods on 6 nodes")
    legend = page.value(
        "getComputedStyle([...document.querySelectorAll('.shades button')]"
        ".find(it => it.textContent.startsWith('research')).querySelector('.swatch'))"
        ".backgroundColor"
    )
    drawn = (
        "(() => { const it = document.querySelector('canvas');"
        " const { data } = it.getContext('2d').getImageData(0, 0, it.width, it.height);"
        " const found = new Set();"
        " for (let i = 0; i < data.length; i += 4)"
        " found.add(`rgb(${data[i]}, ${data[i + 1]}, ${data[i + 2]})`);"
        f" return found.has({json.dumps(legend)}); }})()"
    )
    page.wait(drawn)
    page.value("[...document.querySelectorAll('.shades button')].at(-1).click()")
    page.wait("document.querySelector('.shades [aria-pressed=true]')")
    page.wait(f"!{drawn}")


def test_the_time_axis_has_what_happened_and_what_is_to_come(page: Tab, site: Site) -> None:
    page.open(f"{site.url}/ui#/time")
    page.shows("in 7 min", "free room is kept for it on 2 nodes", "time not known")
    page.shows("✕ evicted (1 pod) by the rule of proportion for train-1", "■ ended (3 pods)")
    label = page.value("document.querySelectorAll('.strip')[1].getAttribute('aria-label')")
    assert label == "Queue serving: 1 started, 1 evicted"
    page.choose("Past", "600")
    page.wait("!document.body.innerText.includes('by the rule of proportion')")


def test_a_limit_between_the_steps_of_the_slider_is_written(page: Tab, site: Site) -> None:
    """On a large cluster a step of the slider is more than some queues have."""
    site.whole["cluster"]["allocatable"] = samples.amounts(160_000, 640_000)
    site.answers["/simulate"] = {
        "asked": [],
        "displaced": [],
        "others": [],
        "given_up": [],
        "warnings": [],
    }
    page.open(f"{site.url}/ui#/try?queue=research")
    page.choose("Limit in cpu", "41.5")
    page.shows("Limit: 41.5 cpu, now 40", "No group that waits, or loses pods")
    assert site.asked[-1][1]["set"] == {"queue/research.capability.cpu": "41500m"}
    page.choose("Resource", "memory")
    page.choose("Limit in Gi of memory", "0.5")
    page.shows("Limit: 512Mi memory, now 160Gi")
    page.click("Ask")
    page.wait("!document.querySelector('button.primary').disabled")
    assert site.asked[-1][1]["set"] == {"queue/research.capability.memory": str(2**29)}


def test_what_if_is_put_together_and_answered(page: Tab, site: Site) -> None:
    fate = {
        "group": "default/train-3-uid",
        "queue": "research",
        "outcome": "evicts",
        "before": "waits",
        "minimum": 3,
        "places": [{"pod": "", "role": "w", "node": "node-1"}] * 3,
        "reason": None,
        "text": "",
        "action": "reclaim",
        "victims": [
            {
                "pod": "team-b/victim-0",
                "node": "node-1",
                "group": "team-b/victim",
                "queue": "serving",
                "rule": "proportion",
            }
        ],
    }
    site.answers["/simulate"] = {
        "outcome": "evicts",
        "asked": [],
        "displaced": [],
        "others": [fate],
        "given_up": [],
        "warnings": ["the job has no queue"],
    }
    page.open(f"{site.url}/ui#/try?queue=research")
    page.shows("Limit: 40 cpu (as it is)")
    page.choose("Limit", "50000")
    page.shows("Limit: 50 cpu, now 40", "runs once pods have been evicted", "now it waits")
    page.shows("reclaim evicts 1 pod:", "team-b/victim-0 on node-1", "Places: 3 on node-1")
    page.choose("Node", "node-4")
    page.click("Drain it")
    page.choose("YAML", "kind: Job")
    page.click("Ask")
    page.wait("document.querySelector('.chosen')?.innerText.includes('node-4')")
    page.wait("!document.querySelector('button.primary').disabled")
    assert site.asked[-1] == (
        "/simulate",
        {
            "yaml": "kind: Job",
            "namespace": "default",
            "set": {"queue/research.capability.cpu": "50000m"},
            "drain": ["node-4"],
        },
    )


def test_a_tenant_is_offered_only_what_it_may_try(page: Tab, site: Site) -> None:
    site.whole["viewer"] = {"user": "ann", "namespaces": ["team-a"]}
    site.answers["/simulate"] = (403, "set, drain and conf are for operators")
    page.open(f"{site.url}/ui#/try")
    page.shows("A job that would come", "namespace team-a")
    assert "Nodes that are gone" not in page.text()
    page.choose("YAML", "kind: Job")
    page.click("Ask")
    page.shows("set, drain and conf are for operators")


def test_names_and_reasons_are_text_whatever_they_are(page: Tab, site: Site) -> None:
    bad = samples.waiting(NAUGHTY, NAUGHTY, owner=NAUGHTY, queue=NAUGHTY, namespace="a")
    node = samples.node(NAUGHTY, samples.holds(bad["key"], NAUGHTY, 1, 1), path=[NAUGHTY])
    future = samples.busy()["future"][0] | {"job": bad["key"], "queue": NAUGHTY, "text": NAUGHTY}
    site.whole |= {
        "jobs": [bad],
        "nodes": [node],
        "queues": [samples.queue(NAUGHTY)],
        "future": [future],
        "notice": NAUGHTY,
    }
    name = quote(NAUGHTY, safe="")
    site.answers[f"/view/jobs/a/{NAUGHTY}"] = samples.story(bad)
    for view in ("queues", "jobs", f"jobs/a/{name}", "map?by=job", f"map?node={name}", "time"):
        page.open(f"{site.url}/ui#/{view}")
        page.shows(NAUGHTY)
        page.wait("document.querySelector('h1')")
        assert page.value("document.querySelectorAll('img').length") == 0
        assert page.value("document.title") != "taken"


@pytest.mark.parametrize("view", ["nowhere", "constructor", "toString", "queues2/a"])
def test_an_address_that_names_no_view_says_so(page: Tab, site: Site, view: str) -> None:
    page.open(f"{site.url}/ui#/{view}")
    page.shows("There is no such view")


@pytest.mark.parametrize(
    ("view", "text"),
    [
        ("jobs?group=constructor", "5 jobs, 2 of them wait"),
        ("jobs?most=-1", "train-1"),
        ("time?past=constructor", "30 min"),
        ("map?by=constructor", "12 nodes"),
    ],
)
def test_an_option_that_there_is_not_is_as_if_it_was_not_named(
    page: Tab, site: Site, view: str, text: str
) -> None:
    page.open(f"{site.url}/ui#/{view}")
    page.shows(text)
    assert "Show more" not in page.text("main")
    assert "research 4 jobs" not in page.text("main")
    assert page.value("document.querySelectorAll('.shades').length") == 0


def test_a_group_that_is_asked_about_is_named_as_its_job(page: Tab, site: Site) -> None:
    uid = "60c81ddd-d73a-509d-b33f-172a6d5fdf85"
    fate = {
        "group": f"default/pasted-{uid}",
        "queue": "research",
        "outcome": "waits",
        "before": "",
        "places": [],
        "text": "queue research: cpu asked 9, free 1 of 20",
        "action": "",
        "victims": [],
        "eta": {"text": f"It starts in 7m, after the end of default/old-{uid}."},
    }
    nothing: dict[str, list[object]] = {"displaced": [], "others": [], "given_up": []}
    site.answers["/simulate"] = {"asked": [fate], "warnings": [], **nothing}
    page.open(f"{site.url}/ui#/try")
    page.choose("YAML", "kind: Job")
    page.click("Ask")
    page.shows("default/pasted in queue research", "after the end of old.", "The answer of ")
    assert uid not in page.text("main")
