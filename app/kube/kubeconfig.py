"""A kubeconfig, as kubectl understands it.

The `kubernetes` package reads it, and logs in by most of what a user may have. What it does once
and never again (a token's file, a plugin that does not say when its token expires), or passes over
(a plugin that fails, an order to act as another user), is seen to here, before the package looks.
"""

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from kubernetes.client import Configuration
from kubernetes.config import ConfigException
from kubernetes.config.kube_config import (
    KUBE_CONFIG_DEFAULT_LOCATION,
    ConfigNode,
    KubeConfigLoader,
)

from app.kube.exec_plugin import ExecPlugin
from app.kube.kubeconfig_files import KubeconfigFiles
from app.kube.login import Given, Login

_TOKEN_KEPT_S: Final = 60.0
"""As client-go keeps the token of a file, which is written anew well before the token expires."""

_AS_ANOTHER: Final = ("as", "as-uid", "as-groups", "as-user-extra")


def load(configuration: Configuration, file: Path | None, context: str | None) -> Login | None:
    """Fill the configuration from that file (else from kubectl's).

    Returns how to log in, where that is more than what the configuration now holds.
    """
    files = _files(file)
    merged: ConfigNode = files.config
    login = _login(merged, _context(merged, context))
    configuration.host = ""  # not localhost, where no server is named
    KubeConfigLoader(  # type: ignore[no-untyped-call]
        merged,
        active_context=context,
        config_base_path=None,
        config_persister=files.save_changes,
    ).load_and_set(configuration)
    return login


def namespace(file: Path | None, context: str | None) -> str:
    """The namespace that the context names, empty where it names none."""
    found = _context(_files(file).config, context)
    return str(found.safe_get("namespace") or "")  # type: ignore[no-untyped-call]


def _files(file: Path | None) -> KubeconfigFiles:
    """The files that are named, else kubectl's."""
    paths = str(file or KUBE_CONFIG_DEFAULT_LOCATION)
    files = KubeconfigFiles(paths)  # type: ignore[no-untyped-call]
    if files.config is None:
        raise ConfigException("there is no such file, or nothing in it")
    return files


def _context(merged: ConfigNode, name: str | None) -> ConfigNode:
    name = name or merged["current-context"]
    found: ConfigNode = merged["contexts"].get_with_name(name)["context"]
    return found


def _login(merged: ConfigNode, context: ConfigNode) -> Login | None:
    entry = _user(merged, context)
    user = None if entry is None else entry["user"]
    if entry is None or user is None:
        return None
    _refuse_disguise(user.value, entry["name"])
    if "auth-provider" in user:
        return None
    folder = Path(os.path.abspath(user.path)).parent
    if user.safe_get("tokenFile"):
        read = partial(_token_in, folder / user["tokenFile"])
        return Login(read, first=read())
    if user.safe_get("token") or "exec" not in user:
        return None
    cluster = merged["clusters"].get_with_name(context["cluster"])["cluster"]
    plugin = ExecPlugin(user["exec"], cluster=cluster, folder=folder)
    given = plugin.run()
    without = {key: value for key, value in user.value.items() if key != "exec"}
    entry.value = {**entry.value, "user": without}  # or the package would run it too
    return Login(plugin.run, first=given)


def _user(merged: ConfigNode, context: ConfigNode) -> ConfigNode | None:
    name = context.safe_get("user")  # type: ignore[no-untyped-call]
    users = merged.safe_get("users")  # type: ignore[no-untyped-call]
    if not name or not users:
        return None
    found: ConfigNode | None = merged["users"].get_with_name(name, safe=True)
    return found


def _refuse_disguise(user: Mapping[str, Any], name: str) -> None:
    """We would do as ourselves what was to be done as another."""
    for key in _AS_ANOTHER:
        if user.get(key):
            raise ConfigException(f"user {name} has {key!r}: impersonation is not supported")


def _token_in(file: Path) -> Given:
    """What a ``tokenFile`` says now."""
    text = file.read_text(encoding="utf-8").strip()
    if not text:
        raise ConfigException(f"the token file {file} is empty")
    return Given(token=text, keep_s=_TOKEN_KEPT_S)
