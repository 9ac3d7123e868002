"""Where the API server is, and the credentials of this process.

The `kubernetes` package reads the kubeconfig or the service account and keeps some credentials
fresh (OIDC, the service account's token), `app.kube.login` the others; what both of our clients
need of it is taken out here as one frozen value. Asking for the headers may run a plugin or read a
file, and the package's refresh hook is not made for several threads, so it is called under a lock
and never from the event loop.
"""

import os
import re
import ssl
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies

import urllib3
import yaml
from kubernetes.client import Configuration
from kubernetes.client.rest import RESTClientObject, should_bypass_proxies
from kubernetes.config import ConfigException, load_incluster_config
from urllib3.exceptions import InsecureRequestWarning

from app.kube import kubeconfig as kubeconfigs
from app.kube.errors import ConfigError as ConfigError  # callers that load need it too
from app.kube.login import HEADER, Headers, Login
from app.kube.tls import Tls
from app.kube.unusable import why
from app.kube.web_url import is_loopback, is_web_url

SERVICE_HOST = "KUBERNETES_SERVICE_HOST"
SERVICE_ACCOUNT_NAMESPACE = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"


def _heedless(headers: Mapping[str, str]) -> None:
    """What cannot be had anew, or is when its time has come, is kept."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Connection:
    """Address, TLS and credentials of one API server."""

    host: str
    """URL without a trailing slash; may have a path."""
    headers: Callable[[], Headers]
    """Authorization as of now; may block, safe from any thread, raises `ConfigError`."""
    tls: Callable[[], ssl.SSLContext | None]
    """For new connections, as of when `headers` was asked last; None for plain HTTP. When it is
    another one, connections made with the one before are under a certificate that was replaced."""
    pool: Callable[[], urllib3.PoolManager]
    """A new pool for the streaming connection of an informer."""
    refused: Callable[[Mapping[str, str]], None] = _heedless
    """To be told the headers that were answered with 401; never blocks."""
    server_name: str | None = None
    """Name to expect in the certificate, where it is not the host's."""
    proxy: str | None = None


def load(
    kubeconfig: Path | None = None, *, context: str | None = None, server: str | None = None
) -> Connection:
    """Connection from that kubeconfig; without one, from the pod we run in, else from kubectl's.

    With a ``server``, to that one instead, by the credentials found.
    """
    configuration = Configuration()
    login: Login | None = None
    source = _source(kubeconfig)
    with _reading(source):
        if _in_pod(kubeconfig):
            load_incluster_config(  # type: ignore[no-untyped-call]  # only `client` is typed
                client_configuration=configuration
            )
        else:
            login = kubeconfigs.load(configuration, kubeconfig, context)
    configuration.keep_alive = True
    if server is not None:
        configuration.host = server
    try:
        return from_configuration(configuration, login)
    except OSError as error:  # so are those of TLS
        raise ConfigError(f"the certificates of {source} cannot be read: {why(error)}") from error
    except ValueError as error:
        raise ConfigError(f"no connection from {source}: {error}") from error


def namespace(kubeconfig: Path | None = None, *, context: str | None = None) -> str:
    """The namespace that the context names, in a pod the pod's; empty where none is named."""
    with _reading(_source(kubeconfig)):
        if not _in_pod(kubeconfig):
            return kubeconfigs.namespace(kubeconfig, context)
        file = Path(SERVICE_ACCOUNT_NAMESPACE)
        return file.read_text(encoding="utf-8").strip() if file.exists() else ""


def _in_pod(kubeconfig: Path | None) -> bool:
    return kubeconfig is None and bool(os.environ.get(SERVICE_HOST))


def _source(kubeconfig: Path | None) -> str:
    """What an error names."""
    if _in_pod(kubeconfig):
        return "the service account"
    return str(kubeconfig or "kubectl's kubeconfig")


