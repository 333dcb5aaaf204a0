"""TLS and credentials of the calls of a webhook: trusted authorities, and the gateway's credentials; from files that
change.

* Trusted are the caBundle of the configuration, or this machine's authorities. As in Go, a certificate in it is trusted
  whether it is an authority's or the webhook's own, and unreadable certificates are skipped.
* The name in the certificate must be a subjectAltName, not the common name. TLS 1.2 or newer, and HTTP/1.1 by ALPN.
* When there is a call, files are checked after ``webhook_reload_seconds``, in a thread, so that no call waits for a
  file system. Changes apply to new connections. If a file becomes unusable, the earlier content stays in use, and the
  log reports it once; if there was none, calls fail with the reason until the file can be used.
"""

import asyncio
import base64
import binascii
import contextlib
import re
import ssl
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, time
from typing import Final

import structlog
from msgspec import Struct

from gateway.quoting import Redacted
from gateway.transports.certificates import SYSTEM
from gateway.transports.credentials import file_content, file_state, system_file
from gateway.transports.webhook.client_credentials import Credentials
from gateway.transports.webhook.kubeconfig import is_header

_LOG: Final = structlog.get_logger(__name__)

_BLOCK: Final = re.compile(rb"-----BEGIN CERTIFICATE-----(.*?)-----END CERTIFICATE-----", re.DOTALL)
_ENCRYPTED: Final = re.compile(rb"-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED", re.MULTILINE)

_STABLE_SECONDS: Final = 2.0
"""The age of a file's last change from which its times show the next change: the coarsest clock of a file system (FAT)
has ticks of two seconds."""


class WebhookTlsError(Exception):
    """A file cannot be used; ``str(error)``: which one, why, and what to do."""


class WebhookTls(Redacted, Struct, frozen=True, kw_only=True):
    """TLS and credentials of a call. ``context`` is the same object while its content is the same."""

    context: ssl.SSLContext
    authorization: str = ""
    has_client_certificate: bool = False


_Contents = dict[str, bytes]


