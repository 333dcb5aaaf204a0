"""What the gateway proves itself with at an existing webhook, and where it finds it: given to the process, once.

kube-apiserver takes its credentials for webhooks from a kubeconfig whose users are named after webhooks. Here the same
files give the same credentials. Of the users, the first counts whose name is (authenticationInfoResolver,
k8s.io/apiserver, pkg/util/webhook/authentication.go):

1. ``HOST:PORT`` of the webhook, as its url has it (port 443 if it has none); of a service ``NAME.NAMESPACE.svc:PORT``.
2. ``*.REST``, the rest being what stands behind the first dot, then behind the second, and so on, always with the port.
3. Where the port is 443: the same two without ``:443``.
4. ``*``.
5. The user of the current context.

Without any of these nothing at all is sent. (kube-apiserver has one more, between 3 and 4: for itself,
``kubernetes.default.svc:443``, the credentials of its own pod. The gateway's are for its own work, and not shown.)

A user is taken as a whole: one that is found and empty is anonymous, whatever stands further down.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct, field

from gateway.policies.model import Phase
from gateway.quoting import Redacted

HostPort = tuple[str, int]

_HTTPS: Final = "443"


class AccessError(Exception):
    """Options or files that say nothing usable about access to webhooks. ``str(error)``: which, what, what to do."""


class Credentials(Redacted, Struct, frozen=True, kw_only=True):
    """A user of a kubeconfig; empty: anonymous.

    ``certificate`` and ``key`` are PEM, and go before ``certificate_file`` and ``key_file``, which are read again when
    they change; so is ``token_file``, which goes before ``token`` as long as it can be read.
    """

    certificate: bytes = b""
    certificate_file: str = ""
    key: bytes = b""
    key_file: str = ""
    token: str = ""
    token_file: str = ""
    username: str = ""
    password: str = ""


ANONYMOUS: Final = Credentials()


class Users(Struct, frozen=True, kw_only=True):
    """The users of a kubeconfig. ``current`` is that of the current context, None if there is none."""

    named: Mapping[str, Credentials] = field(default_factory=dict)
    current: Credentials | None = None

    def of(self, target: str) -> Credentials:
        """Who the gateway is at ``HOST:PORT``."""
        for name in _names(target):
            found = self.named.get(name)
            if found is not None:
                return found
        return self.current or ANONYMOUS


class WebhookAccess(Struct, frozen=True, kw_only=True):
    """``mutating`` and ``validating`` are the users for either kind of call. ``resolved`` says of some (host, port),
    host in lower case, which (host, port) is to be dialled instead.
    """

    mutating: Users = field(default_factory=Users)
    validating: Users = field(default_factory=Users)
    resolved: Mapping[HostPort, HostPort] = field(default_factory=dict)

    def credentials(self, phase: Phase, target: str) -> Credentials:
        """Who the gateway is in a phase at ``HOST:PORT``."""
        return (self.mutating if phase is Phase.MUTATING else self.validating).of(target)


def join_host_port(host: str, port: int | str) -> str:
    """Go's net.JoinHostPort: whatever has a colon in it is put into brackets, even if it is in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _names(target: str) -> Iterator[str]:
    """What a user may be called, the best name first."""
    yield target
    yield from _suffixes(target)
    host = _host_of_https(target)
    if host is not None:
        yield host
        yield from _suffixes(host)
    yield "*"


def _suffixes(target: str) -> Iterator[str]:
    steps = target.split(".")
    for first in range(1, len(steps)):
        yield "*." + ".".join(steps[first:])


def _host_of_https(target: str) -> str | None:
    """The host, where Go's net.SplitHostPort finds one with port 443."""
    host, colon, port = target.rpartition(":")
    if not colon or port != _HTTPS:
        return None
    if host.startswith("["):
        return host[1:-1] if host.find("]") == len(host) - 1 and "[" not in host[1:] else None
    return None if any(mark in host for mark in ":[]") else host
