"""The plugins of a job, ready to use.

Reading ``spec.plugins`` raises `PluginError` with everything that is wrong with it, in the words of
admission; where admission let the job in, this is what it fails with.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from app.controllers.jobplugins import keys
from app.controllers.jobplugins.env import EnvPlugin
from app.controllers.jobplugins.hcclrank import HcclrankPlugin
from app.controllers.jobplugins.jax import JaxPlugin
from app.controllers.jobplugins.keys import MakeKeys
from app.controllers.jobplugins.mpi import MpiPlugin
from app.controllers.jobplugins.plugin import JobFacts, Place, Plugin
from app.controllers.jobplugins.pytorch import PytorchPlugin
from app.controllers.jobplugins.ray import RayPlugin
from app.controllers.jobplugins.rosters import facts_of
from app.controllers.jobplugins.ssh import SshPlugin
from app.controllers.jobplugins.svc import SvcPlugin
from app.controllers.jobplugins.tensorflow import TensorflowPlugin
from app.controllers.jobplugins.wanted import Wanted
from app.core.jobplugins import catalogue
from app.core.jobplugins.problems import PluginError
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
"""Each takes its own arguments of :data:`app.core.jobplugins.catalogue.KNOWN`."""


@dataclass(frozen=True, slots=True)
class JobPlugins:
    """The plugins of one job as it is now; make them anew when its spec changes."""

    plugins: Mapping[str, Plugin]

    def pod(self, pod: Object, place: Place) -> Object:
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
    tasks = [task.name for task in facts.roster.tasks]
    reading = catalogue.read(spec(job).get("plugins") or {}, tasks=tasks)
    if reading.problems:
        raise PluginError(reading.problems)
    configure: dict[str, _Configure] = {**_PLUGINS, "ssh": partial(SshPlugin, make_keys=make_keys)}
    return JobPlugins(
        {name: configure[name](given, facts) for name, given in reading.arguments.items()}
    )
