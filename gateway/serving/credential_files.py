"""Files of credentials, one credential a line: read at the start, and again when their content changes.

    ===============  ==========================================  ====================================
    file             a line                                      what a request must hold
    ===============  ==========================================  ====================================
    bearer tokens    ASCII without spaces                        ``Authorization: Bearer TOKEN``
    passwords        ``USER:PASSWORD``, UTF-8; the first colon   ``Authorization: Basic BASE64``
                     ends the user
    path secrets     ``[0-9a-z-]{32,63}``                        the path ``/SECRET/mutate/ENTRY``
    ===============  ==========================================  ====================================

All lines are valid at the same time, so that a credential can be replaced without a failed request: add the new one,
let the clients use it, remove the old one. Empty lines and lines that begin with ``#`` are ignored.

    ==============================  ================================================================================
    the file                        what follows
    ==============================  ================================================================================
    changed, and can be used        the next request is checked against its content
    changed, but cannot be used     the credentials read before stay valid; the log has the error, ``/readyz`` a note
    ==============================  ================================================================================

A change counts when two polls in a row find the same content: at the first, a process may still be writing. The process
keeps SHA-256 digests, and messages contain nothing of a file's content.
"""

import asyncio
import base64
import hashlib
import hmac
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import structlog
from msgspec import Struct

from gateway.sources.watching import PollTimer
from gateway.telemetry.events import Events
from gateway.telemetry.table import CREDENTIAL_RELOADS
from gateway.transports.credentials import file_content

_LOG: Final = structlog.get_logger(__name__)

MAX_CREDENTIALS: Final = 16
"""Credentials in a file: some API servers with one each, and as many new ones during a rotation. Each costs every
request a comparison of 0.1 us."""

MAX_LINE_BYTES: Final = 4096
"""A credential's length. Basic credentials grow by a third in base64: 5.5 KB, within ``Limits.field_bytes`` of 8190."""

_TOKEN: Final = re.compile(r"[!-~]+")
_PATH_SECRET: Final = re.compile(r"[0-9a-z](?:[0-9a-z-]*[0-9a-z])?")
_SECRET_LENGTH: Final = range(32, 64)
"""Kubernetes: a segment of a service's path is a DNS name, whose labels have 63 characters at most. 32 hexadecimal
characters are 128 bits, which cannot be guessed; and no other path of the gateway is as long."""

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class CredentialError(Exception):
    """A file cannot be used. The message: which file and line, why, and what to do; nothing of the content."""


class CredentialKind(Struct, frozen=True, kw_only=True):
    """What a file holds: ``check`` returns what is wrong with a line, or None; ``presented`` what a request holds."""

    flag: str
    hint: str
    check: Callable[[str], str | None]
    presented: Callable[[str], bytes]


def _token_error(line: str) -> str | None:
    if _TOKEN.fullmatch(line):
        return None
    return "a token has visible ASCII characters only, and no space"


def _password_error(line: str) -> str | None:
    user, colon, password = line.partition(":")
    if not (user and colon and password):
        return "expected USER:PASSWORD, neither of them empty"
    # RFC 7617, 2: "The user-id and password MUST NOT contain any control characters".
    return "it has a control character" if _CONTROL.search(line) else None


def _path_secret_error(line: str) -> str | None:
    if _PATH_SECRET.fullmatch(line) and len(line) in _SECRET_LENGTH:
        return None
    return (
        f"expected {_SECRET_LENGTH[0]} to {_SECRET_LENGTH[-1]} lower case letters, digits and inner hyphens, "
        f"found {len(line)} characters"
    )


BEARER_TOKENS: Final = CredentialKind(
    flag="--bearer-token-file",
    hint="create a token with `openssl rand -hex 32`",
    check=_token_error,
    presented=lambda line: b"bearer " + line.encode(),
)
ADMIN_TOKENS: Final = CredentialKind(
    flag="--admin-token-file", hint=BEARER_TOKENS.hint, check=BEARER_TOKENS.check, presented=BEARER_TOKENS.presented
)
PASSWORDS: Final = CredentialKind(
    flag="--basic-auth-file",
    hint="write USER:PASSWORD",
    check=_password_error,
    presented=lambda line: b"basic " + base64.b64encode(line.encode()),
)
PATH_SECRETS: Final = CredentialKind(
    flag="--path-secret-file",
    hint="create a secret with `openssl rand -hex 16`",
    check=_path_secret_error,
    presented=str.encode,
)


