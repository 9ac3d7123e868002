"""The arguments of each plugin, with Volcano's flags and defaults (volcano.md §5.2).

One frozen value per plugin; the flag of a field is declared with it. Beyond Volcano are ssh's
``--ssh-key-type``, the flags that come with pytorch's ``--elastic``, and jax.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TypeVar

from app.jobplugins.rules.flags import (
    COUNT,
    MOUNT_PATH,
    NAME,
    PORT,
    SWITCH,
    TEXT,
    Fault,
    FlagType,
    one_of,
)

T = TypeVar("T", bool, int, str)


def _flag(name: str, default: T, kind: FlagType) -> T:
    return field(default=default, metadata={"flag": name, "kind": kind})


@dataclass(frozen=True, slots=True)
class Roles:
    """Tasks by the flag that names them, and what happens if the job has none of them."""

    tasks: Mapping[str, str]
    otherwise: str


@dataclass(frozen=True, slots=True)
class Arguments:
    """What every plugin's arguments have in common."""

    def faults(self) -> tuple[Fault, ...]:
        """What is wrong with flags that are each right."""
        return ()

    @property
    def required(self) -> tuple[tuple[str, str], ...]:
        """Flags that name a task that the job must have, and the names."""
        return ()

    @property
    def roles(self) -> Roles | None:
        """Tasks of which the job should have one."""
        return None


@dataclass(frozen=True, slots=True)
class Env(Arguments):
    """The index of a pod in its task, as variables."""


@dataclass(frozen=True, slots=True)
class Svc(Arguments):
    """Names for the pods in DNS, and lists of them."""

    publish_not_ready_addresses: bool = _flag("publish-not-ready-addresses", False, SWITCH)
    disable_network_policy: bool = _flag("disable-network-policy", False, SWITCH)
    inject_hosts_env: bool = _flag("inject-hosts-env", True, SWITCH)


@dataclass(frozen=True, slots=True)
class Ssh(Arguments):
    """Keys with which the pods of a job reach each other."""

    key_file_path: str = _flag("ssh-key-file-path", "/root/.ssh", MOUNT_PATH)
    private_key: str = _flag("ssh-private-key", "", TEXT)
    public_key: str = _flag("ssh-public-key", "", TEXT)
    port: int = _flag("ssh-port", 22, PORT)
    key_type: str = _flag("ssh-key-type", "rsa", one_of("rsa", "ed25519"))


@dataclass(frozen=True, slots=True)
class Tensorflow(Arguments):
    """``TF_CONFIG``."""

    ps: str = _flag("ps", "ps", NAME)
    worker: str = _flag("worker", "worker", NAME)
    chief: str = _flag("chief", "chief", NAME)
    evaluator: str = _flag("evaluator", "evaluator", NAME)
    port: int = _flag("port", 2222, PORT)

    @property
    def roles(self) -> Roles:
        """The tasks that ``TF_CONFIG`` lists."""
        tasks = {"ps": self.ps, "worker": self.worker}
        tasks |= {"chief": self.chief, "evaluator": self.evaluator}
        return Roles(tasks, "TF_CONFIG lists no hosts")


_RENDEZVOUS = (
    "min_nodes",
    "max_nodes",
    "nproc_per_node",
    "max_restarts",
    "rdzv_backend",
    "rdzv_endpoint",
)


