"""Whether a text is the URL of a web server: what every client takes, and kube-scheduler too."""

from urllib.parse import urlsplit


def is_web_url(text: str) -> bool:
    """Whether it has a scheme of the web, a host, and a port that can be one, if any."""
    try:
        parts = urlsplit(text)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
