"""What a file of calls expects of a call: the verdict, or what is wrong with the settings.

Compared is what a user or an operator meets: message, code, reason, causes, warnings, and the change. A change is
compared as it is written, but for white space: members in their order, numbers with their digits. Cache hints, audit
annotations and the version are not compared.
"""

import json
from dataclasses import dataclass
from typing import Any

import msgspec

from worker_conformance.proto.admission.worker.v1 import worker_pb2

_NOTHING = msgspec.Raw(b"")


class Allowed(msgspec.Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """An allow. At most one of the changes is there.

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
    """A denial, with its causes in their order."""

    message: str
    code: int
    reason: str
    causes: tuple[Cause, ...] = ()


class SettingsError(msgspec.Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """One thing that is wrong with settings, and where: a JSON Pointer."""

    pointer: str
    message: str


class Expected(msgspec.Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """Exactly one of ``allow``, ``deny`` and ``errors`` (of the settings); with a verdict perhaps warnings, in their
    order.
    """

    allow: Allowed | None = None
    deny: Denied | None = None
    errors: tuple[SettingsError, ...] = ()
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """See that it is one.

        Raises:
            ValueError: it is none, or several.
        """
        if (self.allow is not None) + (self.deny is not None) + bool(self.errors) != 1:
            raise ValueError("expected must have exactly one of allow, deny and errors")

    def shown(self) -> str:
        """As a file of calls has it."""
        return msgspec.json.encode(self).decode()


@dataclass(frozen=True, kw_only=True, slots=True)
class ExpectedCall:
    """A call, and what is expected of it.

    Args:
        label: what a report calls it.
        policy: the policy's name.
        phase: in which it is called.
        settings: JSON text, as the file has it.
        document: likewise.
        expected: what is expected.
    """

    label: str
    policy: str
    phase: worker_pb2.Phase
    settings: bytes
    document: bytes
    expected: Expected


def of_outcome(outcome: worker_pb2.Outcome) -> Expected | None:
    """An outcome as it would be expected; None: no verdict, or a failure, which no file can expect."""
    match outcome.WhichOneof("verdict"):
        case "allow":
            changes = (outcome.allow.json_patch, outcome.allow.merge_patch, outcome.allow.object)
            return Expected(allow=Allowed(*map(msgspec.Raw, changes)), warnings=tuple(outcome.warnings))
        case "deny":
            return Expected(deny=_denied(outcome.deny), warnings=tuple(outcome.warnings))
        case _:
            return None


def _denied(deny: worker_pb2.Deny) -> Denied:
    """With what the contract says of an unset code: "Unset: 403", and the reason is then "Forbidden"."""
    causes = [Cause(cause.field, cause.message, cause.reason) for cause in deny.details.causes]
    code, reason = (deny.code, deny.reason) if deny.HasField("code") else (403, deny.reason or "Forbidden")
    return Denied(deny.message, code, reason, tuple(causes))


def of_errors(response: worker_pb2.ValidateSettingsResponse) -> tuple[SettingsError, ...]:
    """What ``ValidateSettings`` found wrong."""
    return tuple(SettingsError(error.pointer, error.message) for error in response.errors)


def same(one: Expected, other: Expected | None) -> bool:
    """Whether two outcomes are the same, changes as they are written."""
    return other is not None and _written(one) == _written(other)


def _written(outcome: Expected) -> Any:
    if outcome.allow is None:
        return outcome
    changes = (outcome.allow.patch, outcome.allow.merge, outcome.allow.object)
    return [outcome.warnings, *(_exact(bytes(change)) for change in changes)]


def _exact(text: bytes) -> Any:
    """JSON, with its members in their order and each number as its digits; None: there is none."""
    if not text:
        return None
    return json.loads(text, parse_int=_number, parse_float=_number, object_pairs_hook=lambda pairs: ("object", pairs))


def _number(digits: str) -> tuple[str, str]:
    return "number", digits