@dataclass(frozen=True, slots=True)
class Pytorch(Arguments):
    """``MASTER_ADDR``, ``RANK`` and so on, or with ``elastic`` what torchrun reads.

    ``min_nodes`` and ``max_nodes`` 0: as many as the job has at least and at most.
    """

    master: str = _flag("master", "master", NAME)
    worker: str = _flag("worker", "worker", NAME)
    port: int = _flag("port", 23456, PORT)
    wait_master_enabled: bool = _flag("wait-master-enabled", False, SWITCH)
    wait_master_timeout: int = _flag("wait-master-timeout", 300, COUNT)
    wait_master_image: str = _flag("wait-master-image", "busybox:1.36.1", NAME)
    elastic: bool = _flag("elastic", False, SWITCH)
    min_nodes: int = _flag("min-nodes", 0, COUNT)
    max_nodes: int = _flag("max-nodes", 0, COUNT)
    nproc_per_node: str = _flag("nproc-per-node", "", NAME)
    max_restarts: int = _flag("max-restarts", 0, COUNT)
    rdzv_backend: str = _flag("rdzv-backend", "c10d", one_of("c10d", "etcd-v2", "etcd"))
    rdzv_endpoint: str = _flag("rdzv-endpoint", "", NAME)

    def faults(self) -> tuple[Fault, ...]:
        """Rendezvous flags mean nothing without ``--elastic``."""
        found: list[Fault] = []
        if not self.elastic:
            found += [
                Fault(f"--{flag} has no effect without --elastic", "add --elastic or remove it")
                for flag in self._rendezvous_flags()
            ]
        if self.max_nodes and self.min_nodes > self.max_nodes:
            what = f"--min-nodes={self.min_nodes} is above --max-nodes={self.max_nodes}"
            found.append(Fault(what, "lower the one or raise the other"))
        if self.rdzv_backend != "c10d" and not self.rdzv_endpoint:
            what = f"--rdzv-backend={self.rdzv_backend} needs to know its server"
            found.append(Fault(what, "write --rdzv-endpoint=HOST:PORT"))
        return tuple(found)

    def _rendezvous_flags(self) -> list[str]:
        plain = Pytorch()
        return [
            name.replace("_", "-")
            for name in _RENDEZVOUS
            if getattr(self, name) != getattr(plain, name)
        ]

    @property
    def roles(self) -> Roles:
        """Only a rendezvous can do without a master."""
        if self.elastic:
            tasks = {"master": self.master, "worker": self.worker}
            return Roles(tasks, "no pod is told of a rendezvous")
        return Roles({"master": self.master}, "no pod gets MASTER_ADDR or RANK")


@dataclass(frozen=True, slots=True)
class Mpi(Arguments):
    """``MPI_HOST`` for the master, a port for all."""

    master: str = _flag("master", "master", NAME)
    worker: str = _flag("worker", "worker", NAME)
    port: int = _flag("port", 22, PORT)

    @property
    def required(self) -> tuple[tuple[str, str], ...]:
        """The master task, which must start the program."""
        return (("master", self.master),)

    @property
    def roles(self) -> Roles:
        """Where the master starts processes."""
        return Roles({"worker": self.worker}, "MPI_HOST is not set")


@dataclass(frozen=True, slots=True)
class Ray(Arguments):
    """A Ray cluster of a head and workers."""

    head: str = _flag("head", "head", NAME)
    head_container: str = _flag("headContainer", "head", NAME)
    worker: str = _flag("worker", "worker", NAME)
    worker_container: str = _flag("workerContainer", "worker", NAME)
    port: int = _flag("port", 6379, PORT)
    dashboard_port: int = _flag("dashboardPort", 8265, PORT)
    client_port: int = _flag("clientPort", 10001, PORT)

    @property
    def required(self) -> tuple[tuple[str, str], ...]:
        """Workers join the head."""
        return (("head", self.head),)

    def faults(self) -> tuple[Fault, ...]:
        """The head listens on three ports."""
        if len({self.port, self.dashboard_port, self.client_port}) == 3:
            return ()
        what = "--port, --dashboardPort and --clientPort are not three ports"
        return (Fault(what, "give each its own"),)


@dataclass(frozen=True, slots=True)
class Jax(Arguments):
    """Coordinator, process count and process id for ``jax.distributed``."""

    coordinator: str = _flag("coordinator", "coordinator", NAME)
    worker: str = _flag("worker", "worker", NAME)
    port: int = _flag("port", 1234, PORT)

    @property
    def roles(self) -> Roles:
        """The processes."""
        return Roles(
            {"coordinator": self.coordinator, "worker": self.worker},
            "no pod is told of a coordinator",
        )


@dataclass(frozen=True, slots=True)
class Hcclrank(Arguments):
    """The rank that Ascend's communication library reads from an annotation."""

    master: str = _flag("master", "master", NAME)
    worker: str = _flag("worker", "worker", NAME)

    @property
    def roles(self) -> Roles:
        """The tasks whose ranks are counted."""
        return Roles({"master": self.master, "worker": self.worker}, "no rank is computed")


def kinds(plugin: type[Arguments]) -> dict[str, FlagType]:
    """The flags of ``plugin`` in the order they are told to users."""
    return {entry.metadata["flag"]: entry.metadata["kind"] for entry in fields(plugin)}


def field_names(plugin: type[Arguments]) -> dict[str, str]:
    """Flag to field."""
    return {entry.metadata["flag"]: entry.name for entry in fields(plugin)}
