"""All that decides who may call this gateway: the clients of the HTTP server, and those of the admin listener.

The admin listener's pages, except those for probes and Prometheus, need a token of ``--admin-token-file``. Without that
flag, clients on the same machine may call them: the listener is plain HTTP, and may be open to a cluster's probes.
The dashboard's page, in which a user enters the token, is open too; its data are not.
"""

from ipaddress import IPv6Address, ip_address
from typing import Final

import structlog

from gateway.serving import web
from gateway.serving.authentication import ADMIN_CHALLENGE, ClientAuthentication, presents
from gateway.serving.credential_files import (
    ADMIN_TOKENS,
    BEARER_TOKENS,
    PASSWORDS,
    PATH_SECRETS,
    CredentialFile,
    CredentialFiles,
)
from gateway.serving.refusals import Refusal, Refused, quote
from gateway.serving.settings import Settings
from gateway.telemetry.events import Events

_LOG: Final = structlog.get_logger(__name__)

DASHBOARD: Final = "/ui"
_DASHBOARD_DATA: Final = f"{DASHBOARD}/api/"

_OPEN_TO_ALL: Final = (
    "every client that reaches this address can call the policies; set --client-ca, --bearer-token-file, "
    "--basic-auth-file or --path-secret-file, and kube-apiserver's credentials (docs/operate.md, Who may call)"
)

_HEALTH_ONLY: Final = (
    "other machines read /livez, /readyz and /metrics only; for /explain, /ui/ and /purge from there, set "
    "--admin-token-file"
)


class AccessControl:
    """Who may call one gateway. ``files`` are those of the credentials, ``clients`` and ``admin`` check requests.

    Raises:
        CredentialError: a file cannot be used.
    """

    def __init__(self, settings: Settings, events: Events) -> None:
        kinds = {
            BEARER_TOKENS: settings.bearer_token_file,
            PASSWORDS: settings.basic_auth_file,
            PATH_SECRETS: settings.path_secret_file,
        }
        files = [CredentialFile(path, kind) for kind, path in kinds.items() if path is not None]
        tokens = settings.admin_token_file
        admin = CredentialFile(tokens, ADMIN_TOKENS) if tokens is not None else None
        self.clients = ClientAuthentication(
            certificates=bool(settings.client_cas), allowed_names=settings.client_allowed_names, files=files
        )
        self.admin = AdminAccess(admin)
        self.files = CredentialFiles([*files, *([] if admin is None else [admin])], events)

    def warn(self, host: str, admin_host: str) -> None:
        """Log a warning if everything that reaches ``host`` may call, and what others read at ``admin_host``."""
        if not self.clients.required and not is_loopback(host):
            _LOG.warning("clients need no credentials", address=host, why=_OPEN_TO_ALL)
        if not self.admin.has_tokens and not is_loopback(admin_host):
            _LOG.info("the admin listener has no tokens", address=admin_host, why=_HEALTH_ONLY)


class AdminAccess:
    """Checks who may call the guarded pages of the admin listener. ``tokens``: those that may; None: see above."""

    def __init__(self, tokens: CredentialFile | None = None) -> None:
        self._tokens = tokens
        self.has_tokens = tokens is not None

    def require(self, request: web.BaseRequest, path: str) -> None:
        """Raise Refused unless the client may call this page."""
        if path.startswith(_DASHBOARD_DATA) and _is_from_another_site(request):
            raise Refused(Refusal.FORBIDDEN, f"{quote(path)} is for the dashboard's own page; open {DASHBOARD}/")
        if self._tokens is not None:
            if not _is_where_tokens_are_entered(path) and not presents(request, [self._tokens]):
                text = f"{quote(path)} needs a token of --admin-token-file, as Authorization: Bearer"
                raise Refused(Refusal.UNAUTHENTICATED, text, challenge=ADMIN_CHALLENGE)
        elif not is_loopback(request.remote):
            raise _not_from_here(path, quote(request.remote or ""))
        elif not _is_own_page(request):
            sent = [f"{name} {quote(request.headers[name])}" for name in ("Host", "Origin") if name in request.headers]
            raise _not_from_here(path, f"a client that sends {' and '.join(sent)}")


def _not_from_here(path: str, client: str) -> Refused:
    text = (
        f"only programs on this machine may call {quote(path)}, not {client}; "
        "call it in the pod, by localhost, or set --admin-token-file"
    )
    return Refused(Refusal.FORBIDDEN, text)


def _is_where_tokens_are_entered(path: str) -> bool:
    """Whether a path is of the dashboard's page, which holds no data: there a user enters the token."""
    return f"{path}/".startswith(f"{DASHBOARD}/") and not path.startswith(_DASHBOARD_DATA)


def _is_from_another_site(request: web.BaseRequest) -> bool:
    """Whether a browser says that a page of another origin has made the request, as an image, which has no Origin."""
    return request.headers.get("Sec-Fetch-Site", "same-origin") not in {"same-origin", "none"}


def _is_own_page(request: web.BaseRequest) -> bool:
    """Whether a request is from a program, or from a page of this listener.

    Any web page that is open on this machine can send requests to it. A browser adds Origin to each POST of a page, and
    to each GET of which another origin's page wants to read the answer; and a page whose DNS name its owner has pointed
    at 127.0.0.1 (DNS rebinding) gives that name in Host.
    """
    host = request.headers.get("Host")
    if host is None:
        return "Origin" not in request.headers
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    own = name.lower() == "localhost" or is_loopback(name)
    return own and request.headers.get("Origin") in {None, f"http://{host}"}


class ParentAccess(AdminAccess):
    """Lets all requests in: they come from the parent of this process, which has checked who may call."""

    def require(self, request: web.BaseRequest, path: str) -> None:
        """See AdminAccess."""


def is_loopback(host: str | None) -> bool:
    """Whether an IP address is of the loopback interface; False for what is none."""
    try:
        address = ip_address(host or "")
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback
