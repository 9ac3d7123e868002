"""`pumice scheduler-config`: a complete KubeSchedulerConfiguration for the stock kube-scheduler.

It is one of the files of `scheduler-config/` with the few values replaced that depend on the place:
where the extender answers, the scheduler's name, which Lease it holds. `render` is that replacement
alone, text from values; all other settings and their reasons stand in the files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlsplit

import typer
import yaml

from app.cli.checked import checked
from app.cli.processes import Switch
from app.cli.truths import switch
from app.kube.web_url import base_of
from app.settings.process import label_name, object_name
from app.wire import manifests

_OUR_PROFILE = "volcano"
_OPEN = (
    "note: without https every process on the host's network of that machine can have pods bound;"
    " forms B and C show certificates by default, docs/install.md says how to make them"
)


@dataclass(frozen=True, slots=True)
class Lease:
    """Leader election of the kube-scheduler; `None` leaves what the form says."""

    elect: bool | None = None
    name: str | None = None
    namespace: str | None = None


def render(
    *,
    extender_url: str,
    form: manifests.Form = "a",
    kubeconfig: str | None = None,
    scheduler_name: str = _OUR_PROFILE,
    lease: Lease | None = None,
    tls: manifests.TlsConfig | None = None,
) -> str:
    """Return the configuration of a form as YAML; raise ValueError for values that contradict it.

    With a kubeconfig the scheduler runs outside the cluster, by hand and alone: it then elects no
    leader unless told to. The flag --leader-elect of kube-scheduler, which kubeadm sets, goes
    before that.
    """
    config = manifests.scheduler_config(form)
    _set_extender(config, url=extender_url, tls=tls)
    _set_scheduler_name(config, scheduler_name)
    if kubeconfig is not None:
        config["clientConnection"]["kubeconfig"] = kubeconfig
    _set_lease(config, lease or Lease(), by_default=kubeconfig is None)
    return yaml.safe_dump(config, sort_keys=False)


def _set_extender(
    config: manifests.SchedulerConfiguration, *, url: str, tls: manifests.TlsConfig | None
) -> None:
    prefix = base_of(url)  # behind which kube-scheduler puts the verb
    if tls and urlsplit(url).scheme != "https":
        raise ValueError(f"certificates are given, but {url!r} is no https URL")
    if tls and ("certFile" in tls) != ("keyFile" in tls):
        raise ValueError("a client certificate and its key go together")
    for extender in config["extenders"]:
        extender["urlPrefix"] = prefix
        if urlsplit(url).scheme != "https":
            extender.pop("tlsConfig", None)
            extender.pop("enableHTTPS", None)
        if tls:
            extender["tlsConfig"] = tls
            extender.pop("enableHTTPS", None)
        # With enableHTTPS but no authority the scheduler would trust any server; else it trusts
        # the authorities of its image.
        if tls and "caFile" in tls:
            extender["enableHTTPS"] = True


def _set_scheduler_name(config: manifests.SchedulerConfiguration, name: str) -> None:
    if not name:
        raise ValueError("the scheduler name is empty")
    for profile in config["profiles"]:
        if profile["schedulerName"] == _OUR_PROFILE:
            profile["schedulerName"] = name
        elif profile["schedulerName"] == name:
            raise ValueError(
                f"this form has a profile {name!r} already, for pods that are not ours"
            )


def _set_lease(config: manifests.SchedulerConfiguration, lease: Lease, *, by_default: bool) -> None:
    election = config["leaderElection"]
    election["leaderElect"] = by_default if lease.elect is None else lease.elect
    if lease.name is not None:
        election["resourceName"] = lease.name
    if lease.namespace is not None:
        election["resourceNamespace"] = lease.namespace


def _tls(*, ca: str | None, certificate: str | None, key: str | None) -> manifests.TlsConfig | None:
    tls = manifests.TlsConfig()
    if ca is not None:
        tls["caFile"] = ca
    if certificate is not None:
        tls["certFile"] = certificate
    if key is not None:
        tls["keyFile"] = key
    return tls or None


def scheduler_config(
    *,
    extender_url: Annotated[
        str,
        typer.Option(
            envvar="PUMICE_EXTENDER_URL",
            callback=checked(base_of),
            help="Where the extender answers, as seen from kube-scheduler.",
        ),
    ],
    form: Annotated[
        manifests.Form,
        typer.Option(
            envvar="PUMICE_FORM",
            help="a: a scheduler of our own. b: shared, only pods that ask for pumice.sh/gang are "
            "sent. c: shared, every pod is sent.",
        ),
    ] = "a",
    kubeconfig: Annotated[
        str | None,
        typer.Option(
            envvar="PUMICE_KUBECONFIG",
            help="Kubeconfig of kube-scheduler; empty: it uses its service account. "
            "(default: in a empty, in b and c /etc/kubernetes/scheduler.conf)",
        ),
    ] = None,
    scheduler_name: Annotated[
        str, typer.Option(envvar="PUMICE_SCHEDULER_NAME", help="schedulerName of our pods.")
    ] = _OUR_PROFILE,
    leader_elect: Annotated[
        Switch | None,
        typer.Option(
            envvar="PUMICE_LEADER_ELECT",
            parser=switch,
            help="Elect a leader. (default: true, with --kubeconfig false)",
        ),
    ] = None,
    leader_elect_resource_name: Annotated[
        str | None,
        typer.Option(
            envvar="PUMICE_LEADER_ELECT_RESOURCE_NAME",
            callback=checked(object_name),
            help="Lease of kube-scheduler. (default: pumice-scheduler, in b and c kube-scheduler)",
        ),
    ] = None,
    leader_elect_resource_namespace: Annotated[
        str | None,
        typer.Option(
            envvar="PUMICE_LEADER_ELECT_RESOURCE_NAMESPACE",
            callback=checked(label_name),
            help="Namespace of the Lease. (default: pumice-system, in b and c kube-system)",
        ),
    ] = None,
    extender_ca_file: Annotated[
        str | None,
        typer.Option(
            envvar="PUMICE_EXTENDER_CA_FILE",
            help="Authority that signed the extender's certificate.",
        ),
    ] = None,
    extender_cert_file: Annotated[
        str | None,
        typer.Option(
            envvar="PUMICE_EXTENDER_CERT_FILE",
            help="Certificate that kube-scheduler shows to the extender.",
        ),
    ] = None,
    extender_key_file: Annotated[
        str | None,
        typer.Option(envvar="PUMICE_EXTENDER_KEY_FILE", help="Key of that certificate."),
    ] = None,
) -> None:
    """Print a KubeSchedulerConfiguration that sends pods to the extender."""
    try:
        text = render(
            extender_url=extender_url,
            form=form,
            kubeconfig=kubeconfig,
            scheduler_name=scheduler_name,
            lease=Lease(
                elect=None if leader_elect is None else leader_elect == "true",
                name=leader_elect_resource_name,
                namespace=leader_elect_resource_namespace,
            ),
            tls=_tls(ca=extender_ca_file, certificate=extender_cert_file, key=extender_key_file),
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    if form != "a" and urlsplit(extender_url).scheme != "https":
        typer.echo(_OPEN, err=True)
    typer.echo(text, nl=False)
