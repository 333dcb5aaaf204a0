"""The gateway's credentials for existing webhooks, and the addresses that replace DNS. Set once per process.

kube-apiserver takes its credentials for webhooks from a kubeconfig whose users are named after webhooks. The same files
give the gateway the same credentials. It uses the first user with one of these names (authenticationInfoResolver,
k8s.io/apiserver, pkg/util/webhook/authentication.go):

1. ``HOST:PORT`` of the webhook, as in its url (port 443 if it has none); of a service ``NAME.NAMESPACE.svc:PORT``.
2. ``*.REST``, where REST is the part after the first dot, then after the second, and so on, always with the port.
3. If the port is 443: the same two without ``:443``.
4. ``*``.
5. The user of the current context.

If there is none, the gateway sends no credentials. (kube-apiserver has one more rule, between 3 and 4: for itself,
``kubernetes.default.svc:443``, it uses the credentials of its own pod. The gateway never sends its pod's credentials.)

A user is used as a whole: a user without credentials is anonymous, even if a later name has some.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct, field

from gateway.policies.model import Phase
from gateway.quoting import Redacted

HostPort = tuple[str, int]

_HTTPS: Final = "443"


class AccessError(Exception):
    """Invalid options or files about access to webhooks. ``str(error)``: which one, the error, and what to do."""


class Credentials(Redacted, Struct, frozen=True, kw_only=True):
    """A user of a kubeconfig; empty: anonymous.

    ``certificate`` and ``key`` are PEM, and take precedence over ``certificate_file`` and ``key_file``, which are read
    again when they change; so is ``token_file``, which takes precedence over ``token`` while it can be read.
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
        """The credentials for ``HOST:PORT``."""
        for name in _names(target):
            found = self.named.get(name)
            if found is not None:
                return found
        return self.current or ANONYMOUS


class WebhookAccess(Struct, frozen=True, kw_only=True):
    """``mutating`` and ``validating`` are the users for each kind of call. ``resolved`` maps (host, port), with the
    host in lower case, to the (host, port) that is dialled instead.
    """

    mutating: Users = field(default_factory=Users)
    validating: Users = field(default_factory=Users)
    resolved: Mapping[HostPort, HostPort] = field(default_factory=dict)

    def credentials(self, phase: Phase, target: str) -> Credentials:
        """The credentials for ``HOST:PORT`` in a phase."""
        return (self.mutating if phase is Phase.MUTATING else self.validating).of(target)


def join_host_port(host: str, port: int | str) -> str:
    """Go's net.JoinHostPort: a host with a colon is put into brackets, even if it is in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _names(target: str) -> Iterator[str]:
    """The names of a user that apply to a target, in order of precedence."""
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
    """The host, if Go's net.SplitHostPort finds one with port 443."""
    host, colon, port = target.rpartition(":")
    if not colon or port != _HTTPS:
        return None
    if host.startswith("["):
        return host[1:-1] if host.find("]") == len(host) - 1 and "[" not in host[1:] else None
    return None if any(mark in host for mark in ":[]") else host
