"""The expected outcome of a call: the verdict, or the errors in the settings.

The kit compares what users and operators see: message, code, reason, causes, warnings, and the change. It compares a
change as text without white space: members in their order, numbers with their digits. It does not compare cache hints,
audit annotations and the version.
"""

import json
from dataclasses import dataclass
from typing import Any

import msgspec

from worker_conformance.proto.admission.worker.v1 import worker_pb2

_NOTHING = msgspec.Raw(b"")


class Allowed(msgspec.Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """An allow, with at most one change.

    Attributes:
        patch: a JSON Patch.
        merge: a JSON Merge Patch.
        object: the whole object.
    """

    patch: msgspec.Raw = _NOTHING
    merge: msgspec.Raw = _NOTHING
    object: msgspec.Raw = _NOTHING


class Cause(msgspec.Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """One cause of a denial."""

    field: str
    message: str
    reason: str


class Denied(msgspec.Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """A denial, with its causes in order."""

    message: str
    code: int
    reason: str
    causes: tuple[Cause, ...] = ()


class SettingsError(msgspec.Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """One error in the settings, with its JSON Pointer."""

    pointer: str
    message: str


class Expected(msgspec.Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """Exactly one of ``allow``, ``deny`` and ``errors`` (of the settings); a verdict may have warnings, in order."""

    allow: Allowed | None = None
    deny: Denied | None = None
    errors: tuple[SettingsError, ...] = ()
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check that there is exactly one.

        Raises:
            ValueError: there is none, or more than one.
        """
        if (self.allow is not None) + (self.deny is not None) + bool(self.errors) != 1:
            raise ValueError("expected must have exactly one of allow, deny and errors")

    def shown(self) -> str:
        """As in a file of calls."""
        return msgspec.json.encode(self).decode()


@dataclass(frozen=True, kw_only=True, slots=True)
class ExpectedCall:
    """A call, and its expected outcome.

    Args:
        label: its name in a report.
        policy: the policy's name.
        phase: the phase of the call.
        settings: JSON text from the file.
        document: JSON text from the file.
        expected: the expected outcome.
    """

    label: str
    policy: str
    phase: worker_pb2.Phase
    settings: bytes
    document: bytes
    expected: Expected


def of_outcome(outcome: worker_pb2.Outcome) -> Expected | None:
    """An outcome in the form of a file of calls; None: no verdict, or a failure, which a file cannot expect."""
    match outcome.WhichOneof("verdict"):
        case "allow":
            changes = (outcome.allow.json_patch, outcome.allow.merge_patch, outcome.allow.object)
            return Expected(allow=Allowed(*map(msgspec.Raw, changes)), warnings=tuple(outcome.warnings))
        case "deny":
            return Expected(deny=_denied(outcome.deny), warnings=tuple(outcome.warnings))
        case _:
            return None


def _denied(deny: worker_pb2.Deny) -> Denied:
    """With the contract's defaults: an unset code is 403, with the reason "Forbidden"."""
    causes = [Cause(cause.field, cause.message, cause.reason) for cause in deny.details.causes]
    code, reason = (deny.code, deny.reason) if deny.HasField("code") else (403, deny.reason or "Forbidden")
    return Denied(deny.message, code, reason, tuple(causes))


def of_errors(response: worker_pb2.ValidateSettingsResponse) -> tuple[SettingsError, ...]:
    """The errors from ``ValidateSettings``."""
    return tuple(SettingsError(error.pointer, error.message) for error in response.errors)


def same(one: Expected, other: Expected | None) -> bool:
    """Whether two outcomes are equal, with changes compared as text."""
    return other is not None and _written(one) == _written(other)


def _written(outcome: Expected) -> Any:
    if outcome.allow is None:
        return outcome
    changes = (outcome.allow.patch, outcome.allow.merge, outcome.allow.object)
    return [outcome.warnings, *(_exact(bytes(change)) for change in changes)]


def _exact(text: bytes) -> Any:
    """JSON with its members in order and each number as its digits; None for an empty text."""
    if not text:
        return None
    return json.loads(text, parse_int=_number, parse_float=_number, object_pairs_hook=lambda pairs: ("object", pairs))


def _number(digits: str) -> tuple[str, str]:
    return "number", digits
