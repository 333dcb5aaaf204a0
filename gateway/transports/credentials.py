"""The TLS credentials for a worker: authorities, the gateway's own certificate, the name in the worker's certificate.

The rules:

* Files are read for each new connection. Unusable files (missing, or half written) fail only new connections to this
  worker, with the reason; credentials loaded before stay.
* gRPC gets only files that it can use (``certificates``).
* A change is reported when two polls in a row read the same, as with the policy files: at the first, a process may
  still be writing. It is reported once, even if loading fails then, and even if a new connection has loaded it in the
  meantime: other connections may still have the old files.
* The list of authorities in gRPC's package is never used: without ``caFile`` and ``caBundle`` the authorities are
  those of this machine.

Reading blocks for a fraction of a millisecond: three files of some kilobytes. (The system's authorities, 200 KB, take
two.) If the file system may hang, call it in a thread; one call at a time.
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
"""The paths of the system's authorities, in Go's order (crypto/x509, root_linux.go): Debian, Fedora, openSUSE,
OpenELEC, RHEL, Alpine. The first that exists is used; ``SSL_CERT_FILE`` has precedence."""

_STABLE: Final = timedelta(seconds=2)
"""The age of a file's last change from which its times show the next change: the coarsest clock of a file system (FAT)
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
        directory: that of the file with the Worker; relative paths begin there.
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
            CredentialsError: a file cannot be read, is not PEM, does not match the others, or is not valid now.
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
        """Poll: whether the files have changed since the last report or the first ``load``, and are stable.

        A certificate that was not valid yet counts as changed when it becomes valid. Never raises.
        """
        if self.tls is None or self._reported is None:
            return False
        before, self._seen = self._seen, self._current_digest()
        has_begun = self._begins is not None and self._now() >= self._begins
        if not has_begun and (self._seen != before or self._seen == self._reported):
            return False
        self._reported, self._begins = self._seen, None
        return True

    def _current_digest(self) -> bytes:
        """The digest of the files; they are not read again if their times show no change."""
        paths = self._paths()
        states = tuple(file_state(path) for path in paths.values())
        if states == self._states:
            return self._seen
        latest = max((state[-1] for state in states if state), default=0)
        self._states = states if latest < (self._now() - _STABLE).timestamp() * 1e9 else None
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
    """The path of this machine's authorities; empty if it is unknown."""
    named = os.environ.get("SSL_CERT_FILE", "")
    return named or next((file for file in SYSTEM_FILES if file_state(file)), "")


# --------------------------------------------------------------------------------------------------- files


def file_state(path: str) -> tuple[int, ...]:
    """A tuple that changes when a file is written or replaced, with the time of change last; empty without the file."""
    try:
        found = os.stat(path)  # noqa: PTH116 - a text, whatever bytes it holds
    except (OSError, ValueError):
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, max(found.st_mtime_ns, found.st_ctime_ns)


def file_content(path: str) -> Content:
    """The content of a file, or why it cannot be read."""
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return "is not a regular file"
            content = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        return f"cannot be read: {getattr(error, 'strerror', None) or error}"
    return content if len(content) <= MAX_FILE_BYTES else f"has more than {MAX_FILE_BYTES} bytes"


def _open_at_once(path: str, flags: int) -> int:
    """Without O_NONBLOCK, opening a named pipe without a writer would wait for ever."""
    return os.open(path, flags | os.O_NONBLOCK)


def _digest(contents: Mapping[str, Content]) -> bytes:
    """A digest, equal for equal contents. It may be logged: it discloses nothing of a key."""
    digest = hashlib.sha256()
    for label, content in contents.items():
        held = content if isinstance(content, bytes) else b"?" + content.encode(errors="replace")
        digest.update(b"%b:%d:%b," % (label.encode(), len(held), held))
    return digest.digest()[:16]
