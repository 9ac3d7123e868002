"""etcd and kube-apiserver, started together; the other programs on demand.

Everything listens on 127.0.0.1, keeps its state in one folder and ends with the `with` block (or
with the process that started it). Authorization is RBAC; the user of `kubeconfig` is a member of
system:masters, all others have to be granted what they do.

There is no kubelet. So nothing renews node Leases or removes the not-ready taint, which is why the
admission plugins and controllers that would act on that are off, and pods never leave Pending
unless a simulated kubelet moves them. Pods need no service account for the same reason.
"""

from __future__ import annotations

import contextlib
import http.client
import ssl
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from app.sandbox.controlplane import certificates, kubeconfigs
from app.sandbox.controlplane.free_ports import free_port
from app.sandbox.controlplane.interrupts import uninterrupted
from app.sandbox.controlplane.processes import Process, stop_all

_CONTROLLERS = (
    "namespace-controller",
    "garbage-collector-controller",
    "pod-garbage-collector-controller",
    "resourcequota-controller",
    "serviceaccount-controller",
    "root-ca-certificate-publisher-controller",
    "clusterrole-aggregation-controller",
    "disruption-controller",
    "validatingadmissionpolicy-status-controller",
    "job-controller",
    "cronjob-controller",
    "replicationcontroller-controller",
    "replicaset-controller",
    "deployment-controller",
    "statefulset-controller",
    "daemonset-controller",
    "ttl-after-finished-controller",
    "resourceclaim-controller",
)
_GRACE_S = 3

P = TypeVar("P", bound=Process)


class Scheduler(Process):
    """A running kube-scheduler; its metrics are at `url`/metrics."""

    url: str


