"""The manifests of the story, and the configuration that it is told with."""

from importlib.resources import files

import yaml

from app.wire.documents import Document

CONF = "volcano-scheduler-preempting.conf"
"""The shipped configuration that evicts."""


def conf() -> str:
    """The scheduler's configuration."""
    return files("app.sandbox.story").joinpath(CONF).read_text(encoding="utf-8")


def manifests() -> dict[str, Document]:
    """The documents by ``kind/name``."""
    text = files("app.sandbox.story").joinpath("jobs.yaml").read_text(encoding="utf-8")
    return {f"{d['kind']}/{d['metadata']['name']}": d for d in yaml.safe_load_all(text)}
