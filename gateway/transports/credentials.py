"""What secures the connection to a worker: authorities, the gateway's own certificate, the name that the worker proves.

The rules:

* Files are read for each new connection. Files that cannot be used (yet, or half written) are a failure of this worker
  alone, which says why, and leave what was loaded before as it was.
* Nothing is handed to gRPC that it could not use (``certificates``).
* A change is told when two looks in a row find the same, as with the policy files: whoever writes into a file instead
  of putting a new one in its place is still writing at the first. It is told once, also if loading fails then, and
  also if somebody has loaded it meanwhile: another connection may still be one of before.
* gRPC's own list of authorities, which comes with its package, is never used: without ``caFile`` and ``caBundle`` the
  authorities are those that the operator of this machine maintains.

It blocks, as files do, for a fraction of a millisecond: three files of some kilobytes. (The system's authorities, 200
KB, take two.) On a file system that may hang, call it in a thread; one call at a time.
"""

import hashlib
import os
import stat
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from gateway.policies.workers.targets import GrpcTls
from gateway.transports.certificates import SYSTEM, CertificateReading, Content, CredentialsError, Loaded, TooEarlyError

__all__ = ["CredentialsError", "Loaded", "WorkerCredentials", "file_content", "file_state", "system_file"]

MAX_FILE_BYTES: Final = 1024 * 1024
"""All authorities that Mozilla trusts are 220 KB; a mounted Secret or ConfigMap holds at most 1 MiB."""

SYSTEM_FILES: Final = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/tls/cacert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
"""Where the distributions keep the system's authorities, in the order in which Go looks (crypto/x509, root_linux.go):
Debian, Fedora, openSUSE, OpenELEC, RHEL, Alpine. The first that is there is taken; ``SSL_CERT_FILE`` goes before it."""

_RESTED: Final = timedelta(seconds=2)
"""How old a file's last change must be for its times to tell the next one: the coarsest clock of a file system (FAT)
has ticks of two seconds."""


_PLAIN_TEXT: Final = Loaded()

_States = tuple[tuple[int, ...], ...]


def _utc_now() -> datetime:
    return datetime.now(UTC)


class WorkerCredentials:
    """The credentials of one Worker, from files that may change.

    Args:
        worker: the Worker's name, for messages.
        tls: its ``spec.grpc.tls``; None: plain text.
        directory: where relative files begin: that of the file in which the Worker stands.
        now: the time, timezone-aware.
    """

    def __init__(
        self, worker: str, tls: GrpcTls | None, directory: str = "", *, now: Callable[[], datetime] = _utc_now
    ) -> None:
        self.worker = worker
        self.tls = tls
        self._directory = directory
        self._now = now
        self._loaded: Loaded | None = None
        self._reported: bytes | None = None
        self._seen = b""
        self._states: _States | None = None
        self._begins: datetime | None = None

    def load(self) -> Loaded:
        """Read the files. Equal contents are the same object as before, credentials included.

        Raises:
            CredentialsError: a file cannot be read, is no PEM or none of ours, or is out of its time.
        """
        if self.tls is None:
            return _PLAIN_TEXT
        paths = self._paths()
        contents = {label: file_content(path) for label, path in paths.items()}
        digest = _digest(contents)
        if self._reported is None:
            self._reported = self._seen = digest
        self._begins = None
        reading = CertificateReading(self.worker, paths, contents, self._now())
        try:
            loaded = reading.loaded(self.tls, digest.hex())
        except TooEarlyError as error:
            self._begins = error.begins
            raise
        if self._loaded is None or self._loaded.fingerprint != loaded.fingerprint:
            self._loaded = loaded
        return self._loaded

    def changed(self) -> bool:
        """Whether the files are others than when this was last told, or than at the first ``load``, and rest: one look.

        A certificate that was too early is another one when its time has come. Never raises.
        """
        if self.tls is None or self._reported is None:
            return False
        before, self._seen = self._seen, self._look()
        has_begun = self._begins is not None and self._now() >= self._begins
        if not has_begun and (self._seen != before or self._seen == self._reported):
            return False
        self._reported, self._begins = self._seen, None
        return True

    def _look(self) -> bytes:
        """The digest of the files as they are; not read again where their times say that they are the same."""
        paths = self._paths()
        states = tuple(file_state(path) for path in paths.values())
        if states == self._states:
            return self._seen
        latest = max((state[-1] for state in states if state), default=0)
        self._states = states if latest < (self._now() - _RESTED).timestamp() * 1e9 else None
        return _digest({label: file_content(path) for label, path in paths.items()})

    def _paths(self) -> Mapping[str, str]:
        """The files by the names of their fields."""
        tls = self.tls
        if tls is None:
            return {}
        files = {"caFile": tls.ca_file, "certFile": tls.cert_file, "keyFile": tls.key_file}
        paths = {label: os.path.join(self._directory, file) for label, file in files.items() if file}  # noqa: PTH118 - a text, whatever bytes it holds
        if not tls.ca_file and not tls.ca_bundle:
            paths[SYSTEM] = system_file()
        return paths


def system_file() -> str:
    """Where this machine keeps its authorities; empty if nobody knows."""
    named = os.environ.get("SSL_CERT_FILE", "")
    return named or next((file for file in SYSTEM_FILES if file_state(file)), "")


# --------------------------------------------------------------------------------------------------- files


def file_state(path: str) -> tuple[int, ...]:
    """What changes when a file is written to or replaced, the time of change last; nothing if it is not there."""
    try:
        found = os.stat(path)  # noqa: PTH116 - a text, whatever bytes it holds
    except (OSError, ValueError):
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, max(found.st_mtime_ns, found.st_ctime_ns)


def file_content(path: str) -> Content:
    """What a file holds, or why that is not known."""
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return "is not a regular file"
            content = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        return f"cannot be read: {getattr(error, 'strerror', None) or error}"
    return content if len(content) <= MAX_FILE_BYTES else f"has more than {MAX_FILE_BYTES} bytes"


def _open_at_once(path: str, flags: int) -> int:
    """Without O_NONBLOCK, opening a named pipe that nobody writes to would wait for ever."""
    return os.open(path, flags | os.O_NONBLOCK)


def _digest(contents: Mapping[str, Content]) -> bytes:
    """Equal for equal contents. It may be logged: of a key it says what the certificate beside it says."""
    digest = hashlib.sha256()
    for label, content in contents.items():
        held = content if isinstance(content, bytes) else b"?" + content.encode(errors="replace")
        digest.update(b"%b:%d:%b," % (label.encode(), len(held), held))
    return digest.digest()[:16]
