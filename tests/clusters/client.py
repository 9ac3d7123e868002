"""A small synchronous client for any API server, the stock one or the sandbox's.

Objects are plain JSON. Kinds are named by `Resource` values; `create` and `apply` also look an
unknown kind up by discovery, so that a manifest can be sent as it stands. Waiting is done on a
watch (`until`), never by sleeping. One client may be used by many threads.
"""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import httpx2

from tests.clusters.certificates import KeyPair
from tests.clusters.resources import EVENTS, Resource

WITHOUT_TLS: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For clients of plain HTTP: by default each would read all authorities of the web, for 20 ms."""
_PATCH_TYPES = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}
Object = dict[str, Any]
Objects = list[Object]  # an alias, because ApiClient has a method named list
_WATCH_S = 60
_NOT_YET, _NOT_YET_S, _GETS = 429, 0.5, 20
"""Too many requests: a read is tried again so soon, and so often."""


class ApiError(Exception):
    """The API server said no: `code`, its `reason` word, its message and the whole Status."""

    def __init__(self, code: int, body: str) -> None:
        try:
            status = json.loads(body)
        except ValueError:
            status = {}
        self.code = code
        self.status: Object = status if isinstance(status, dict) else {}
        self.reason: str = self.status.get("reason", "")
        super().__init__(f"{code} {self.reason}: {self.status.get('message', body[:500])}")


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a watch."""

    kind: str
    object: Object


class StateNotReached(AssertionError):
    """A watched collection did not reach the state waited for; the text shows its last state."""


