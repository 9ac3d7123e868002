"""Whether a text is the URL of a web server: what every client takes, and kube-scheduler too."""

from ipaddress import ip_address
from urllib.parse import urlsplit


def is_web_url(text: str) -> bool:
    """Whether ``text`` has a scheme of the web, a host, and a port that can be one, if any."""
    if any(each.isspace() for each in text):  # `urlsplit` drops some of it, others do not
        return False
    try:
        parts = urlsplit(text)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def is_loopback(url: str) -> bool:
    """Whether ``url`` leads to this machine itself."""
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def base_of(text: str) -> str:
    """A URL that paths can be put behind, without a slash at its end; ValueError for any other."""
    if not is_web_url(text):
        raise ValueError(f"{text!r} is no http or https URL, such as http://host:port")
    if "?" in text or "#" in text:
        raise ValueError(f"{text!r} has a query or a fragment, behind which no path can be put")
    return text.rstrip("/")


def secure_base_of(text: str) -> str:
    """The address with https and without credentials, as the API server wants of webhooks."""
    parts = urlsplit(text) if is_web_url(text) else None
    if parts is None or parts.scheme != "https" or "@" in parts.netloc:
        raise ValueError(f"{text!r} is no https URL, such as https://host:port")
    return base_of(text)
