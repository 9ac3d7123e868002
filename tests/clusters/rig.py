"""One extender and one stock kube-scheduler on the session's control plane, as installed.

Both run with the rights of their service accounts in `manifests/install.yaml`, never as admin.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import yaml

from tests.clusters import pumice
from tests.clusters.client import ApiClient
from tests.clusters.conf_file import ConfFile
from tests.clusters.controlplane import ControlPlane, Scheduler
from tests.clusters.pumice import Extender

NAMESPACE = "pumice-system"

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """How the two programs of a rig are started."""

    form: str = "a"
    flags: Sequence[str] = ()
    conf: Path | None = None
    env: Mapping[str, str] | None = None
    kubeconfig: Path | None = None
    """Of the extender; its service account's by default."""
    leader_elect: bool = False
    extender_name: str = "extender"
    scheduler_name: str = "volcano-scheduler"
    scheduler_options: Sequence[str] = ()
    """Further options of `pumice scheduler-config`."""
    http_timeout: str | None = None
    """Replaces httpTimeout in the scheduler's configuration."""


@dataclass(slots=True, eq=False)
class Rig:
    """The extender and its scheduler; both are started by `with` and can be replaced in between."""

    controlplane: ControlPlane
    setting: Setting = field(default_factory=Setting)
    kind: Literal["sandbox", "real"] = "real"
    extender: Extender = field(init=False)
    scheduler: Scheduler = field(init=False)

    @property
    def api(self) -> ApiClient:
        return self.controlplane.api

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start_extender(self, *, port: int | None = None, ready: bool = True) -> None:
        """Start an extender; on the `port` of a former one the scheduler finds it."""
        given = self.setting
        self.extender = pumice.start_extender(
            self.controlplane,
            port=port,
            kubeconfig=given.kubeconfig or account(self.controlplane, "pumice-extender"),
            conf=given.conf,
            flags=(*given.flags, f"--bind-foreign-pods={'true' if given.form == 'c' else 'false'}"),
            env=given.env,
            name=given.extender_name,
            leader_elect=given.leader_elect,
            ready=ready,
        )

    def restart_extender(self) -> None:
        """Start another one where the last one was, which has ended."""
        self.start_extender(port=int(self.extender.url.rpartition(":")[2]))

    def start_scheduler(self) -> None:
        """Start a kube-scheduler that calls the extender."""
        given = self.setting
        config = pumice.scheduler_config(
            self.controlplane,
            self.extender.url + "/v1",
            form=given.form,
            name=f"{given.scheduler_name}-{next(_numbers)}",
            kubeconfig=account(self.controlplane, "pumice-scheduler"),
            options=given.scheduler_options,
        )
        if given.http_timeout:
            document = yaml.safe_load(config.read_text())
            document["extenders"][0]["httpTimeout"] = given.http_timeout
            config.write_text(yaml.safe_dump(document))
        self.scheduler = self.controlplane.start_scheduler(config, name=given.scheduler_name)

    @property
    def in_order(self) -> bool:
        """Whether both programs run and answer."""
        return self.scheduler.running and self.extender.status("/readyz") == 200

    def start(self) -> Self:
        """Start both, or none."""
        with contextlib.ExitStack() as stack:
            stack.callback(self.stop)
            self.start_extender()
            self.start_scheduler()
            stack.pop_all()
        return self

    def stop(self) -> None:
        """End both."""
        for name in ("scheduler", "extender"):
            process = getattr(self, name, None)
            if process is not None:
                process.resume()
                process.stop()


@dataclass(slots=True, eq=False)
class Stage:
    """The one rig there is at a time: two would schedule the same pods.

    A rig stays for the next who wants the same setting, as long as it is in order. The one of no
    setting of its own follows a configuration.
    """

    controlplane: ControlPlane
    conf: ConfFile
    _rig: Rig | None = None

    def rig(self, setting: Setting | None = None) -> Rig:
        """The rig of that setting, else with what is built in, started when it is not there."""
        if setting is None:
            return self.configured("")
        if self._rig is None or self._rig.setting != setting or not self._rig.in_order:
            self.clear()
            self._rig = Rig(self.controlplane, setting).start()
        return self._rig

    def configured(self, conf: str) -> Rig:
        """The rig of no setting of its own, with that configuration in force."""
        rig = self.rig(Setting(conf=self.conf.path))
        self.conf.put(conf, rig.extender)
        return rig

    def clear(self) -> None:
        """End the rig, if there is one."""
        if self._rig is not None:
            self._rig.stop()
            self._rig = None


def account(controlplane: ControlPlane, name: str) -> Path:
    """A kubeconfig of one of our service accounts."""
    return controlplane.kubeconfig_for_service_account(NAMESPACE, name)
