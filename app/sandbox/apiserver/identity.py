"""What an update leaves as it is: the name and the UID of an object, and its status or the rest."""

from app.sandbox.apiserver import errors
from app.sandbox.apiserver.registry import ResourceKind
from app.sandbox.apiserver.target import Target
from app.wire.documents import Document

_KEPT_METADATA = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "resourceVersion",
)


def check_name(target: Target, new: Document) -> None:
    """What is sent to a path must be what the path names."""
    found = new["metadata"].get("name")
    if not found:
        raise errors.bad_request(
            f"the name of the object ({target.name} based on URL) was undeterminable: name must be"
            " provided"
        )
    if found != target.name:
        raise errors.bad_request(
            f"the name of the object ({found}) does not match the name on the URL ({target.name})"
        )


def check_applied(kind: ResourceKind, body: Document) -> None:
    """Check that an applied object says itself what it is."""
    version, name = body.get("apiVersion") or "", body.get("kind") or ""
    if (version, name) != (kind.api_version, kind.kind):
        group, _, short = str(version).rpartition("/")
        raise errors.bad_request(f"invalid object type: {group}/{short}, Kind={name}")


def check_uid(target: Target, new: Document, old: Document) -> None:
    """The UID in a whole object is a precondition, looked at before its revision."""
    kind, uid, found = target.kind, new["metadata"].get("uid"), old["metadata"]["uid"]
    if uid and uid != found:
        home = f"{kind.group}/{kind.plural}" if kind.custom else kind.plural
        key = f"/registry/{home}/{target.object_name}"
        why = errors.storage_precondition(key, "UID", uid, found=found)
        raise errors.conflict(kind.plural, kind.group, target.name, why=why)


def uid_errors(new: Document, old: Document) -> list[errors.FieldError]:
    """The UID in a patch is a field like others; the real server looks at it twice."""
    uid = new["metadata"].get("uid")
    if not uid or uid == old["metadata"]["uid"]:
        return []
    return [errors.invalid_value("metadata.uid", uid, "field is immutable")] * 2


def keep_identity(new: Document, old: Document) -> None:
    """What no update can change comes from the stored document."""
    metadata = new["metadata"]
    for name in _KEPT_METADATA:
        if name in old["metadata"]:
            metadata[name] = old["metadata"][name]
        else:
            metadata.pop(name, None)
    metadata.pop("managedFields", None)


def split_status(target: Target, new: Document, old: Document) -> None:
    """An update of the object leaves the status alone, and the other way round."""
    kind = target.kind
    if not kind.has_status:
        return
    if target.subresource != "status":
        new.pop("status", None)
        if "status" in old:
            new["status"] = old["status"]
        return
    for name in [name for name in new if name not in {"status", "metadata"}]:
        if name not in old:
            del new[name]
    for name, value in old.items():
        if name not in {"status", "metadata"}:
            new[name] = value
    if kind.custom:
        new["metadata"] = dict(old["metadata"])


def desired(kind: ResourceKind, document: Document) -> Document:
    """The part of an object whose change makes a new generation."""
    if kind.custom or kind.has_status:
        left_out = {"metadata", "status"} if kind.has_status else {"metadata"}
        return {key: value for key, value in document.items() if key not in left_out}
    return {key: value for key, value in document.items() if key != "metadata"}
