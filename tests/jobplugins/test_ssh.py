"""ssh."""

from base64 import b64decode, b64encode

import pytest

from app.jobplugins import catalogue, keys
from app.jobplugins.rules.job_tasks import label
from app.jobplugins.rules.problems import PluginError
from app.jobplugins.wanted import Create, Writing
from app.wire.unstructured import Object
from tests.controllers.jobplugins.jobs import MADE_AS, container, job, pod, task, wanted


def secret(of: Object, name: str = "job-ssh") -> Object:
    step = wanted(of)[f"Secret/{name}"].step(None)
    assert isinstance(step, Create)
    return step.item


def content(of: Object) -> dict[str, str]:
    """The data of the Secret."""
    return {name: b64decode(text).decode() for name, text in secret(of)["data"].items()}


def config(*hosts: tuple[str, str], port: int = 22) -> str:
    """A client configuration for these hosts."""
    lines = ["StrictHostKeyChecking no", "UserKnownHostsFile /dev/null"]
    for alias, address in hosts:
        lines += [f"Host {alias}", f"  HostName {address}", f"  Port {port}"]
    return "".join(f"{line}\n" for line in lines)


def test_the_secret_has_keys_and_a_configuration() -> None:
    given = job({"ssh": []}, task("ps", 1), task("worker", 2))
    assert list(wanted(given)) == ["Secret/job-ssh"]
    made = secret(given)
    assert made["metadata"] == {"name": "job-ssh", **MADE_AS}
    assert (made["apiVersion"], made["kind"]) == ("v1", "Secret")
    assert content(given) == {
        "id_rsa": "private rsa\n",
        "id_rsa.pub": "public rsa\n",
        "authorized_keys": "public rsa\n",
        "config": config(
            ("job-ps-0", "job-ps-0.job"),
            ("job-worker-0", "job-worker-0.job"),
            ("job-worker-1", "job-worker-1.job"),
        ),
    }


@pytest.mark.parametrize(
    ("flags", "names", "public", "authorized"),
    [
        (["--ssh-key-type=ed25519"], "id_ed25519", "public ed25519\n", "public ed25519\n"),
        (["--ssh-private-key=p", "--ssh-public-key=q"], "id_rsa", "q", "q"),
        (["--ssh-public-key=q"], "id_rsa", "public rsa\n", "public rsa\nq"),
    ],
)
def test_keys_are_of_the_type_asked_for_or_those_given(
    flags: list[str], names: str, public: str, authorized: str
) -> None:
    made = content(job({"ssh": flags}, task("ps")))
    assert sorted(made) == ["authorized_keys", "config", names, f"{names}.pub"]
    assert (made[f"{names}.pub"], made["authorized_keys"]) == (public, authorized)


def test_a_private_key_alone_gives_its_public_half() -> None:
    pair = keys.generate("ed25519")
    made = content(job({"ssh": [f"--ssh-private-key={pair.private}"]}, task("ps")))
    assert made["id_rsa"] == pair.private
    assert made["id_rsa.pub"] == made["authorized_keys"] == pair.public


def test_a_private_key_that_cannot_be_read_needs_its_public_half() -> None:
    with pytest.raises(PluginError) as caught:
        catalogue.parse(job({"ssh": ["--ssh-private-key=nonsense"]}, task("ps")))
    assert str(caught.value) == (
        "spec.plugins.ssh: --ssh-private-key is not an RSA or Ed25519 private key"
        " without a passphrase; write --ssh-public-key=TEXT too, or neither"
    )


@pytest.mark.parametrize(
    ("given", "hosts"),
    [
        (task("ps", 3, hostname="h"), [("h", "h.job")]),
        (task("ps", 1, subdomain="net"), [("job-ps-0", "job-ps-0.net")]),
        (task("ps", 0), []),
    ],
)
def test_the_configuration_knows_names_of_the_template(
    given: Object, hosts: list[tuple[str, str]]
) -> None:
    assert content(job({"ssh": []}, given))["config"] == config(*hosts)


def test_the_configuration_may_name_another_port() -> None:
    made = content(job({"ssh": ["--ssh-port=2022"]}, task("ps")))
    assert made["config"] == config(("job-ps-0", "job-ps-0.job"), port=2022)


def test_keys_stay_and_the_configuration_follows_the_replicas() -> None:
    stored = secret(job({"ssh": []}, task("ps", 1)))
    stored["data"]["id_rsa"] = "kept"
    grown = config(("job-ps-0", "job-ps-0.job"), ("job-ps-1", "job-ps-1.job"))
    assert wanted(job({"ssh": []}, task("ps", 2)))["Secret/job-ssh"].step(stored) == Writing(
        {"data": {"config": b64encode(grown.encode()).decode()}}
    )
    assert wanted(job({"ssh": []}, task("ps", 1)))["Secret/job-ssh"].step(stored) is None


def test_no_keys_are_made_while_the_secret_exists() -> None:
    def never(key_type: str) -> keys.KeyPair:
        raise AssertionError(f"made {key_type} keys")

    given = job({"ssh": []}, task("ps"))
    stored = secret(given)
    (same,) = catalogue.parse(given, make_keys=never).objects()
    assert same.step(stored) is None


def test_all_containers_see_the_keys() -> None:
    several = task("ps", containers=[container("a")], initContainers=[container("b")])
    spec = pod(job({"ssh": []}, several), "ps")["spec"]
    assert spec["volumes"] == [
        {
            "name": "job-ssh",
            "secret": {
                "secretName": "job-ssh",
                "items": [
                    {"key": "id_rsa", "path": ".ssh/id_rsa"},
                    {"key": "id_rsa.pub", "path": ".ssh/id_rsa.pub"},
                    {"key": "authorized_keys", "path": ".ssh/authorized_keys"},
                    {"key": "config", "path": ".ssh/config"},
                ],
                "defaultMode": 0o600,
            },
        }
    ]
    mount = {"name": "job-ssh", "mountPath": "/root/.ssh", "subPath": ".ssh"}
    assert spec["containers"][0]["volumeMounts"] == [mount]
    assert spec["initContainers"][0]["volumeMounts"] == [mount]


def test_another_user_can_read_keys_elsewhere() -> None:
    given = job({"ssh": ["--ssh-key-file-path=/home/user/.ssh"]}, task("ps"))
    spec = pod(given, "ps")["spec"]
    assert spec["volumes"][0]["secret"]["defaultMode"] == 0o644
    assert spec["containers"][0]["volumeMounts"][0]["mountPath"] == "/home/user/.ssh"


def test_a_mount_of_the_template_stays() -> None:
    mount = {"name": "mine", "mountPath": "/root/.ssh"}
    given = task("ps", containers=[container(volumeMounts=[mount])])
    assert pod(job({"ssh": []}, given), "ps")["spec"]["containers"][0]["volumeMounts"] == [mount]


def test_a_long_name_gives_a_volume_that_is_a_label() -> None:
    name = "j" * 80
    (volume,) = pod(job({"ssh": []}, task("ps"), name=name), "ps")["spec"]["volumes"]
    assert volume["name"] == label(f"{name}-ssh")
    assert volume["secret"]["secretName"] == f"{name}-ssh"