class ControlPlane:
    """etcd and kube-apiserver in a folder, started by `with`; the rest is started on demand."""

    def __init__(
        self,
        folder: Path,
        *,
        programs: Path,
        port: int | None = None,
        priority_and_fairness: bool = True,
        apiserver_flags: Sequence[str] = (),
    ) -> None:
        self.folder = folder
        self._programs = programs
        self._priority_and_fairness = priority_and_fairness
        self._apiserver_flags = tuple(apiserver_flags)
        self._processes: list[Process] = []
        self._etcd_url = f"http://127.0.0.1:{free_port()}"
        self._port = port or free_port()
        self.url = f"https://127.0.0.1:{self._port}"
        for name in ("pki", "logs", "etcd"):
            (folder / name).mkdir(parents=True)
        self.authority = certificates.Authority(folder / "pki")
        self._serving = self.authority.server(
            "apiserver", dns_names=("localhost", "kubernetes.default.svc")
        )
        self._tokens = certificates.write_service_account_key(folder / "pki")
        self.kubeconfig = str(self.kubeconfig_for("admin", groups=("system:masters",)))

    # Life ---------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            stack.callback(self._stop_processes)
            self.etcd = self._start_etcd()
            self.start_apiserver()
            stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop_processes()

    @property
    def processes(self) -> tuple[Process, ...]:
        """All processes started so far, the ended ones too."""
        return tuple(self._processes)

    def log(self, name: str) -> Path:
        """Return the log file of a program (kube-scheduler's is named after the scheduler)."""
        return self.folder / "logs" / f"{name}.log"

    def _start(self, program: str, *flags: str) -> Process:
        return self._launch(Process, program, *flags, name=program)

    def _launch(self, kind: type[P], program: str, *flags: str, name: str) -> P:
        argv = [str(self._programs / program), *flags]
        with uninterrupted():  # else a child that has just been made would not be ended
            process = kind(argv, log=self.log(name), name=name)
            self._processes.append(process)
        return process

    def _stop_processes(self) -> None:
        for process in self._processes:
            process.resume()
        # etcd goes last: the others would wait for it if it went away before them.
        stop_all(self._processes[:0:-1], grace_s=_GRACE_S)
        stop_all(self._processes[:1], grace_s=_GRACE_S)

    # etcd and the API server --------------------------------------------------------------------

    def _start_etcd(self) -> Process:
        peer_url = f"http://127.0.0.1:{free_port()}"
        etcd = self._start(
            "etcd",
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={self._etcd_url}",
            f"--advertise-client-urls={self._etcd_url}",
            f"--listen-peer-urls={peer_url}",
            f"--initial-advertise-peer-urls={peer_url}",
            f"--initial-cluster=default={peer_url}",
            "--unsafe-no-fsync",
            "--quota-backend-bytes=8589934592",
            "--log-level=warn",
        )
        return etcd.wait_ready(lambda: _answers(f"{self._etcd_url}/health"))

    def start_apiserver(self) -> Process:
        """Start the API server (again) on its port and wait until it is ready."""
        # Ready is asked over an unauthenticated connection, which RBAC lets see /readyz.
        self.apiserver = self._start("kube-apiserver", *self._apiserver_arguments())
        trust = ssl.create_default_context(cafile=self.authority.certificate)
        return self.apiserver.wait_ready(
            lambda: _answers(f"{self.url}/readyz", trust=trust), timeout_s=60
        )

    def stop_apiserver(self, *, kill: bool = False) -> None:
        """Take the API server away, politely or by SIGKILL; etcd keeps all state."""
        if kill:
            self.apiserver.kill()
        else:
            self.apiserver.stop(grace_s=_GRACE_S)

    def _apiserver_arguments(self) -> tuple[str, ...]:
        pki = self.folder / "pki"
        fairness = str(self._priority_and_fairness).lower()
        return (
            f"--etcd-servers={self._etcd_url}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._port}",
            "--endpoint-reconciler-type=none",
            f"--cert-dir={pki}",
            f"--tls-cert-file={self._serving.certificate}",
            f"--tls-private-key-file={self._serving.key}",
            f"--client-ca-file={self.authority.certificate}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self._tokens.certificate}",
            f"--service-account-signing-key-file={self._tokens.key}",
            "--service-cluster-ip-range=10.0.0.0/16",
            "--authorization-mode=RBAC",
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
            f"--enable-priority-and-fairness={fairness}",
            *self._apiserver_flags,
        )

    # Other programs -----------------------------------------------------------------------------

    def start_controllers(self, *, extra_flags: Sequence[str] = ()) -> Process:
        """Start kube-controller-manager with the controllers that need no kubelet."""
        port = free_port()
        manager = self._start(
            "kube-controller-manager",
            f"--kubeconfig={self.kubeconfig}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--cert-dir={self.folder / 'pki' / 'controllers'}",
            f"--controllers={','.join(_CONTROLLERS)}",
            f"--root-ca-file={self.authority.certificate}",
            "--leader-elect=false",
            "--kube-api-qps=200",
            "--kube-api-burst=400",
            *extra_flags,
        )
        return manager.wait_ready(lambda: _answers(f"https://127.0.0.1:{port}/healthz"))

    def start_scheduler(
        self,
        config: Path | None = None,
        *,
        name: str = "kube-scheduler",
        extra_flags: Sequence[str] = (),
    ) -> Scheduler:
        """Start the stock kube-scheduler and wait until its caches are synced.

        Without a configuration file it runs with its defaults, as admin. With one, the file names
        the kubeconfig and decides about leader election.
        """
        port = free_port()
        source = f"--config={config}" if config else f"--kubeconfig={self.kubeconfig}"
        election = () if config else ("--leader-elect=false",)
        scheduler = self._launch(
            Scheduler,
            "kube-scheduler",
            source,
            *election,
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--cert-dir={self.folder / 'pki' / name}",
            "--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics",
            *extra_flags,
            name=name,
        )
        scheduler.url = f"https://127.0.0.1:{port}"
        scheduler.wait_ready(lambda: _answers(f"{scheduler.url}/readyz"))
        return scheduler

    # Users --------------------------------------------------------------------------------------

    def kubeconfig_for(self, user: str, *, groups: tuple[str, ...] = ()) -> Path:
        """Write a kubeconfig of a certificate user; RBAC decides what that user may do."""
        file_name = user.replace(":", "-").replace("/", "-")
        return kubeconfigs.write(
            self.folder / f"{file_name}.kubeconfig",
            server=self.url,
            authority=self.authority.certificate,
            client=self.authority.client(file_name, user=user, groups=groups),
        )


def _trusting_anybody() -> ssl.SSLContext:
    """For the programs' own health ports: they make those certificates themselves, at start."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _answers(url: str, *, trust: ssl.SSLContext | None = None) -> bool:
    """Whether a GET succeeds, past any proxy."""
    asking = urllib.request.build_opener(
        urllib.request.ProxyHandler({}),
        urllib.request.HTTPSHandler(context=trust or _trusting_anybody()),
    )
    try:
        with asking.open(url, timeout=2) as answer:
            return bool(answer.status == 200)
    except (OSError, http.client.HTTPException):
        return False
