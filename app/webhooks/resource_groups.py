"""Resource groups: kinds of pods that are sent to kinds of nodes (volcano.md §6.5).

A pod belongs to the first group that takes it: by its namespace, or by an annotation. The group
then says where it runs: labels are merged into the node selector, tolerations are appended, the
affinity is set where the pod has none, and the scheduler is replaced.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from app.wire.reading import mapping, sequence
from app.wire.unstructured import Object

GROUP_ANNOTATION = "volcano.sh/resource-group"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceGroup:
    """One entry of the admission configuration.

    ``namespaces`` or ``annotations`` say which pods are in it; with neither, those that name the
    group in the annotation ``volcano.sh/resource-group``.
    """

    name: str
    namespaces: frozenset[str] | None = None
    annotations: tuple[tuple[str, str], ...] | None = None
    scheduler_name: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Mapping[str, Any], ...] = ()
    affinity: Mapping[str, Any] = field(default_factory=dict)

    def takes(self, namespace: str, annotations: Mapping[str, Any]) -> bool:
        """Whether a pod of that namespace with those annotations is in it."""
        if self.namespaces is not None:
            return namespace in self.namespaces
        wanted = self.annotations
        if wanted is None:
            wanted = ((GROUP_ANNOTATION, self.name),)
        return any(annotations.get(key) == value for key, value in wanted)

    def applied(self, pod: Object) -> Object:
        """``pod`` as this group wants it."""
        spec = dict(mapping(pod.get("spec")))
        if self.labels:
            spec["nodeSelector"] = {**mapping(spec.get("nodeSelector")), **self.labels}
        if self.affinity and not spec.get("affinity"):
            spec["affinity"] = dict(self.affinity)
        if self.tolerations:
            present = list(sequence(spec.get("tolerations")))
            added = [dict(each) for each in self.tolerations if each not in present]
            spec["tolerations"] = [*present, *added]
        if self.scheduler_name:
            spec["schedulerName"] = self.scheduler_name
        return {**pod, "spec": spec}
