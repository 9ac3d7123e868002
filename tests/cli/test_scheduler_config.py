"""`pumice scheduler-config`: the shipped forms with a few values replaced, nothing else changed.

Covered: each replacement, its default per form, values that contradict the form, the command's
options and their environment variables.
"""

from __future__ import annotations

from typing import Any

import pytest
import typer
import yaml
from typer.testing import CliRunner, Result

from app.cli.scheduler_config import Lease, render, scheduler_config
from app.wire import manifests

URL = "http://127.0.0.1:9000"
SECURED = "https://127.0.0.1:9000"
FORMS: tuple[manifests.Form, ...] = ("a", "b", "c")


def rendered(**options: Any) -> Any:
    return yaml.safe_load(render(**{"extender_url": URL, **options}))


def invoke(*arguments: str, env: dict[str, str] | None = None) -> Result:
    app = typer.Typer()
    app.command("scheduler-config")(scheduler_config)
    # Wide enough that an error stays on one line.
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "200", **(env or {})})


@pytest.mark.parametrize("form", FORMS)
def test_only_the_url_differs_from_the_file_by_default(form: manifests.Form) -> None:
    expected: Any = manifests.scheduler_config(form)
    url = SECURED if form != "a" else URL
    expected["extenders"][0]["urlPrefix"] = url

    assert rendered(form=form, extender_url=url) == expected


@pytest.mark.parametrize("form", FORMS[1:])
def test_a_shared_scheduler_shows_a_certificate_and_asks_for_one(form: manifests.Form) -> None:
    (extender,) = manifests.scheduler_config(form)["extenders"]

    assert extender["urlPrefix"].startswith("https://")
    assert extender["enableHTTPS"] is True
    assert set(extender["tlsConfig"]) == {"caFile", "certFile", "keyFile"}


@pytest.mark.parametrize("form", FORMS)
def test_a_plain_url_takes_the_certificates_away_and_is_told_of(form: manifests.Form) -> None:
    (extender,) = rendered(form=form)["extenders"]
    told = invoke(f"--extender-url={URL}", f"--form={form}")

    assert "tlsConfig" not in extender
    assert "enableHTTPS" not in extender
    assert ("can have pods bound" in told.stderr) is (form != "a")


@pytest.mark.parametrize("form", FORMS)
def test_every_form_binds_through_one_extender_that_gangs_cannot_do_without(
    form: manifests.Form,
) -> None:
    (extender,) = rendered(form=form)["extenders"]

    assert extender["bindVerb"] == "bind"
    assert extender["ignorable"] is False
    assert extender["nodeCacheCapable"] is True


@pytest.mark.parametrize("form", FORMS)
def test_our_pods_are_offered_a_tenth_of_the_nodes_and_those_of_others_as_before(
    form: manifests.Form,
) -> None:
    profiles = rendered(form=form)["profiles"]

    offered = {each["schedulerName"]: each.get("percentageOfNodesToScore") for each in profiles}
    assert offered.pop("volcano") == 10
    assert set(offered.values()) <= {None}


def test_a_trailing_slash_of_the_url_is_dropped() -> None:
    assert rendered(extender_url=f"{URL}/v1/")["extenders"][0]["urlPrefix"] == f"{URL}/v1"


@pytest.mark.parametrize("url", ["", "127.0.0.1:9000", "ftp://127.0.0.1", "http://"])
def test_what_is_no_http_url_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="is no http or https URL"):
        render(extender_url=url)


def test_with_a_kubeconfig_no_leader_is_elected() -> None:
    config = rendered(kubeconfig="/etc/kubeconfig")

    assert config["clientConnection"]["kubeconfig"] == "/etc/kubeconfig"
    assert config["leaderElection"]["leaderElect"] is False


@pytest.mark.parametrize("form", ["b", "c"])
def test_a_shared_scheduler_finds_the_api_server_as_the_static_pod_of_kubeadm_does(
    form: manifests.Form,
) -> None:
    connection = rendered(form=form)["clientConnection"]

    assert connection["kubeconfig"] == "/etc/kubernetes/scheduler.conf"
    assert rendered(form=form, kubeconfig="")["clientConnection"]["kubeconfig"] == ""


def test_without_a_kubeconfig_a_leader_is_elected_under_our_own_lease() -> None:
    config = rendered()

    assert "kubeconfig" not in config["clientConnection"]
    assert config["leaderElection"] == {
        "leaderElect": True,
        "resourceName": "pumice-scheduler",
        "resourceNamespace": "pumice-system",
    }


def test_what_is_said_about_the_lease_goes_before_the_default() -> None:
    config = rendered(kubeconfig="/k", lease=Lease(elect=True, name="two", namespace="batch"))

    assert config["leaderElection"] == {
        "leaderElect": True,
        "resourceName": "two",
        "resourceNamespace": "batch",
    }


@pytest.mark.parametrize("form", FORMS)
def test_another_scheduler_name_renames_our_profile_only(form: manifests.Form) -> None:
    before = [profile["schedulerName"] for profile in rendered(form=form)["profiles"]]
    after = [
        profile["schedulerName"]
        for profile in rendered(form=form, scheduler_name="research")["profiles"]
    ]

    assert after == ["research" if name == "volcano" else name for name in before]


def test_a_shared_scheduler_cannot_have_two_profiles_of_one_name() -> None:
    with pytest.raises(ValueError, match="has a profile 'default-scheduler' already"):
        render(extender_url=URL, form="b", scheduler_name="default-scheduler")


