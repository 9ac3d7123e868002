"""The cluster that a command works on: where it is, and plain objects out of it and into it.

A command opens one client, asks and writes what it needs, and closes it. Errors stay those of the
client, because a user wants to know which server refused and in which words; `app.cli.endings`
renders them.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import typer

from app.cli.endings import Code, CommandFailed
from app.kube import errors
from app.kube.web_url import is_web_url
from app.wire.kinds import Resource
from app.wire.unstructured import Key, Object, namespace

if TYPE_CHECKING:
    # Half a second to load: not for processes, which share this command line and start in a hurry.
    from app.kube.client import ApiClient
    from app.kube.config import Connection

T = TypeVar("T")
Objects = list[Object]  # an alias, because Cluster has a method named list

DEADLINE_S = 30.0
MANAGER = "pumice-cli"
DEFAULT_NAMESPACE = "default"

_EVENTS = Resource("Event", "v1", "events")

_decode = msgspec.json.Decoder(dict[str, Any]).decode


@dataclass(frozen=True, slots=True)
class Where:
    """Which cluster: a kubeconfig (none: the usual rules), its context, another address."""

    kubeconfig: Path | None = None
    master: str = ""
    context: str = ""


class Cluster:
    """Objects of any kind, without the bookkeeping of their fields."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    async def get(self, resource: Resource, key: Key) -> Object:
        """The object as stored now."""
        path = _path(resource, key)
        with served(resource):
            return _cleaned(_decode(await self._client.get(path)), resource)

    async def list(
        self, resource: Resource, *, namespace: str = "", labels: str = "", fields: str = ""
    ) -> Objects:
        """All objects, of a namespace when one is given, in the API server's order."""
        chosen = {"labelSelector": labels, "fieldSelector": fields}
        params = {name: text for name, text in chosen.items() if text}
        found: Objects = []
        if namespace:
            check_name("namespace", namespace)
        with served(resource):
            async for page in self._client.list(resource.path(namespace=namespace), params):
                items = _decode(page).get("items") or ()
                found += (_cleaned(item, resource) for item in items)
        return found

    async def events(self, namespace: str, about: str = "") -> Objects | None:
        """The events of a namespace, or only those about objects of that name.

        None, and a warning, without the right to see them: they only ever go with something else.
        """
        fields = f"involvedObject.name={about}" if about else ""
        try:
            return await self.list(_EVENTS, namespace=namespace, fields=fields)
        except errors.Forbidden as error:
            warn(f"events are not shown: {error.message}")
            return None

    async def create(self, resource: Resource, item: Object) -> Object:
        """Create ``item`` in the namespace that its metadata says."""
        if resource.namespaced:
            check_name("namespace", namespace(item))
        path = resource.path(namespace=namespace(item))
        with served(resource):
            created = await self._client.create(path, item, params={"fieldManager": MANAGER})
        return _cleaned(_decode(created), resource)

    async def merge(self, resource: Resource, key: Key, change: Mapping[str, Any]) -> Object:
        """Merge ``change`` into the object."""
        params = {"fieldManager": MANAGER}
        changed = await self._client.patch(_path(resource, key), change, params=params)
        return _cleaned(_decode(changed), resource)

    async def delete(self, resource: Resource, key: Key) -> None:
        """Delete the object; what it made goes in the background."""
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        path = _path(resource, key)
        with served(resource):
            await self._client.delete(path, options)


def ask(where: Where, use: Callable[[Cluster], Awaitable[T]]) -> T:
    """What ``use`` makes of the cluster; raises KubeError, ConfigError or CommandFailed."""
    to = connection(where)
    try:
        return asyncio.run(_ask(to, use))
    except (msgspec.MsgspecError, errors.Unreadable) as error:
        why = f"what answers at {to.host} is no API server"
        raise CommandFailed(Code.UNREACHABLE, why) from error


async def _ask(to: Connection, use: Callable[[Cluster], Awaitable[T]]) -> T:
    from app.kube.client import ApiClient, ClientOptions

    options = ClientOptions(deadline_s=DEADLINE_S, user_agent="pumice-cli")
    async with ApiClient(to, options, warn=warn) as client:
        return await use(Cluster(client))


def warn(text: str) -> None:
    """Tell what may be missing or wrong although the command goes on."""
    typer.echo(f"Warning: {text}", err=True)


def connection(where: Where) -> Connection:
    """How to reach the cluster; an address alone will do, for a server that asks for no name."""
    from app.kube import config

    host = _address(where.master) if where.master else ""
    file = where.kubeconfig or _usual_file()
    if host and where.kubeconfig is None and not _is_there(file):
        return config.at(host)
    if file is not None and not _is_there(file):
        why = f"there is no kubeconfig {file}: name one by --kubeconfig or the variable KUBECONFIG"
        raise CommandFailed(Code.USAGE, why)
    return config.load(file, context=where.context or None, server=host or None)


def namespace_for(where: Where, given: str | None) -> str:
    """The namespace that is given, else that of the context as with kubectl, else ``default``."""
    if given is not None:
        return given
    from app.kube import config

    file = where.kubeconfig or _usual_file()
    if file is not None and not _is_there(file):
        return DEFAULT_NAMESPACE  # there may be a --master; else connecting says so
    return config.namespace(file, context=where.context or None) or DEFAULT_NAMESPACE


def _usual_file() -> Path | None:
    """Where kubectl looks; None in a pod, whose service account will do."""
    from app.kube.config import SERVICE_HOST

    # Not Path.home(): in a container a user may have none.
    usual = Path(os.path.expanduser("~/.kube/config"))
    return None if os.environ.get(SERVICE_HOST) else usual


def _is_there(file: Path | None) -> bool:
    """Whether there is any of the files, as the variable KUBECONFIG may list several."""
    return any(os.path.exists(each) for each in str(file or "").split(os.pathsep))


def _address(master: str) -> str:
    text = master if "://" in master else f"http://{master}"
    if not is_web_url(text):
        raise CommandFailed(Code.USAGE, f"--master: {master!r} is no address of an API server")
    return text.rstrip("/")


def _path(resource: Resource, key: Key) -> str:
    if resource.namespaced:
        check_name("namespace", key.namespace)
    check_name("name", key.name)
    return resource.path(key)


def check_name(what: str, text: str) -> None:
    """Refuse what no object can be called: an API server takes it for another path."""
    if not text:
        raise CommandFailed(Code.USAGE, f"the {what} cannot be left blank")
    if text in {".", ".."} or "/" in text or "%" in text:
        why = f"{what} {text!r}: nothing has a name with / or % in it, or is called . or .."
        raise CommandFailed(Code.USAGE, why)


@contextmanager
def served(resource: Resource) -> Iterator[None]:
    """Say in words that the API server does not know a kind at all."""
    try:
        yield
    except errors.NotFound as error:
        if _names_an_object(error.message):
            raise
        raise CommandFailed(
            Code.NOT_FOUND,
            f"the API server does not serve {resource}; "
            "`pumice crds | kubectl apply --server-side -f -` would change that",
        ) from error


def _names_an_object(message: str) -> bool:
    return '"' in message


def _cleaned(item: Any, resource: Resource) -> Object:
    if not isinstance(item, dict) or not isinstance(item.get("metadata"), dict):
        raise msgspec.ValidationError("what it sends is no object with metadata")
    item.setdefault("apiVersion", resource.api_version)
    item.setdefault("kind", resource.kind)
    item["metadata"].pop("managedFields", None)
    return {**{name: item[name] for name in ("apiVersion", "kind")}, **item}
