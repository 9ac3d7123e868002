"""The plugins of a job, ready to use.

Reading ``spec.plugins`` raises `PluginError` with everything that is wrong with it, in the words of
admission; where admission let the job in, this is what it fails with.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from app.jobplugins import keys
from app.jobplugins.env import EnvPlugin
from app.jobplugins.facts import facts_of
from app.jobplugins.hcclrank import HcclrankPlugin
from app.jobplugins.jax import JaxPlugin
from app.jobplugins.keys import MakeKeys
from app.jobplugins.mpi import MpiPlugin
from app.jobplugins.plugin import JobFacts, Plugin, PodOfJob
from app.jobplugins.pytorch import PytorchPlugin
from app.jobplugins.ray import RayPlugin
from app.jobplugins.rules import catalogue
from app.jobplugins.rules.problems import PluginError
from app.jobplugins.ssh import SshPlugin
from app.jobplugins.svc import SvcPlugin
from app.jobplugins.tensorflow import TensorflowPlugin
from app.jobplugins.wanted import Wanted
from app.wire.copying import copied
from app.wire.unstructured import Object, spec

_Configure = Callable[[Any, JobFacts], Plugin]

_PLUGINS: Final[Mapping[str, _Configure]] = {
    "env": EnvPlugin,
    "svc": SvcPlugin,
    "tensorflow": TensorflowPlugin,
    "pytorch": PytorchPlugin,
    "mpi": MpiPlugin,
    "ray": RayPlugin,
    "jax": JaxPlugin,
    "hcclrank": HcclrankPlugin,
}
"""Plugins; each takes its own arguments of :data:`app.jobplugins.rules.catalogue.KNOWN`."""


@dataclass(frozen=True, slots=True)
class JobPlugins:
    """The plugins of one job as it is now; make them anew when its spec changes."""

    plugins: Mapping[str, Plugin]

    def pod(self, pod: Object, place: PodOfJob) -> Object:
        """A copy of ``pod`` (named, but not created yet) with what all plugins add."""
        changed: Object = copied(pod)
        for plugin in self.plugins.values():
            plugin.pod(changed, place)
        return changed

    def objects(self) -> tuple[Wanted, ...]:
        """The objects that must be there before the pods are created."""
        return tuple(wanted for plugin in self.plugins.values() for wanted in plugin.objects())

    def controlled_resources(self) -> dict[str, str]:
        """Entries of ``status.controlledResources``."""
        return {f"plugin-{name}": name for name in self.plugins}


def parse(job: Object, *, make_keys: MakeKeys = keys.generate) -> JobPlugins:
    """The plugins of ``job``; raises `PluginError`."""
    facts = facts_of(job)
    tasks = [task.name for task in facts.job_tasks.tasks]
    reading = catalogue.read(spec(job).get("plugins") or {}, tasks=tasks)
    if reading.problems:
        raise PluginError(reading.problems)
    configure: dict[str, _Configure] = {**_PLUGINS, "ssh": partial(SshPlugin, make_keys=make_keys)}
    return JobPlugins(
        {name: configure[name](given, facts) for name, given in reading.arguments.items()}
    )
