"""ray."""

from app.jobplugins.rules.job_tasks import label
from app.jobplugins.wanted import Create
from app.wire.unstructured import Object
from tests.controllers.jobplugins.jobs import LABELS, MADE_AS, container, job, pod, task, wanted

HEAD = task("head", containers=[container("head"), container("side")])
WORKER = task("worker", 2, containers=[container("worker", command=["sleep"]), container("side")])
PORTS = [
    {"name": "gcs", "containerPort": 6379},
    {"name": "dashboard", "containerPort": 8265},
    {"name": "client-server", "containerPort": 10001},
]


def service(of: Object, name: str) -> Object:
    step = wanted(of)[f"Service/{name}"].step(None)
    assert isinstance(step, Create)
    return step.item


def test_the_head_starts_ray_and_declares_its_ports() -> None:
    head, side = pod(job({"ray": []}, HEAD, WORKER), "head")["spec"]["containers"]
    assert head["command"] == [
        "sh",
        "-c",
        "ray start --head --block --dashboard-host=0.0.0.0 --port=6379"
        " --dashboard-port=8265 --ray-client-server-port=10001",
    ]
    assert head["ports"] == PORTS
    assert "command" not in side
    assert "ports" not in side


def test_workers_join_the_head() -> None:
    worker, side = pod(job({"ray": []}, HEAD, WORKER), "worker", 1)["spec"]["containers"]
    assert worker["command"] == [
        "sh",
        "-c",
        "ray start --block --address=job-head-0.job:6379",
    ]
    assert "ports" not in worker
    assert "command" not in side


def test_flags_name_tasks_containers_and_ports() -> None:
    given = job(
        {
            "ray": [
                "--head=main",
                "--headContainer=m",
                "--worker=rest",
                "--workerContainer=r",
                "--port=1",
                "--dashboardPort=2",
                "--clientPort=3",
            ]
        },
        task("main", containers=[container("m")], hostname="h", subdomain="net"),
        task("rest", containers=[container("r")]),
    )
    (main,) = pod(given, "main")["spec"]["containers"]
    assert main["command"][2].endswith("--port=1 --dashboard-port=2 --ray-client-server-port=3")
    assert [port["containerPort"] for port in main["ports"]] == [1, 2, 3]
    (rest,) = pod(given, "rest")["spec"]["containers"]
    assert rest["command"][2] == "ray start --block --address=h.net:1"


def test_declared_ports_keep_their_names() -> None:
    there = [{"name": "redis", "containerPort": 6379}]
    given = job({"ray": []}, task("head", containers=[container("head", ports=there)]))
    (head,) = pod(given, "head")["spec"]["containers"]
    assert head["ports"] == [*there, *PORTS[1:]]


def test_containers_of_other_names_are_left_alone() -> None:
    (main,) = pod(job({"ray": []}, task("head")), "head")["spec"]["containers"]
    assert "command" not in main


def test_a_service_leads_to_the_head() -> None:
    given = job({"ray": ["--head=main"]}, task("main"))
    assert service(given, "job-head-svc") == {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "job-head-svc", **MADE_AS},
        "spec": {
            "selector": {**LABELS, "volcano.sh/task-spec": "main"},
            "ports": [
                {
                    "name": port["name"],
                    "port": port["containerPort"],
                    "targetPort": port["containerPort"],
                    "protocol": "TCP",
                }
                for port in PORTS
            ],
        },
    }


def test_svc_comes_with_it() -> None:
    assert "Service/job" in wanted(job({"ray": []}, HEAD))


def test_a_long_name_gives_a_service_that_is_a_label() -> None:
    name = "j" * 60
    assert service(job({"ray": []}, HEAD, name=name), label(f"{name}-head-svc"))