@contextmanager
def _reading(source: str) -> Iterator[None]:
    """Raises ConfigError for what goes wrong inside."""
    try:
        yield
    except (ConfigException, OSError) as error:
        raise ConfigError(f"no connection from {source}: {why(error)}") from error
    except (yaml.YAMLError, AttributeError, LookupError, TypeError, ValueError) as error:
        # The package takes for granted that the file is YAML and has the shape of a kubeconfig.
        raise ConfigError(f"{source} is not a kubeconfig: {why(error)}") from error


def from_configuration(configuration: Configuration, login: Login | None = None) -> Connection:
    """The values of a loaded client configuration, and the login that renews what it does not.

    Raises ValueError for an address that cannot be called, OSError for certificates that are none.
    """
    host = str(configuration.host).rstrip("/")
    if not is_web_url(host):
        raise ValueError(f"the server {host!r} is no http or https URL")
    _spare_loopback(configuration)
    tls = None
    if host.startswith("https:"):
        tls = Tls(configuration, login.certificate if login else None)
    return Connection(
        host=host,
        headers=_logged_in(login, tls) if login else _header_source(configuration),
        tls=tls.context if tls else lambda: None,
        refused=login.refused if login else _heedless,
        pool=partial(_pool, configuration, tls),
        server_name=configuration.tls_server_name or None,
        proxy=_proxy(configuration),
    )


def at(server: str) -> Connection:
    """Connection to a server that asks for no name."""
    return from_configuration(Configuration(host=server))


def _spare_loopback(configuration: Configuration) -> None:
    """No proxy of the environment for this machine itself: kubectl asks none either."""
    if is_loopback(configuration.host) and configuration.proxy in getproxies().values():
        configuration.proxy = None


def _pool(configuration: Configuration, tls: Tls | None) -> urllib3.PoolManager:
    """The package's pool; it trusts what `tls` trusts, and reads the files at every connection."""
    if not configuration.verify_ssl:
        _expect_unverified(configuration.host, configuration.proxy)
    pool = RESTClientObject(configuration).pool_manager
    if tls is not None:
        pool.connection_pool_kw["ssl_context"] = tls.another()
    return pool


def _proxy(configuration: Configuration) -> str | None:
    """The proxy by the rule of the pool, so that what is read and what is written go one way."""
    if should_bypass_proxies(configuration.host, configuration.no_proxy or ""):
        return None
    proxy: str | None = configuration.proxy or None
    if proxy is not None and not is_web_url(proxy):
        # Not quoted: it may hold a password.
        raise ValueError("the proxy is no http or https URL, and others are not supported")
    return proxy


def _logged_in(login: Login, tls: Tls | None) -> Callable[[], Headers]:
    """The headers of the login; by then new connections are under its certificate too."""

    def headers() -> Headers:
        found = login.headers()
        try:
            if tls is not None:
                tls.follow(login.certificate)
        except OSError as error:
            login.refused(found)  # ask for another one
            raise ConfigError(f"the credentials cannot be renewed: {why(error)}") from error
        return found

    return headers


def _header_source(configuration: Configuration) -> Callable[[], Headers]:
    lock = threading.Lock()

    def headers() -> Headers:
        try:
            with lock:
                token = configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
        except (ConfigException, OSError) as error:
            raise ConfigError(f"the credentials cannot be renewed: {why(error)}") from error
        return {HEADER: token.strip()} if token else {}

    return headers


def _expect_unverified(*urls: str | None) -> None:
    """Drop urllib3's warnings of connections to these servers, whose certificate is not looked at.

    ``insecure-skip-tls-verify`` asks for that; of all other hosts urllib3 goes on warning. None is
    no server.
    """
    for url in urls:
        # The name as urllib3 has it: without the brackets of an IPv6 address or a dot at the end.
        host = (urlsplit(url or "").hostname or "").rstrip(".")
        if host:
            text = f"Unverified HTTPS request is being made to host '{host}'"
            warnings.filterwarnings("ignore", re.escape(text), InsecureRequestWarning)