class WebhookTlsLoader:
    """Keeps the WebhookTls of one webhook and one set of credentials.

    Args:
        worker: the Worker's name, for the log.
        ca_bundle: PEM; empty: the system's authorities.
        credentials: the gateway's.
        reload_seconds: how often files are checked.
    """

    def __init__(self, worker: str, ca_bundle: bytes, credentials: Credentials, reload_seconds: float) -> None:
        self._worker = worker
        self._ca_bundle = ca_bundle
        self._credentials = credentials
        self._reload_seconds = reload_seconds
        self._is_fixed = not self._paths()
        self._tls: WebhookTls | None = None
        self._error: WebhookTlsError | None = None
        self._checked = 0.0
        self._check_task: asyncio.Task[None] | None = None
        self._states: tuple[tuple[int, ...], ...] | None = None
        self._contents: _Contents | None = None

    async def current(self) -> WebhookTls:
        """The WebhookTls as of the last check.

        Raises:
            WebhookTlsError: no check has succeeded yet.
        """
        is_due = monotonic() - self._checked >= self._reload_seconds and not (self._tls and self._is_fixed)
        if is_due or (self._tls is None and self._error is None):
            if self._check_task is None:
                self._check_task = asyncio.create_task(self._check())
            if self._tls is None:
                # Shielded: other calls wait for the same check.
                await asyncio.shield(self._check_task)
        if self._tls is not None:
            return self._tls
        assert self._error is not None  # noqa: S101 - a check sets one of the two
        # A new one each time: a raised exception keeps the frames of each raise.
        raise WebhookTlsError(str(self._error))

    async def close(self) -> None:
        """Stop checking."""
        if self._check_task is not None:
            self._check_task.cancel()
            await asyncio.gather(self._check_task, return_exceptions=True)

    async def _check(self) -> None:
        try:
            tls = await asyncio.to_thread(self._read)
        except WebhookTlsError as error:
            if self._error is None or str(self._error) != str(error):
                _LOG.warning("a webhook's TLS files cannot be used", worker=self._worker, why=str(error))
            self._error = error
        except Exception as error:  # noqa: BLE001 - logged, and tried again: no other task would
            _LOG.exception("reading a webhook's TLS files failed inside the gateway", worker=self._worker)
            self._error = WebhookTlsError(f"{type(error).__name__} in the gateway; see the gateway's log")
        else:
            self._tls, self._error = tls, None
        finally:
            self._checked = monotonic()
            self._check_task = None

    # ------------------------------------------------------------------------------------------------ in a thread

    def _read(self) -> WebhookTls:
        """The WebhookTls from the files as they are; the same one if they are the same."""
        paths = self._paths()
        states = tuple(file_state(path) for path in paths.values())
        if self._tls is not None and self._error is None and states == self._states:
            return self._tls
        # A file that was just written may be written again within the same tick of its clock.
        latest = max((state[-1] for state in states if state), default=0)
        self._states = states if latest < (time() - _STABLE_SECONDS) * 1e9 else None
        contents = {label: self._content(label, path) for label, path in paths.items()}
        token = contents.pop("tokenFile", None)
        authorization = self._authorization(token)
        before = self._tls
        if before is not None and contents == self._contents:
            context = before.context
        else:
            context = self._context(contents)
            self._contents = contents
        return WebhookTls(
            context=context,
            authorization=authorization,
            has_client_certificate=bool(self._credentials.certificate or self._credentials.certificate_file),
        )

    def _paths(self) -> dict[str, str]:
        credentials = self._credentials
        files = {
            "client-certificate": "" if credentials.certificate else credentials.certificate_file,
            "client-key": "" if credentials.key else credentials.key_file,
            "tokenFile": credentials.token_file,
        }
        paths = {label: path for label, path in files.items() if path}
        if not self._ca_bundle:
            paths[SYSTEM] = system_file()
        return paths

    def _content(self, label: str, path: str) -> bytes:
        if not path:
            raise WebhookTlsError(f"{SYSTEM}: no file found at any of the known paths; set caBundle")
        content = file_content(path)
        if isinstance(content, bytes):
            return content
        if label == "tokenFile" and self._credentials.token:
            return b""
        raise WebhookTlsError(f"{label} {path}: {content}; put a file there that this user can read")

    def _authorization(self, token: bytes | None) -> str:
        credentials = self._credentials
        if credentials.username or credentials.password:
            return "Basic " + base64.b64encode(f"{credentials.username}:{credentials.password}".encode()).decode()
        bearer = credentials.token if token is None else (token.decode(errors="replace").strip() or credentials.token)
        if not bearer and not credentials.token_file:
            return ""
        if not bearer:
            raise WebhookTlsError(f"tokenFile {credentials.token_file}: read empty token from file")
        if not is_header(bearer):
            raise WebhookTlsError(f"tokenFile {credentials.token_file}: must be a token of printable ASCII")
        return f"Bearer {bearer}"

    def _context(self, contents: _Contents) -> ssl.SSLContext:
        # Not ssl.create_default_context: since Python 3.13 it rejects what Go accepts (VERIFY_X509_STRICT).
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.hostname_checks_common_name = False
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        context.set_alpn_protocols(["http/1.1"])
        _trust(context, self._ca_bundle or contents[SYSTEM])
        credentials = self._credentials
        certificate = credentials.certificate or contents.get("client-certificate", b"")
        if certificate:
            key = credentials.key or contents.get("client-key", b"")
            self._load_pair(context, certificate, key)
        return context

    def _load_pair(self, context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
        if _ENCRYPTED.search(key):
            raise WebhookTlsError("client-key: it is encrypted, and the gateway has no password for it; decrypt it")
        # The ssl module reads files only. These are a copy of one moment, which no other user can open.
        with contextlib.ExitStack() as stack:
            certificate_file, key_file = (stack.enter_context(_file(content)) for content in (certificate, key))
            try:
                context.load_cert_chain(certificate_file, key_file, password=_no_password)
            except (ssl.SSLError, OSError, ValueError) as error:
                why = getattr(error, "reason", None) or type(error).__name__
                raise WebhookTlsError(
                    f"client-certificate and client-key cannot be used ({why}); give a PEM certificate and the private "
                    "key that was issued with it"
                ) from None


@contextlib.contextmanager
def _file(content: bytes) -> Iterator[Path]:
    with tempfile.NamedTemporaryFile(prefix="admission-gateway-") as file:
        file.write(content)
        file.flush()
        yield Path(file.name)


def _no_password() -> str:
    raise ValueError("protected by a password")


def _trust(context: ssl.SSLContext, bundle: bytes) -> None:
    """Like AppendCertsFromPEM: blocks that are no certificate are skipped, if there is at least one certificate."""
    found = 0
    for match in _BLOCK.finditer(bundle):
        with contextlib.suppress(binascii.Error, ValueError, ssl.SSLError):
            context.load_verify_locations(cadata=base64.b64decode(b"".join(match[1].split()), validate=True))
            found += 1
    if not found:
        raise WebhookTlsError(
            "unable to load root certificates: unable to parse bytes as PEM block; caBundle (without one: the system's "
            "file of authorities) must hold a PEM certificate"
        )