def test_a_scheduler_of_our_own_may_have_any_name_but_none() -> None:
    assert rendered(scheduler_name="default-scheduler")["profiles"][0]["schedulerName"] == (
        "default-scheduler"
    )
    with pytest.raises(ValueError, match="is empty"):
        render(extender_url=URL, scheduler_name="")


def test_certificates_make_the_scheduler_verify_and_show_itself() -> None:
    tls = manifests.TlsConfig(caFile="/ca.crt", certFile="/tls.crt", keyFile="/tls.key")
    (extender,) = rendered(extender_url="https://127.0.0.1:9000", tls=tls)["extenders"]

    assert extender["enableHTTPS"] is True
    assert extender["tlsConfig"] == tls


def test_https_without_an_authority_does_not_turn_verification_off() -> None:
    # kube-scheduler trusts anybody when enableHTTPS is set and no authority is given.
    tls = manifests.TlsConfig(certFile="/tls.crt", keyFile="/tls.key")
    (extender,) = rendered(extender_url="https://127.0.0.1:9000", tls=tls)["extenders"]

    assert "enableHTTPS" not in extender


@pytest.mark.parametrize(
    ("url", "tls", "complaint"),
    [
        ("http://127.0.0.1", manifests.TlsConfig(caFile="/ca.crt"), "is no https URL"),
        ("https://127.0.0.1", manifests.TlsConfig(certFile="/tls.crt"), "go together"),
        ("https://127.0.0.1", manifests.TlsConfig(keyFile="/tls.key"), "go together"),
    ],
    ids=["authority over http", "certificate without key", "key without certificate"],
)
def test_certificates_that_make_no_sense_are_refused(
    url: str, tls: manifests.TlsConfig, complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        render(extender_url=url, tls=tls)


def test_the_command_prints_what_is_rendered() -> None:
    result = invoke(
        "--extender-url=https://127.0.0.1:9000",
        "--form=b",
        "--kubeconfig=/k",
        "--scheduler-name=research",
        "--leader-elect=true",
        "--leader-elect-resource-name=two",
        "--leader-elect-resource-namespace=batch",
        "--extender-ca-file=/ca.crt",
        "--extender-cert-file=/tls.crt",
        "--extender-key-file=/tls.key",
    )

    assert result.exit_code == 0
    assert result.stdout == render(
        extender_url="https://127.0.0.1:9000",
        form="b",
        kubeconfig="/k",
        scheduler_name="research",
        lease=Lease(elect=True, name="two", namespace="batch"),
        tls=manifests.TlsConfig(caFile="/ca.crt", certFile="/tls.crt", keyFile="/tls.key"),
    )


def test_every_option_has_an_environment_variable() -> None:
    result = invoke(
        env={
            "PUMICE_EXTENDER_URL": "https://127.0.0.1:9000",
            "PUMICE_FORM": "c",
            "PUMICE_KUBECONFIG": "/k",
            "PUMICE_SCHEDULER_NAME": "research",
            "PUMICE_LEADER_ELECT": "False",
            "PUMICE_LEADER_ELECT_RESOURCE_NAME": "two",
            "PUMICE_LEADER_ELECT_RESOURCE_NAMESPACE": "batch",
            "PUMICE_EXTENDER_CA_FILE": "/ca.crt",
            "PUMICE_EXTENDER_CERT_FILE": "/tls.crt",
            "PUMICE_EXTENDER_KEY_FILE": "/tls.key",
        }
    )

    assert result.exit_code == 0
    assert result.stdout == render(
        extender_url="https://127.0.0.1:9000",
        form="c",
        kubeconfig="/k",
        scheduler_name="research",
        lease=Lease(elect=False, name="two", namespace="batch"),
        tls=manifests.TlsConfig(caFile="/ca.crt", certFile="/tls.crt", keyFile="/tls.key"),
    )


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "extender-url"),
        (
            ["--extender-url=nowhere"],
            "'--extender-url' (env var: 'PUMICE_EXTENDER_URL'): 'nowhere' is no http or https URL, "
            "such as http://host:port",
        ),
        (["--extender-url="], "'' is no http or https URL"),
        (["--extender-url=http:// "], "is no http or https URL"),
        (["--extender-url=http://127.0.0.1:notaport"], "is no http or https URL"),
        (["--extender-url=http://127.0.0.1:99999"], "is no http or https URL"),
        (["--extender-url=http://127.0.0.1:1/?a=b"], "has a query or a fragment"),
        (["--extender-url=http://127.0.0.1:1/#a"], "has a query or a fragment"),
        ([f"--extender-url={URL}", "--form=d"], "--form"),
        (
            [f"--extender-url={URL}", "--leader-elect-resource-name="],
            "'--leader-elect-resource-name' (env var: 'PUMICE_LEADER_ELECT_RESOURCE_NAME'): "
            "'' is no name",
        ),
        (
            [f"--extender-url={URL}", "--leader-elect-resource-namespace=a.b"],
            "'a.b' is no name",
        ),
        ([f"--extender-url={URL}", "--leader-elect=perhaps"], "--leader-elect"),
    ],
    ids=[
        "no url",
        "bad url",
        "empty url",
        "blank host",
        "bad port",
        "port out of range",
        "query",
        "fragment",
        "unknown form",
        "empty name of the Lease",
        "no namespace",
        "neither true nor false",
    ],
)
def test_a_wrong_call_is_a_usage_error(arguments: list[str], complaint: str) -> None:
    result = invoke(*arguments)

    assert result.exit_code == 2
    assert complaint in result.output
    assert not result.stdout
