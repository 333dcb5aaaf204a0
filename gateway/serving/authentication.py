"""Which clients may call: those with one of the credentials that the gateway's flags name.

    ===================  =======================================================================================
    flag                 what authenticates a client
    ===================  =======================================================================================
    --client-ca          a certificate of the CA, with a name of --client-allowed-name if there is any
    --bearer-token-file  a token of the file
    --basic-auth-file    a user and password of the file
    --path-secret-file   a secret of the file, as the first segment of the path
    ===================  =======================================================================================

Any one of them is enough. Without any of these flags every client may call.

    ======  ========================================================================================================
    status  when
    ======  ========================================================================================================
    401     no credential, or a wrong one: RFC 9110, 15.5.2, "MUST send a WWW-Authenticate header field"
    403     a certificate without an allowed name; and instead of 401 where no HTTP authentication could succeed
    ======  ========================================================================================================

A name is the subject's CN, or a DNS or URI name of subjectAltName; compared as it stands, without wildcards. (For
kube-apiserver's ``--requestheader-allowed-names`` it is the CN, for etcd's ``--client-cert-allowed-hostname`` a
subjectAltName.)

The check needs the header only: a refused client's body is never parsed. It compares digests with
``hmac.compare_digest``, with all of them, so its time tells nothing about a credential.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from gateway.serving import web
from gateway.serving.credential_files import BEARER_TOKENS, PASSWORDS, PATH_SECRETS, CredentialFile
from gateway.serving.refusals import Refusal, Refused, quote

ADMIN_CHALLENGE: Final = 'Bearer realm="admission-gateway"'
"""WWW-Authenticate for a page of the admin listener."""

_CHALLENGES: Final = {
    BEARER_TOKENS.flag: ADMIN_CHALLENGE,
    PASSWORDS.flag: 'Basic realm="admission-gateway", charset="UTF-8"',
}

_SHOWN_NAMES: Final = 5
"""Names of a certificate that a refusal quotes: API servers' have one or two."""


class ClientAuthentication:
    """Checks which clients may call for reviews.

    ``required``: clients need credentials. ``has_other_credentials``: there are others than certificates.

    Args:
        certificates: whether a verified client certificate authenticates.
        allowed_names: the names of which a certificate must have one; empty: any certificate will do.
        files: the credentials of HTTP and of the path; at most one of each kind.
    """

    def __init__(
        self, *, certificates: bool = False, allowed_names: Collection[str] = (), files: Sequence[CredentialFile] = ()
    ) -> None:
        self._certificates = certificates
        self._allowed_names = frozenset(allowed_names)
        self._headers = tuple(file for file in files if file.kind.flag in _CHALLENGES)
        self._paths = next((file for file in files if file.kind is PATH_SECRETS), None)
        self._challenge = ", ".join(_CHALLENGES[file.kind.flag] for file in self._headers)
        self.has_other_credentials = bool(files)
        self.required = certificates or bool(files)

    def path(self, request: web.BaseRequest, path: str, names: Collection[str] | None) -> str:
        """The path of an authenticated client's request, without the secret.

        Args:
            request: its header.
            path: its path, as it was sent.
            names: those of the client's verified certificate; None: it has none.

        Raises:
            Refused: the client may not call.
        """
        if not self.required:
            return path
        secret, inner = self._without_secret(path)
        if self._is_authenticated(request, names) or secret:
            return inner
        raise self._refusal(request, names)

    def _without_secret(self, path: str) -> tuple[bool, str]:
        """Whether the first segment is a secret, and the path after it."""
        if self._paths is None:
            return False, path
        segment, slash, rest = path[1:].partition("/")
        found = self._paths.matches(_bytes(segment))
        return found, slash + rest if found else path

    def _is_authenticated(self, request: web.BaseRequest, names: Collection[str] | None) -> bool:
        if names is not None and self._certificates and self._is_allowed(names):
            return True
        return presents(request, self._headers)

    def _is_allowed(self, names: Collection[str]) -> bool:
        return not self._allowed_names or not self._allowed_names.isdisjoint(names)

    def _refusal(self, request: web.BaseRequest, names: Collection[str] | None) -> Refused:
        if names is not None and self._certificates:
            shown = ", ".join(quote(name) for name in sorted(names)[:_SHOWN_NAMES]) or "no name"
            text = f"the client certificate has {shown}, none of which is allowed; see --client-allowed-name"
            return Refused(Refusal.FORBIDDEN, text)
        what = "wrong credentials" if "Authorization" in request.headers else "no credentials"
        if not self._headers:
            what = "no certificate or path secret" if self._certificates else "no path secret"
        text = f"the client has {what}; give kube-apiserver those of this gateway (docs/operate.md, Who may call)"
        if not self._challenge:
            return Refused(Refusal.FORBIDDEN, text)
        return Refused(Refusal.UNAUTHENTICATED, text, challenge=self._challenge)


def presents(request: web.BaseRequest, files: Iterable[CredentialFile]) -> bool:
    """Whether a request's header ``Authorization`` holds a credential of these files."""
    fields = request.headers.getall("Authorization", ())
    if len(fields) != 1:
        # RFC 9110, 5.3: a field that is no list must not be sent twice. Proxies differ in which one they read.
        return False
    scheme, _, credentials = fields[0].partition(" ")
    # RFC 9110, 11.1: "a case-insensitive token to identify the authentication scheme".
    presented = _bytes(f"{scheme.lower()} {credentials.strip(' ')}")
    found = False
    for file in files:
        found |= file.matches(presented)
    return found


def certificate_names(certificate: Mapping[str, Any] | None) -> frozenset[str] | None:
    """The names of a verified client certificate, as ``ssl.SSLSocket.getpeercert`` gives it; None without one."""
    if not certificate:
        return None
    subject = (field for part in certificate.get("subject", ()) for field in part)
    common = [value for key, value in subject if key == "commonName"]
    alternative = [value for key, value in certificate.get("subjectAltName", ()) if key in {"DNS", "URI"}]
    return frozenset((*common, *alternative))


def _bytes(text: str) -> bytes:
    """The bytes of a header, of which aiohttp makes a text."""
    return text.encode("utf-8", "surrogateescape")