def credentials_in(path: Path, kind: CredentialKind) -> tuple[str, ...]:
    """The credentials of a file, in order; at least one.

    Raises:
        CredentialError: it cannot be read, or a line is not a credential.
    """
    return _credentials(path, kind, file_content(str(path)))


def _credentials(path: Path, kind: CredentialKind, content: bytes | str) -> tuple[str, ...]:
    where = f"{kind.flag} {path}"
    if isinstance(content, str):
        raise CredentialError(f"{where}: {content}; give it a file that this user can read")
    found: dict[str, None] = {}
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        # A password may end with a space. No other credential has one, so there it is a slip of the editor.
        written = line.removesuffix(b"\r") if kind is PASSWORDS else line.strip()
        if written.strip() and not written.startswith(b"#"):
            error = _error(written, kind)
            if error is not None:
                raise CredentialError(f"{where}, line {number}: {error}; {kind.hint}")
            found[written.decode()] = None
    if not found:
        raise CredentialError(f"{where}: it contains no credential; {kind.hint}")
    if len(found) > MAX_CREDENTIALS:
        raise CredentialError(
            f"{where}: {len(found)} credentials, expected at most {MAX_CREDENTIALS}; remove those that no client uses"
        )
    return tuple(found)


def _error(written: bytes, kind: CredentialKind) -> str | None:
    if len(written) > MAX_LINE_BYTES:
        return f"{len(written)} bytes, expected at most {MAX_LINE_BYTES}"
    try:
        return kind.check(written.decode())
    except UnicodeDecodeError:
        return "not UTF-8"


class CredentialFile:
    """The credentials of one file.

    Raises:
        CredentialError: the file cannot be used.
    """

    def __init__(self, path: Path, kind: CredentialKind) -> None:
        self.path = path
        self.kind = kind
        self.note: str | None = None
        self._read = self._seen = file_content(str(path))
        self._digests = self._load()

    def matches(self, presented: bytes) -> bool:
        """Whether a request holds one of the credentials, in a time that depends on none of them."""
        digest = hashlib.sha256(presented).digest()
        found = False
        for each in self._digests:
            found |= hmac.compare_digest(each, digest)
        return found

    def poll(self, *, requested: bool) -> bool:
        """Read the file. It blocks.

        Args:
            requested: a change counts at once.

        Returns:
            Whether other credentials are valid from now on.

        Raises:
            CredentialError: the content has changed, and cannot be used. Not raised again for the same content.
        """
        found = file_content(str(self.path))
        rests, self._seen = found == self._seen, found
        if found == self._read or not (rests or requested):
            return False
        self._read = found
        try:
            self._digests = self._load()
        except CredentialError as error:
            self.note = f"the credentials read before stay valid, because the file cannot be used: {error}"
            raise
        self.note = None
        return True

    def _load(self) -> tuple[bytes, ...]:
        lines = _credentials(self.path, self.kind, self._read)
        return tuple(hashlib.sha256(self.kind.presented(line)).digest() for line in lines)


class CredentialFiles:
    """Reads files of credentials again when they change.

    Args:
        files: those that there are.
        events: counts changes.
    """

    def __init__(self, files: Sequence[CredentialFile], events: Events) -> None:
        self._files = files
        self._events = events
        self._poll_timer = PollTimer()

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._files)

    @property
    def note(self) -> str | None:
        """A note for ``/readyz`` on files that cannot be used any more; None without one."""
        return "; ".join(file.note for file in self._files if file.note is not None) or None

    def look(self) -> None:
        """Read the files again, now."""
        self._poll_timer.now()

    async def watch(self, interval: float) -> None:
        """Read the files again whenever they have changed, until cancelled.

        Args:
            interval: seconds between polls; 0: only after ``look``.
        """
        while self._files:
            requested = await self._poll_timer.pause(interval)
            for file in self._files:
                await self._poll(file, requested=requested)

    async def _poll(self, file: CredentialFile, *, requested: bool) -> None:
        try:
            changed = await asyncio.to_thread(file.poll, requested=requested)
        except CredentialError as error:
            self._events.count(CREDENTIAL_RELOADS, "invalid")
            _LOG.error("the new credentials cannot be used; those read before stay valid", why=str(error))
        except Exception:  # noqa: BLE001 - logged; the credentials stay, and the next poll may succeed
            _LOG.exception("reading credentials again failed inside the gateway", file=str(file.path))
        else:
            if changed:
                self._events.count(CREDENTIAL_RELOADS, "loaded")
                _LOG.info("requests are checked against the new credentials", file=str(file.path))
