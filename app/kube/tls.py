"""The TLS of connections to the API server, under the client certificate of now.

An exec plugin may give a new certificate at any time. Each has a context of its own: one that other
threads make connections with must not be changed, and a keeper of connections tells by it which are
under an older certificate. The pools of the `kubernetes` package read a file instead; it holds the
certificate with its key, so that both change in one step.
"""

import os
import shutil
import ssl
import tempfile
import threading
import weakref
from pathlib import Path

from kubernetes.client import Configuration

from app.kube.login import Certificate


class Tls:
    """Raises OSError where certificates are none, now or when they are renewed."""

    def __init__(self, configuration: Configuration, certificate: Certificate | None) -> None:
        self._configuration = configuration
        self._lock = threading.Lock()
        self._folder: Path | None = None
        self._certificate = certificate
        self._context = self._made(certificate) if certificate else _context(configuration)

    def context(self) -> ssl.SSLContext:
        """For new connections; the same one as long as the certificate is."""
        return self._context

    def another(self) -> ssl.SSLContext:
        """A context that the caller may change."""
        return _context(self._configuration)

    def follow(self, certificate: Certificate | None) -> None:
        """Use this one from now on; reads and writes files when it is another."""
        with self._lock:
            if certificate != self._certificate:
                self._context = self._made(certificate)
                self._certificate = certificate

    def _made(self, certificate: Certificate | None) -> ssl.SSLContext:
        file = self._written(certificate) if certificate else None
        self._configuration.cert_file = self._configuration.key_file = file
        return _context(self._configuration)

    def _written(self, certificate: Certificate) -> str:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="pumice-"))
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        fresh, file = self._folder / "fresh.pem", self._folder / "client.pem"
        fresh.write_text(f"{certificate.text}\n{certificate.key}\n")
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(fresh)  # or it is none
        os.replace(fresh, file)
        return str(file)


def _context(configuration: Configuration) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert or None)
    # Cluster authorities are often made without the key identifiers that newer Pythons insist on.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    return context
