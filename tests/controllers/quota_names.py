"""``minResources`` as quotas name what pods ask for."""

from app.wire.unstructured import Object


def least(pods: int, *, limits: Object | None = None, **requests: str) -> Object:
    """Of so many pods that together ask for ``requests`` and have ``limits``."""
    return {
        "count/pods": str(pods),
        "pods": str(pods),
        **requests,
        **{f"requests.{name}": amount for name, amount in requests.items()},
        **{f"limits.{name}": amount for name, amount in (limits or {}).items()},
    }
