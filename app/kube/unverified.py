"""API servers whose certificate is not looked at, as ``insecure-skip-tls-verify`` asks.

urllib3 warns of every connection to one. Who asked for it knows; of all other hosts it goes on.
"""

import re
import warnings
from urllib.parse import urlsplit

from urllib3.exceptions import InsecureRequestWarning


def expect(*urls: str | None) -> None:
    """Let nobody be warned of connections to these servers; None is no server."""
    for url in urls:
        # The name as urllib3 has it: without the brackets of an IPv6 address or a dot at the end.
        host = (urlsplit(url or "").hostname or "").rstrip(".")
        if host:
            text = f"Unverified HTTPS request is being made to host '{host}'"
            warnings.filterwarnings("ignore", re.escape(text), InsecureRequestWarning)
