"""The URL of a webhook, as kube-apiserver makes it from a clientConfig.

* A service is ``https://NAME.NAMESPACE.svc:PORT``, always with its port, and its path.
* A url keeps its host unchanged. Its path is normalized like Go's path.Join and url.String do: no empty segments, no
  ``..``, no slash at the end, and Go's escaping.
* The query is ``?timeout=Ns``.
"""

import posixpath
import re
from math import ceil
from typing import Final
from urllib.parse import quote, unquote_to_bytes, urljoin, urlsplit

from gateway.policies.workers.targets import WebhookTarget
from gateway.policies.workers.urls import parse_url
from gateway.transports.webhook.client_credentials import join_host_port

LONGEST_TIMEOUT: Final = 30
"""Seconds: the longest timeoutSeconds that Kubernetes allows."""

_HTTPS: Final = 443
_PATH_END: Final = re.compile(r"[?#]")

_PLAIN: Final = "$&+,/:;=@-_.~"
"""The characters besides letters and digits that Go does not escape in a path (net/url, shouldEscape, encodePath)."""


class WebhookEndpoint:
    """The URL of one webhook.

    ``authority`` is host and port in the Host header, ``target`` in the names of a kubeconfig's users, ``host`` and
    ``port`` are those to connect to, ``url`` is the whole URL without a query.
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
        """The URL of a call: ``?timeout=`` is the remaining time, rounded up to whole seconds."""
        return f"{self.url}?timeout={min(max(ceil(left), 1), LONGEST_TIMEOUT)}s"

    def redirect_url(self, url: str, location: str) -> str | None:
        """The target of a redirect from ``url``; None if its host and port are not those of this webhook."""
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
