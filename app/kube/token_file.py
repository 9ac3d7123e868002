"""A token in a file (``tokenFile``) that somebody writes anew before it expires."""

from pathlib import Path
from typing import Final

from kubernetes.config import ConfigException

from app.kube.login import Given

KEEP_S: Final = 60.0
"""As client-go does; the one who writes is expected to do so well before the token expires."""


def read(file: Path) -> Given:
    """What the file says now."""
    text = file.read_text(encoding="utf-8").strip()
    if not text:
        raise ConfigException(f"the token file {file} is empty")
    return Given(token=text, keep_s=KEEP_S)
