"""What secures the calls to a webhook: whom to believe, what the gateway proves itself with; from files that change.

* The caBundle of the configuration, or the authorities that the operator of this machine maintains. A certificate in it
  is believed whether it is an authority's or the webhook's own, as Go does; one that is not readable is passed over.
* The name in the certificate is a subjectAltName, never the common name. TLS 1.2 or newer, and HTTP/1.1 by ALPN.
* Files are looked at again after ``webhook_reload_seconds``, when there is something to call, in a thread: nobody waits
  for a file system. What has changed is for new connections. What cannot be used any more leaves what was there, and
  the log says so once; where nothing was there, the calls fail and say why, until it can be used.
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
from gateway.transports.webhook.access import Credentials
from gateway.transports.webhook.kubeconfig import is_header

_LOG: Final = structlog.get_logger(__name__)

_BLOCK: Final = re.compile(rb"-----BEGIN CERTIFICATE-----(.*?)-----END CERTIFICATE-----", re.DOTALL)
_ENCRYPTED: Final = re.compile(rb"-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED", re.MULTILINE)

_RESTED_SECONDS: Final = 2.0
"""How old a file's last change must be for its times to tell the next one: the coarsest clock of a file system (FAT)
has ticks of two seconds."""


class WebhookTlsError(Exception):
    """It cannot be used; ``str(error)`` says which, why, and what to do."""


class WebhookTls(Redacted, Struct, frozen=True, kw_only=True):
    """What a call is made with. ``context`` is the same object as long as it says the same."""

    context: ssl.SSLContext
    authorization: str = ""
    shows_certificate: bool = False


_Contents = dict[str, bytes]


class WebhookTlsLoader:
    """Keeps the WebhookTls of one webhook and one set of credentials.

    Args:
        worker: the Worker's name, for the log.
        ca_bundle: PEM; empty: the system's authorities.
        credentials: what the gateway proves itself with.
        reload_seconds: how often files are looked at.
    """

    def __init__(self, worker: str, ca_bundle: bytes, credentials: Credentials, reload_seconds: float) -> None:
        self._worker = worker
        self._ca_bundle = ca_bundle
        self._credentials = credentials
        self._reload_seconds = reload_seconds
        self._is_fixed = not self._paths()
        self._proof: WebhookTls | None = None
        self._error: WebhookTlsError | None = None
        self._looked = 0.0
        self._looking: asyncio.Task[None] | None = None
        self._states: tuple[tuple[int, ...], ...] | None = None
        self._secured: _Contents | None = None

    async def current(self) -> WebhookTls:
        """The WebhookTls as of the last look.

        Raises:
            WebhookTlsError: there is none, and has not been yet.
        """
        is_due = monotonic() - self._looked >= self._reload_seconds and not (self._proof and self._is_fixed)
        if is_due or (self._proof is None and self._error is None):
            if self._looking is None:
                self._looking = asyncio.create_task(self._look())
            if self._proof is None:
                # Whoever is cancelled leaves the look to the others.
                await asyncio.shield(self._looking)
        if self._proof is not None:
            return self._proof
        assert self._error is not None  # noqa: S101 - a look leaves one of the two
        # A new one each time: an exception that is raised holds on to whoever raised it.
        raise WebhookTlsError(str(self._error))

    async def close(self) -> None:
        """Look no more."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    async def _look(self) -> None:
        try:
            proof = await asyncio.to_thread(self._read)
        except WebhookTlsError as error:
            if self._error is None or str(self._error) != str(error):
                _LOG.warning("what secures the calls to a webhook cannot be used", worker=self._worker, why=str(error))
            self._error = error
        except Exception as error:  # noqa: BLE001 - logged, and tried again: nobody else would
            _LOG.exception("reading what secures the calls to a webhook failed", worker=self._worker)
            self._error = WebhookTlsError(f"{type(error).__name__} in the gateway; see its log")
        else:
            self._proof, self._error = proof, None
        finally:
            self._looked = monotonic()
            self._looking = None

    # ------------------------------------------------------------------------------------------------ in a thread

    def _read(self) -> WebhookTls:
        """The WebhookTls from the files as they are; the same one if they are the same."""
        paths = self._paths()
        states = tuple(file_state(path) for path in paths.values())
        if self._proof is not None and self._error is None and states == self._states:
            return self._proof
        # A file that was just written may be written again within the same tick of its clock.
        latest = max((state[-1] for state in states if state), default=0)
        self._states = states if latest < (time() - _RESTED_SECONDS) * 1e9 else None
        contents = {label: self._content(label, path) for label, path in paths.items()}
        token = contents.pop("tokenFile", None)
        authorization = self._authorization(token)
        before = self._proof
        if before is not None and contents == self._secured:
            context = before.context
        else:
            context = self._context(contents)
            self._secured = contents
        return WebhookTls(
            context=context,
            authorization=authorization,
            shows_certificate=bool(self._credentials.certificate or self._credentials.certificate_file),
        )

    def _paths(self) -> dict[str, str]:
        who = self._credentials
        files = {
            "client-certificate": "" if who.certificate else who.certificate_file,
            "client-key": "" if who.key else who.key_file,
            "tokenFile": who.token_file,
        }
        paths = {label: path for label, path in files.items() if path}
        if not self._ca_bundle:
            paths[SYSTEM] = system_file()
        return paths

    def _content(self, label: str, path: str) -> bytes:
        if not path:
            raise WebhookTlsError("this machine has no file of authorities in a place known here; set caBundle")
        content = file_content(path)
        if isinstance(content, bytes):
            return content
        if label == "tokenFile" and self._credentials.token:
            return b""
        raise WebhookTlsError(f"{label} {path}: {content}; put a file there that this user can read")

    def _authorization(self, token: bytes | None) -> str:
        who = self._credentials
        if who.username or who.password:
            return "Basic " + base64.b64encode(f"{who.username}:{who.password}".encode()).decode()
        said = who.token if token is None else (token.decode(errors="replace").strip() or who.token)
        if not said and not who.token_file:
            return ""
        if not said:
            raise WebhookTlsError(f"tokenFile {who.token_file}: read empty token from file")
        if not is_header(said):
            raise WebhookTlsError(f"tokenFile {who.token_file}: holds something else than a token of printable ASCII")
        return f"Bearer {said}"

    def _context(self, contents: _Contents) -> ssl.SSLContext:
        # Not ssl.create_default_context: from Python 3.13 on it refuses what Go takes (VERIFY_X509_STRICT).
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.hostname_checks_common_name = False
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        context.set_alpn_protocols(["http/1.1"])
        _trust(context, self._ca_bundle or contents[SYSTEM])
        who = self._credentials
        certificate = who.certificate or contents.get("client-certificate", b"")
        if certificate:
            key = who.key or contents.get("client-key", b"")
            self._load_pair(context, certificate, key)
        return context

    def _load_pair(self, context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
        if _ENCRYPTED.search(key):
            raise WebhookTlsError("client-key: it is protected by a password, which nobody is there to type; remove it")
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
    """AppendCertsFromPEM: what is no certificate is passed over, as long as there is one."""
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
