"""Where an audit is, in a file: after each page, so that an audit that was killed goes on from there.

The file is replaced as a whole, and synced: a process that is killed, or a machine that stops, leaves the one before or
the one after. What was judged of a page in progress is judged again; its results were not counted.

A file of another audit (other policies, cluster or flags) is not used: the audit begins anew.
"""

import contextlib
import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct, field

from gateway.audit.results import AuditResults

API_VERSION: Final = "admission-gateway.dev/audit-state/v1alpha1"

_MODE: Final = 0o600
"""Findings name objects, and have the words of policies about them."""


class StateError(Exception):
    """The state file cannot be read or written. The message: the file, why, and what to do."""


class AuditState(Struct, kw_only=True, rename="camel"):
    """Where an audit is.

    ``done`` are the parts that are complete, whose ``results`` count; ``part`` is the one in progress, of which the
    page after ``token`` is next, with the results so far in ``current``. ``started``: RFC 3339.
    """

    api_version: str = API_VERSION
    audit: str
    started: str
    done: list[str] = field(default_factory=list)
    part: str = ""
    token: str = ""
    results: AuditResults = field(default_factory=AuditResults)
    current: AuditResults = field(default_factory=AuditResults)

    def begin(self, part: str) -> str:
        """Go on with a part; returns the token of its next page."""
        if self.part != part:
            self.part, self.token, self.current = part, "", AuditResults()
        return self.token

    def advance(self, page: AuditResults, token: str, *, restarted: bool) -> None:
        """A page of the part was judged. ``restarted``: those before it do not count."""
        if restarted:
            self.current = AuditResults()
        self.current.add(page)
        self.token = token

    def end(self) -> None:
        """The part in progress is complete."""
        self.results.add(self.current)
        self.done.append(self.part)
        self.part, self.token, self.current = "", "", AuditResults()


class StateFile:
    """The file, or none.

    Args:
        path: of the file, in a directory that exists; None: nothing is kept.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def read(self) -> AuditState | None:
        """What is kept; None: nothing, or of another version. Raises StateError."""
        if self._path is None:
            return None
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._error(error) from None
        try:
            state = msgspec.json.decode(content, type=AuditState)
        except (msgspec.DecodeError, ValueError, RecursionError):
            raise StateError(
                f"--state {self._path}: this is no state of an audit; remove it, or name another"
            ) from None
        return state if state.api_version == API_VERSION else None

    def write(self, state: AuditState) -> None:
        """Keep this. Raises StateError."""
        if self._path is None:
            return
        beside = self._path.with_name(f"{self._path.name}.new")
        try:
            # A new file, whatever lies there: one of a process that was killed, or a link that somebody else has made.
            beside.unlink(missing_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(beside, flags, _MODE)
            with os.fdopen(descriptor, "wb") as file:
                file.write(msgspec.json.encode(state))
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self._path)
        except OSError as error:
            raise self._error(error) from None

    def remove(self) -> None:
        """The audit is complete: the next one begins anew."""
        if self._path is not None:
            with contextlib.suppress(OSError):
                self._path.unlink()

    def _error(self, error: OSError) -> StateError:
        return StateError(f"--state {self._path}: {error.strerror}; name a file in a directory that can be written")


def audit_id(*parts: Iterable[bytes]) -> str:
    """What tells two audits apart: a digest of policies, cluster and flags."""
    digest = hashlib.sha256()
    for part in parts:
        for each in part:
            digest.update(len(each).to_bytes(8) + each)
        digest.update(b"\0")
    return digest.hexdigest()