def key_of(item: Object) -> str:
    """Return namespace/name, or the name of what has no namespace."""
    metadata = item["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}".lstrip("/")


def tls_context(authority: Path, client: KeyPair | None = None) -> ssl.SSLContext:
    """Trust one authority only and, when given, present a client certificate."""
    context = ssl.create_default_context(cafile=str(authority))
    if client is not None:
        context.load_cert_chain(client.certificate, client.key)
    return context


class ApiClient:
    """Requests to one API server as one user; a refusal is an `ApiError`."""

    def __init__(
        self,
        url: str,
        *,
        verify: ssl.SSLContext = WITHOUT_TLS,
        token: str | None = None,
        timeout_s: float = 30,
    ) -> None:
        self.url = url
        self._http = httpx2.Client(
            base_url=url,
            verify=verify,
            headers={"Authorization": f"Bearer {token}"} if token else {},
            timeout=timeout_s,
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=64),
            trust_env=False,
        )
        self._kinds: dict[tuple[str, str], Resource] = {}
        self._kinds_lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        params: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Any:
        """Send one request and return the decoded answer (text where it is not JSON).

        A stock API server that has just started answers some reads with 429, "storage is
        (re)initializing"; like all clients, this one asks again.
        """
        for may_ask_again in (*[method == "GET"] * _GETS, False):
            response = self._http.request(
                method,
                path,
                content=None if body is None else json.dumps(body),
                params=params,
                headers={} if body is None else {"Content-Type": content_type},
            )
            if response.status_code != _NOT_YET or not may_ask_again:
                break
            time.sleep(_NOT_YET_S)
        if response.status_code >= 400:
            raise ApiError(response.status_code, response.text)
        if response.headers.get("content-type", "").startswith("application/json"):
            return response.json()
        return response.text

    def is_ready(self) -> bool:
        """Tell whether `/readyz` answers 200; nobody listening is just not ready."""
        try:
            return self._http.get("/readyz", timeout=2).status_code == 200
        except httpx2.TransportError:
            return False

    # One object ---------------------------------------------------------------------------------

    def get(self, resource: Resource, name: str, *, namespace: str | None = None) -> Object:
        answer: Object = self.request("GET", resource.path(name, namespace=namespace))
        return answer

    def find(self, resource: Resource, name: str, *, namespace: str | None = None) -> Object | None:
        """Return the object, or None when there is none of that name."""
        try:
            return self.get(resource, name, namespace=namespace)
        except ApiError as error:
            if error.code == 404:
                return None
            raise

    def create(
        self,
        item: Object,
        *,
        resource: Resource | None = None,
        namespace: str | None = None,
        subresource_of: str = "",
        subresource: str = "",
    ) -> Object:
        """POST the object to its collection, or to a subresource (`binding`) of a named object."""
        where = resource or self.resource_of(item)
        place = namespace or item.get("metadata", {}).get("namespace") or "default"
        path = where.path(subresource_of, namespace=place, subresource=subresource)
        answer: Object = self.request("POST", path, body=item)
        return answer

    def replace(self, item: Object, *, subresource: str = "") -> Object:
        """PUT the object as read and changed; its resourceVersion guards against a lost update."""
        metadata = item["metadata"]
        path = self.resource_of(item).path(
            metadata["name"], namespace=metadata.get("namespace"), subresource=subresource
        )
        answer: Object = self.request("PUT", path, body=item)
        return answer

    def apply(self, item: Object, *, manager: str = "pumice-tests") -> Object:
        """Server-side apply one manifest."""
        metadata = item["metadata"]
        path = self.resource_of(item).path(
            metadata["name"], namespace=metadata.get("namespace") or "default"
        )
        answer: Object = self.request(
            "PATCH",
            path,
            body=item,
            params={"fieldManager": manager, "force": "true"},
            content_type=_PATCH_TYPES["apply"],
        )
        return answer

    def patch(
        self,
        resource: Resource,
        name: str,
        change: object,
        *,
        namespace: str | None = None,
        subresource: str = "",
        kind: str = "merge",
    ) -> Object:
        """PATCH an object; `kind` is merge, strategic or json."""
        path = resource.path(name, namespace=namespace, subresource=subresource)
        answer: Object = self.request("PATCH", path, body=change, content_type=_PATCH_TYPES[kind])
        return answer

    def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str | None = None,
        grace_s: int | None = None,
        missing_ok: bool = True,
    ) -> None:
        options: Object = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if grace_s is not None:
            options["gracePeriodSeconds"] = grace_s
        try:
            self.request("DELETE", resource.path(name, namespace=namespace), body=options)
        except ApiError as error:
            if error.code != 404 or not missing_ok:
                raise

    # Collections --------------------------------------------------------------------------------

    def list(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
    ) -> Objects:
        """Return all objects; each carries its apiVersion and kind, as a single GET would."""
        selectors = _selectors(label_selector, field_selector)
        return self._list(resource, namespace, selectors)[0]

    def list_with_version(
        self, resource: Resource, *, namespace: str | None = None
    ) -> tuple[Objects, str]:
        """Return all objects and the version from which a watch goes on."""
        return self._list(resource, namespace, {})

    def delete_all(
        self, resource: Resource, *, namespace: str | None = None, label_selector: str = ""
    ) -> None:
        """Delete a collection, without grace."""
        self.request(
            "DELETE",
            resource.path(namespace=namespace),
            body={"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0},
            params=_selectors(label_selector, ""),
        )

    def watch(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        resource_version: str = "",
        label_selector: str = "",
        field_selector: str = "",
        timeout_s: float = _WATCH_S,
    ) -> Iterator[Event]:
        """Yield changes until the server ends the watch or the time is over.

        A version that is too old ends it with an ERROR event, however the server says so.
        """
        params = _selectors(label_selector, field_selector)
        params |= {"watch": "1", "resourceVersion": resource_version}
        params["timeoutSeconds"] = str(max(1, round(timeout_s)))
        deadline = time.monotonic() + timeout_s
        path = resource.path(namespace=namespace)
        try:
            with self._http.stream("GET", path, params=params, timeout=timeout_s) as response:
                if response.status_code >= 400:
                    response.read()
                    if response.status_code == 410:
                        yield Event("ERROR", response.json())
                        return
                    raise ApiError(response.status_code, response.text)
                for line in response.iter_lines():
                    change = json.loads(line)
                    yield Event(change["type"], change["object"])
                    if time.monotonic() > deadline:
                        return
        except httpx2.ReadTimeout:
            return

    def events_of(self, name: str, *, namespace: str) -> Objects:
        """Events about the object of that name, oldest first."""
        about = f"involvedObject.name={name}"
        found = self.list(EVENTS, namespace=namespace, field_selector=about)
        return sorted(found, key=lambda event: int(event["metadata"]["resourceVersion"]))

    def until(
        self,
        resource: Resource,
        condition: Callable[[Objects], bool],
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        timeout_s: float = 30,
        what: str = "",
    ) -> Objects:
        """Wait until the condition holds for the whole collection and return the collection."""
        deadline = time.monotonic() + timeout_s
        selectors = _selectors(label_selector, field_selector)
        while True:
            listed, version = self._list(resource, namespace, selectors)
            items = {key_of(item): item for item in listed}
            if condition(listed):
                return listed
            remaining_s = deadline - time.monotonic()
            if remaining_s <= 0:
                raise StateNotReached(_describe(resource, what, timeout_s, items.values()))
            for event in self.watch(
                resource,
                namespace=namespace,
                resource_version=version,
                label_selector=label_selector,
                field_selector=field_selector,
                timeout_s=remaining_s,
            ):
                if event.kind == "ERROR":
                    break
                _take(event, items)
                if condition(list(items.values())):
                    return list(items.values())

    def until_one(
        self,
        resource: Resource,
        name: str,
        condition: Callable[[Object], bool],
        *,
        namespace: str | None = None,
        timeout_s: float = 30,
    ) -> Object:
        """Wait until the named object exists and the condition holds for it."""
        found = self.until(
            resource,
            lambda items: bool(items) and condition(items[0]),
            namespace=namespace,
            field_selector=f"metadata.name={name}",
            timeout_s=timeout_s,
            what=name,
        )
        return found[0]

    def until_gone(
        self, resource: Resource, name: str, *, namespace: str | None = None, timeout_s: float = 30
    ) -> None:
        self.until(
            resource,
            lambda items: not items,
            namespace=namespace,
            field_selector=f"metadata.name={name}",
            timeout_s=timeout_s,
            what=f"{name} gone",
        )

    # Discovery ----------------------------------------------------------------------------------

    def resource_of(self, item: Object) -> Resource:
        """Look the object's kind up by discovery; the answer is remembered."""
        wanted = (item["apiVersion"], item["kind"])
        with self._kinds_lock:
            if wanted not in self._kinds:
                self._kinds.update(self._discover(wanted[0]))
            try:
                return self._kinds[wanted]
            except KeyError:
                raise LookupError(f"{self.url} does not serve {wanted[1]} in {wanted[0]}") from None

    def _discover(self, api_version: str) -> dict[tuple[str, str], Resource]:
        root = "/apis/" if "/" in api_version else "/api/"
        served = self.request("GET", f"{root}{api_version}")["resources"]
        return {
            (api_version, each["kind"]): Resource(
                api_version, each["name"], each["kind"], each["namespaced"]
            )
            for each in served
            if "/" not in each["name"]
        }

    def _list(
        self, resource: Resource, namespace: str | None, selectors: Mapping[str, str]
    ) -> tuple[Objects, str]:
        answer = self.request("GET", resource.path(namespace=namespace), params=selectors)
        kind = {"apiVersion": resource.api_version, "kind": resource.kind}
        items = [kind | item for item in answer.get("items") or ()]
        return items, answer["metadata"]["resourceVersion"]


def _selectors(labels: str, fields: str) -> dict[str, str]:
    pairs = {"labelSelector": labels, "fieldSelector": fields}
    return {key: value for key, value in pairs.items() if value}


def _take(event: Event, items: dict[str, Object]) -> None:
    if event.kind == "DELETED":
        items.pop(key_of(event.object), None)
    elif event.kind in {"ADDED", "MODIFIED"}:
        items[key_of(event.object)] = event.object


def _describe(resource: Resource, what: str, timeout_s: float, items: Iterable[Object]) -> str:
    lines = [f"{resource.plural}: {what or 'the state waited for'} not within {timeout_s:g} s"]
    for item in sorted(items, key=key_of)[:20]:
        brief = {
            key: item.get("status", {}).get(key)
            for key in ("phase", "conditions")
            if item.get("status", {}).get(key)
        }
        lines.append(f"  {key_of(item)} {json.dumps(brief)[:600]}")
    return "\n".join(lines)
