"""ColocationConfigurations: their selector can be read, and they change something for some pods."""

from app.webhooks.world import Request, World
from app.wire.errors import DecodeError
from app.wire.findings import Findings
from app.wire.objects.colocation import SELECTOR, selector_of
from app.wire.unstructured import is_deleting, spec


def check_colocation(request: Request, _world: World) -> Findings:
    """What is wrong with one; ratios beyond their limits are the schema's to refuse."""
    findings = Findings()
    if is_deleting(request.item):
        return findings
    said = spec(request.item)
    try:
        selector = selector_of(said)
    except DecodeError as error:
        findings.refuse(error.path, error.message)
        return findings
    if selector is None:
        findings.warn(SELECTOR, "no pod is selected; {} selects all pods of the namespace")
    if said.get("memoryQos") is None:
        findings.warn("spec.memoryQos", "it says nothing, so nothing changes for the pods")
    return findings
