"""Where kube-scheduler's calls are served."""

from typing import Final

PREFIXES: Final = ("", "/v1")

VERBS: Final = ("filter", "prioritize", "bind", "preempt")

VERB_OF: Final = {f"{prefix}/{verb}": verb for prefix in PREFIXES for verb in VERBS}
"""By path."""
