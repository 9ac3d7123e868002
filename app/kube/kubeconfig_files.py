"""The files of a kubeconfig, read and merged as kubectl does.

The `kubernetes` package merges them, but refuses what kubectl takes: a file with nothing in it, a
file of several YAML documents (the first counts), a user without an entry. And of files that name a
current context the first counts, not the last.
"""

import copy
from typing import Any, Final

import yaml
from kubernetes.config.kube_config import ConfigNode, KubeConfigMerger

_LISTS: Final = ("clusters", "contexts", "users")
_CURRENT: Final = "current-context"


class KubeconfigFiles(KubeConfigMerger):
    """The files of a list of paths; ``config`` is None where there is nothing in any of them."""

    def load_config(self, path: str) -> None:
        """Merge one more file."""
        config = self.config_files[path] = _first_document(path)
        if config is None:
            return
        if self.config_merged is None:
            merged = copy.deepcopy(config) | {name: [] for name in _LISTS} | {_CURRENT: ""}
            self.config_merged = ConfigNode(path, merged, path)  # type: ignore[no-untyped-call]
        for name in _LISTS:
            self._merge(name, config.get(name) or [], path)  # type: ignore[no-untyped-call]
        merged = self.config_merged.value
        merged[_CURRENT] = merged[_CURRENT] or config.get(_CURRENT) or ""


def _first_document(path: str) -> dict[str, Any] | None:
    with open(path) as file:
        config: dict[str, Any] | None = next(yaml.safe_load_all(file), None)
    for entry in (config or {}).get("users") or ():
        if entry.get("user") is None:
            entry["user"] = {}
    return config
