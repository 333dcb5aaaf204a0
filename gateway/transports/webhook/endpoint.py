"""The URL of a webhook, as kube-apiserver makes it of a clientConfig; nothing else in the gateway reads one for a call.

* A service is ``https://NAME.NAMESPACE.svc:PORT``, always with its port, and its path.
* A url keeps its host as it is written. Its path is taken apart and put together again by Go (path.Join, url.String):
  no empty segments, no ``..``, no slash at the end, and escaped in Go's own way.
* Behind the path stands ``?timeout=Ns``.
"""

import posixpath
import re
from math import ceil
from typing import Final
from urllib.parse import quote, unquote_to_bytes, urljoin, urlsplit

from gateway.policies.workers.targets import WebhookTarget
from gateway.policies.workers.urls import parse_url
from gateway.transports.webhook.access import join_host_port

LONGEST_TIMEOUT: Final = 30
"""Seconds: the longest timeoutSeconds that Kubernetes knows."""

_HTTPS: Final = 443
_PATH_END: Final = re.compile(r"[?#]")

_PLAIN: Final = "$&+,/:;=@-_.~"
"""What Go leaves as it is in a path (net/url, shouldEscape with encodePath), besides letters and digits."""


class WebhookEndpoint:
    """Where one webhook is.

    ``authority`` is host and port as the Host header has them, ``target`` the same as users of a kubeconfig are named,
    ``host`` and ``port`` what is connected to, ``url`` all of it without a query.
    """

    def __init__(self, target: WebhookTarget) -> None:
        if target.service is not None:
            name = f"{target.service.name}.{target.service.namespace}.svc"
            self.authority = self.target = join_host_port(name, target.service.port)
            path = target.service.path
        else:
            _, _, rest = target.url.partition("//")
            self.authority = parse_url(target.url).host
            has_port = self.authority.rpartition("]")[2].rpartition(":")[2].isdigit() and ":" in self.authority
            self.target = self.authority if has_port else join_host_port(self.authority, _HTTPS)
            path = _PATH_END.split(rest.partition("/")[2], maxsplit=1)[0]
        self.host, self.port = _host_port(self.authority)
        self.url = f"https://{self.authority}{_joined(path)}"

    def with_timeout(self, left: float) -> str:
        """The URL of a call that may take so long: ``?timeout=`` is the time left, rounded up to whole seconds."""
        return f"{self.url}?timeout={min(max(ceil(left), 1), LONGEST_TIMEOUT)}s"

    def moved(self, url: str, location: str) -> str | None:
        """The URL to which a redirect leads from ``url``; None if that is not at this webhook's own host and port."""
        try:
            joined = urljoin(url, location)
            split = urlsplit(joined)
            if split.scheme != "https" or split.username is not None or not split.netloc.isascii():
                return None
            at = (split.hostname or "").lower(), split.port or _HTTPS
        except ValueError:
            return None
        is_plain = joined.isascii() and joined.isprintable() and " " not in joined
        return joined.partition("#")[0] if is_plain and at == (self.host.lower(), self.port) else None


def _joined(path: str) -> str:
    """Go's path.Join("/", path), escaped."""
    cleaned = posixpath.normpath("/" + unquote_to_bytes(path).decode("latin-1").lstrip("/"))
    return quote(cleaned.encode("latin-1"), safe=_PLAIN)


def _host_port(authority: str) -> tuple[str, int]:
    if authority.startswith("["):
        host, _, rest = authority[1:].partition("]")
        return host, int(rest[1:] or _HTTPS)
    host, _, port = authority.partition(":")
    return host, int(port or _HTTPS)
