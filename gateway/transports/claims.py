"""Compares what a worker claims for a policy with what the operator grants.

``inputs`` and ``writes`` in the configuration are the grant; "what the worker claims in Describe can only narrow it".

==========  ==================================================  ============================
claim       what counts                                         beyond the grant
==========  ==================================================  ============================
unset       the grant                                           never
everything  the grant, if that is everything                    if less than that is granted
pointers    exactly these paths; none, if the list is empty     if a path is not granted
==========  ==================================================  ============================

A claim beyond the grant is not reduced to it: the policy needs values that it would not see. It is a failure
``CONFIGURATION``, found when the worker is described, and so is a claim that violates the rules for configured
``inputs`` and ``writes``. A validating policy changes nothing, so its claim of writes is ignored.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from msgspec import Struct

from gateway.policies.decoding.field import Field
from gateway.policies.decoding.nodes import Node
from gateway.policies.errors import Findings, Place, summary
from gateway.policies.fields.inputs import read_inputs
from gateway.policies.fields.writes import read_writes
from gateway.policies.model import Phase, Policy
from gateway.quoting import quoted
from gateway.scopes.inputs import Inputs
from gateway.scopes.pointer import format_pointer
from gateway.scopes.pointer_set import PointerSet
from gateway.scopes.writes import Writes
from gateway.transports.messages import one_line
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb

_Scope = TypeVar("_Scope", Inputs, Writes)

LISTED: Final = 8
"""Pointers of a list that a message or a log line repeats, each cut after 200 characters: 1.6 KB at most."""

EXPLAINED: Final = 1000
"""Characters of the errors of a claim: five errors in pointers of a usual length."""


class ClaimError(Exception):
    """An invalid claim. ``str(error)``: which, what is granted, and what to do; ``field`` is inputs or writes."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class Effective(Struct, frozen=True, kw_only=True):
    """The claimed part of the grants; None: all that is granted."""

    inputs: Inputs | None = None
    writes: Writes | None = None


def effective(policy: Policy, described: pb.PolicyDescription) -> Effective:
    """The effective inputs and writes of a configured policy, given its description.

    Raises:
        ClaimError: a claim is not a valid set of pointers, or beyond the grant.
    """
    return Effective(
        inputs=_inputs(policy, described.inputs) if described.HasField("inputs") else None,
        writes=(
            _writes(policy, described.writes)
            if described.HasField("writes") and policy.phase is Phase.MUTATING
            else None
        ),
    )


def shown_inputs(inputs: Inputs) -> str:
    """The inputs of a policy as text for a message: bounded, on one line."""
    return "every member of the request but uid" if inputs.places is None else listed(inputs.pointers)


def shown_writes(writes: Writes) -> str:
    """What a policy may change, as text for a message: bounded, on one line."""
    if writes.narrowed is not None:
        return listed(_texts(writes.narrowed))
    if writes.granted is not None:
        return listed(_texts(writes.granted))
    return "everything but the object's identity and status" if writes.protects else "everything"


def listed(texts: Sequence[str]) -> str:
    """Pointers or names, joined: the first few, and how many more there are."""
    more = f" and {len(texts) - LISTED} more" if len(texts) > LISTED else ""
    return (", ".join(quoted(text) for text in texts[:LISTED]) or "nothing") + more


def _inputs(policy: Policy, claim: pb.Claim) -> Inputs:
    claimed = Inputs.EVERYTHING
    if not _is_everything(policy, "inputs", claim):
        claimed = _read(policy, "inputs", claim, read_inputs)
    beyond = policy.inputs.beyond(claimed)
    if beyond:
        raise _beyond(policy, "inputs", beyond, shown_inputs(policy.inputs))
    return claimed


def _writes(policy: Policy, claim: pb.Claim) -> Writes:
    claimed = None if _is_everything(policy, "writes", claim) else _read(policy, "writes", claim, read_writes).granted
    beyond = policy.writes.beyond(claimed)
    if beyond:
        raise _beyond(policy, "writes", beyond, shown_writes(policy.writes))
    return policy.writes.narrowed_to(claimed)


def _is_everything(policy: Policy, name: str, claim: pb.Claim) -> bool:
    """Whether a claim is ``everything``, and not pointers.

    Raises:
        ClaimError: it is neither, which differs from an unset claim; a later contract may have a third kind.
    """
    kind = claim.WhichOneof("claim")
    if kind is None:
        raise ClaimError(
            name,
            f"its claim of {name} for policy {policy.policy!r} is neither everything nor pointers; leave it unset to "
            "claim what is granted",
        )
    return bool(kind == "everything")


def _read(policy: Policy, name: str, claim: pb.Claim, read: Callable[[Field, Findings], _Scope]) -> _Scope:
    """The claimed paths, by the rules for configured ones.

    Raises:
        ClaimError: all errors in them, with the messages of those rules.
    """
    node = Node([Node(text, 0) for text in claim.pointers.pointers], 0)
    findings: Findings = []
    overlaps: Findings = []  # no error, and the operator cannot change them
    scope = read(Field(node=node, place=Place(file="", line=0, path=name), findings=findings), overlaps)
    if findings:
        faults = one_line(summary(findings), EXPLAINED)
        raise ClaimError(name, f"its claim of {name} for policy {policy.policy!r} is invalid: {faults}")
    return scope


def _beyond(policy: Policy, name: str, beyond: Sequence[str], granted: str) -> ClaimError:
    return ClaimError(
        name,
        f"it claims {name} for policy {policy.policy!r} that are not granted: {listed(beyond)}; granted is {granted}; "
        f"grant them in the policy's {name}, or use a version of the worker that claims less",
    )


def _texts(places: PointerSet) -> list[str]:
    return [format_pointer(pointer) for pointer in places.pointers]
