"""The manifests of the story."""

from importlib.resources import files

import yaml

from app.wire.documents import Document


def manifests() -> dict[str, Document]:
    """The documents by ``kind/name``."""
    text = files("app.sandbox.story").joinpath("jobs.yaml").read_text(encoding="utf-8")
    return {f"{d['kind']}/{d['metadata']['name']}": d for d in yaml.safe_load_all(text)}
