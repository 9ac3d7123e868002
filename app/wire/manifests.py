"""The YAML that ships with Pumice, as text and as documents.

The files of `manifests/` and `scheduler-config/` are the only source: the command line prints them,
the sandbox loads its kinds from them. A wheel carries them inside the package, under `data/`; a
checkout has them at its root.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, Literal, NotRequired, TypedDict

import yaml

Form = Literal["a", "b", "c"]

_PACKAGE = Path(__file__).resolve().parent.parent
_LOADER: Final = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
"""What reads our own files: all wheels of the package have the one that is ten times as fast."""


class LeaderElection(TypedDict):
    """Which Lease the scheduler's replicas compete for."""

    leaderElect: bool
    resourceName: str
    resourceNamespace: str


class ClientConnection(TypedDict):
    """How the scheduler reaches the API server; in-cluster without a kubeconfig."""

    qps: float
    burst: int
    kubeconfig: NotRequired[str]


class Profile(TypedDict):
    """One scheduler name, the only part of a profile that we change."""

    schedulerName: str


class TlsConfig(TypedDict, total=False):
    """Files with which the scheduler trusts the extender, and its own certificate and key."""

    caFile: str
    certFile: str
    keyFile: str


class Extender(TypedDict):
    """The part of an extender's entry that depends on where Pumice runs, and its time-out."""

    urlPrefix: str
    httpTimeout: str
    enableHTTPS: NotRequired[bool]
    tlsConfig: NotRequired[TlsConfig]


class SchedulerConfiguration(TypedDict):
    """The part of a KubeSchedulerConfiguration that depends on where it is used."""

    leaderElection: LeaderElection
    clientConnection: ClientConnection
    profiles: list[Profile]
    extenders: list[Extender]


def _folder(name: str) -> Path:
    """Return a folder of shipped files, the packaged one first."""
    for parent in (_PACKAGE / "data", _PACKAGE.parent):
        if (parent / name).is_dir():
            return parent / name
    raise FileNotFoundError(f"{name} is neither in {_PACKAGE / 'data'} nor in {_PACKAGE.parent}")


def _crd_files() -> list[Path]:
    return sorted((_folder("manifests") / "crds").glob("*.yaml"))


def crd_stream() -> str:
    """Return all CustomResourceDefinitions as one YAML stream, comments included."""
    return "".join(f"---\n{file.read_text(encoding='utf-8')}" for file in _crd_files())


def crd_documents() -> list[dict[str, Any]]:
    """Return all CustomResourceDefinitions, parsed, in the order of their file names."""
    return list(yaml.load_all(crd_stream(), _LOADER))


def policy_documents(form: Form) -> list[dict[str, Any]]:
    """Return the admission policies of a form: the gate, and in form B also the mark."""
    names = ("gate-pods", "mark-pods") if form == "b" else ("gate-pods",)
    folder = _folder("manifests") / "policy"
    texts = [(folder / f"{name}.yaml").read_text(encoding="utf-8") for name in names]
    return [document for text in texts for document in yaml.load_all(text, _LOADER)]


def scheduler_config_text(form: Form) -> str:
    """Return the KubeSchedulerConfiguration of form A, B or C, comments included."""
    return (_folder("scheduler-config") / f"form-{form}.yaml").read_text(encoding="utf-8")


def scheduler_config(form: Form) -> SchedulerConfiguration:
    """Return the KubeSchedulerConfiguration of a form, parsed anew at each call."""
    config: SchedulerConfiguration = yaml.load(scheduler_config_text(form), _LOADER)
    return config
