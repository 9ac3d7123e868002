"""How the API server is told of the webhooks: the objects that register them.

The failure policy is Ignore: while no webhook answers, good objects are not held up, and the
policies in ``manifests/policy`` go on refusing what is plainly wrong. Nothing is asked about the
namespaces that a cluster needs to come back to life.

The API server compares objects with their schema, asks policies, then validating webhooks, and
stops at the first refusal. So that one answer holds everything that is wrong, in the words that
clients know, kinds of ours are judged among the mutating webhooks already, after the change; what
others change later is judged again in its place.
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from app.model.device_families import TELLING
from app.model.pod import GROUP_ANNOTATION
from app.webhooks.admission import Webhook
from app.webhooks.object_types import EARLY
from app.wire import kinds
from app.wire.kinds import Resource
from app.wire.unstructured import Object

API_VERSION: Final = "admissionregistration.k8s.io/v1"

MUTATING: Final = Resource(
    "MutatingWebhookConfiguration", API_VERSION, "mutatingwebhookconfigurations", namespaced=False
)
VALIDATING: Final = Resource(
    "ValidatingWebhookConfiguration",
    API_VERSION,
    "validatingwebhookconfigurations",
    namespaced=False,
)

FailurePolicy = Literal["Ignore", "Fail"]

TIMEOUT_S: Final = 5
"""Above the time that a starting process lets requests wait, in all but the worst case."""

EARLY_TIMEOUT_S: Final = 2
"""What is not judged early in this time is judged in its place."""

NAMESPACE_LABEL: Final = "kubernetes.io/metadata.name"
SYSTEM_NAMESPACE: Final = "kube-system"
JOB_NAME: Final = "volcano.sh/job-name"
"""The label of pods that belong to a vcjob."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where the API server finds the webhooks: a URL, or a Service where that is empty."""

    url: str = ""
    namespace: str = "pumice-system"
    service: str = "pumice-webhooks"
    port: int = 443

    def client(self, path: str, authority: bytes) -> Object:
        """``clientConfig`` for one path; without an authority the field is another's to fill."""
        found: Object = {"url": f"{self.url}{path}"} if self.url else {"service": self._at(path)}
        if authority:
            found["caBundle"] = base64.b64encode(authority).decode()
        return found

    def _at(self, path: str) -> Object:
        return {
            "namespace": self.namespace,
            "name": self.service,
            "path": path,
            "port": self.port,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """What is registered, and how."""

    webhooks: Sequence[Webhook]
    place: Endpoint
    name: str = "pumice-webhooks"
    failure_policy: FailurePolicy = "Ignore"
    schedulers: Sequence[str] = ("volcano",)
    any_pod: bool = False
    """Whether pods of other schedulers are changed too, as resource groups may."""

    def objects(self, authority: bytes) -> list[tuple[Resource, Object]]:
        """Both configurations; ``authority`` signed the serving certificate (PEM)."""
        judges = [webhook for webhook in self.webhooks if webhook.validate is not None]
        changing = [self._webhook(w, authority) for w in self.webhooks if w.mutate is not None]
        early = [self._early(w, authority) for w in judges if w.resource in EARLY]
        judging = [self._webhook(webhook, authority) for webhook in judges]
        return [
            (MUTATING, self._object(MUTATING, [*changing, *early])),
            (VALIDATING, self._object(VALIDATING, judging)),
        ]

    def _object(self, kind: Resource, webhooks: Sequence[Object]) -> Object:
        return {
            "apiVersion": API_VERSION,
            "kind": kind.kind,
            "metadata": {"name": self.name},
            "webhooks": list(webhooks),
        }

    def _early(self, webhook: Webhook, authority: bytes) -> Object:
        """The webhook's judge once more among those that change, for what has a new form."""
        changes = tuple(each for each in webhook.operations if each != "DELETE")
        found = self._webhook(replace(webhook, operations=changes), authority)
        return {**found, "timeoutSeconds": EARLY_TIMEOUT_S}

    def _webhook(self, webhook: Webhook, authority: bytes) -> Object:
        excluded = sorted({self.place.namespace, SYSTEM_NAMESPACE})
        found: Object = {
            "name": webhook.name,
            "admissionReviewVersions": ["v1"],
            "clientConfig": self.place.client(webhook.path, authority),
            "failurePolicy": self.failure_policy,
            "matchPolicy": "Equivalent",
            "namespaceSelector": {
                "matchExpressions": [
                    {"key": NAMESPACE_LABEL, "operator": "NotIn", "values": excluded}
                ]
            },
            "rules": [_rule(webhook)],
            "sideEffects": "None",
            "timeoutSeconds": TIMEOUT_S,
        }
        conditions = self._conditions(webhook)
        if conditions:
            found["matchConditions"] = conditions
        if webhook.mutate is not None:
            found["reinvocationPolicy"] = "IfNeeded"
        return found

    def _conditions(self, webhook: Webhook) -> list[dict[str, Any]]:
        if webhook.resource != kinds.PODS or (webhook.mutate is not None and self.any_pod):
            return []
        names = ", ".join(f"'{name}'" for name in self.schedulers)
        ours = f"object.spec.?schedulerName.orValue('') in [{names}]"
        if webhook.mutate is not None:
            # A webhook of others may set the scheduler's name later, and we are asked again then
            # only if we were asked before.
            member = f"object.metadata.?annotations[?'{GROUP_ANNOTATION}'].hasValue()"
            name = "scheduler-is-ours-or-may-become-it"
            return [{"name": name, "expression": f"{ours} || {member}"}]
        # Five hundred pods of a job at once shall not all come by: the job was judged. Of changes
        # those matter that could tell a pod without a node its devices.
        alone = f"!object.metadata.?labels[?'{JOB_NAME}'].hasValue()"
        told = f"object.metadata.?annotations.orValue({{}}).exists(key, key.matches('{TELLING}'))"
        new = f"(request.operation == 'CREATE' && {alone})"
        return [
            {"name": "scheduler-is-ours", "expression": ours},
            {
                "name": "new-and-not-of-a-job-or-tells-devices",
                "expression": f"{new} || (object.spec.?nodeName.orValue('') == '' && {told})",
            },
        ]


def _rule(webhook: Webhook) -> Object:
    group, _, version = webhook.resource.api_version.rpartition("/")
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": list(webhook.operations),
        "resources": [webhook.resource.plural],
        "scope": "Namespaced" if webhook.resource.namespaced else "Cluster",
    }
