"""A webhook as operators have them: it gives pods the scheduler name that their owner asks for."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.clusters.client import Object
from tests.clusters.controlplane import ControlPlane

LABEL = "example.com/scheduler"
NAME = "zz-renaming"
"""Webhooks are asked in the order of their names: it comes after all of ours."""


class _Renaming(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        request = json.loads(body)["request"]
        wanted = request["object"]["metadata"]["labels"][LABEL]
        patch = [{"op": "add", "path": "/spec/schedulerName", "value": wanted}]
        response = {
            "uid": request["uid"],
            "allowed": True,
            "patchType": "JSONPatch",
            "patch": base64.b64encode(json.dumps(patch).encode()).decode(),
        }
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        answer = json.dumps({**review, "response": response}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the tests say what went wrong."""


@contextmanager
def running(cluster: ControlPlane) -> Iterator[None]:
    """The webhook, registered for pods that have the label."""
    pair = cluster.authority.server("renaming")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    with ThreadingHTTPServer(("127.0.0.1", 0), _Renaming) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        trusted = cluster.authority.certificate.read_bytes()
        item = cluster.api.apply(_configuration(server.server_address[1], trusted))
        try:
            yield
        finally:
            cluster.api.delete(cluster.api.resource_of(item), NAME)
            server.shutdown()


def _configuration(port: int, trusted: bytes) -> Object:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": NAME},
        "webhooks": [
            {
                "name": "renaming.example.com",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "clientConfig": {
                    "url": f"https://127.0.0.1:{port}/",
                    "caBundle": base64.b64encode(trusted).decode(),
                },
                "objectSelector": {"matchExpressions": [{"key": LABEL, "operator": "Exists"}]},
                "rules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["pods"],
                    }
                ],
            }
        ],
    }
