"""The plan: all policies of one phase (or entry) in chain order, each with its availability."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gateway.documents.verdict_key import key_prefix
from gateway.engine.verdicts import Failure
from gateway.enums import StrEnum
from gateway.matching.index import EveryPolicy, PolicyIndex, RuleIndex
from gateway.policies.model import Phase, Policy
from gateway.policies.workers.targets import Worker
from gateway.reasons import Reason
from gateway.scopes.inputs import Inputs
from gateway.scopes.writes import Writes


class Described(Struct, frozen=True, kw_only=True):
    """The availability of a policy that can be called: its worker's description, checked against the grants.

    ``version`` is the worker's version of the policy. ``inputs`` and ``writes`` are the part of the grants that the
    worker claims; None: all of them. ``identity``: see ``PolicyCall``. ``timeout_failure`` is the failure for a call
    that used its whole timeout, if the worker's kind has a message of its own for that.
    """

    version: str
    inputs: Inputs | None = None
    writes: Writes | None = None
    identity: bytes = b""
    timeout_failure: Failure | None = None


class UnavailableReason(StrEnum):
    """Why a policy cannot be called: the value of a metric label, and printed by ``/readyz?verbose``."""

    INVALID = "invalid"
    """The files have an error. (Only after a start: a reload loads nothing with an error.)"""

    UNDESCRIBED = "undescribed"
    """Its worker has not described itself yet: it does not run, is unreachable, or does not answer."""

    UNKNOWN_POLICY = "unknown_policy"
    """Its worker has no policy of this name."""

    DESCRIPTION = "description"
    """Its worker describes the policy twice, for the other phase only, or without a version."""

    CLAIMS = "claims"
    """Its worker claims inputs or writes that are not granted, or that are no set of JSON Pointers."""

    SETTINGS = "settings"
    """Its worker refuses the settings."""


ANSWERS: Final = frozenset(
    {
        UnavailableReason.UNKNOWN_POLICY,
        UnavailableReason.DESCRIPTION,
        UnavailableReason.CLAIMS,
        UnavailableReason.SETTINGS,
    }
)
"""The reasons that come from a worker's answer."""


class Unavailable(Struct, frozen=True, kw_only=True):
    """The availability of a policy that cannot be called: the kind of reason, the reason, and what to do.

    ``field`` is the field of the policy that is wrong, "" if none is. ``refused`` are the places in its settings that
    the worker refuses, as JSON Pointers, each with the worker's message.
    """

    why: UnavailableReason
    message: str
    hint: str = ""
    field: str = ""
    refused: tuple[tuple[str, str], ...] = ()

    @property
    def failure(self) -> Failure:
        """The policy's failure in each review that it matches."""
        return Failure(reason=Reason.CONFIGURATION, message=self.message, hint=self.hint)


PolicyAvailability = Described | Unavailable
"""Whether a policy can be called."""


class Member(Struct, frozen=True, kw_only=True):
    """One policy in a plan.

    ``label`` is its name for people: the policy's name, or ``CONFIGURATION/NAME`` if two members have the same name.
    With ``unavailable`` it cannot be called and fails with that failure whenever it matches. ``version``, ``inputs``,
    ``writes`` and ``timeout_failure`` are those of Described; for ``key_prefix`` see ``PolicyCall``.
    ``unconditional``: the index alone decides whether the policy judges, because it has neither selectors nor
    conditions, or has an entry of its own, so that the API server has checked them.
    """

    policy: Policy
    label: str
    unconditional: bool = False
    unavailable: Failure | None = None
    version: str = ""
    inputs: Inputs = Inputs.EVERYTHING
    writes: Writes = Writes.DEFAULT
    key_prefix: bytes = b""
    timeout_failure: Failure | None = None


class Plan(Struct, frozen=True, kw_only=True, eq=False, dict=True):
    """The members of one phase, in chain order, and the index of their rules.

    With ``unavailable`` no member can be called, whatever its own availability. ``workers`` has the members' workers by
    name, for the record.
    """

    phase: Phase
    members: tuple[Member, ...]
    index: PolicyIndex
    workers: Mapping[str, Worker] = {}
    unavailable: Failure | None = None

    @cached_property
    def by_policy(self) -> Mapping[int, Member]:
        """The members by the identity of their policies: two versions of a policy may be equal."""
        return {id(member.policy): member for member in self.members}

    @cached_property
    def has_conditions(self) -> bool:
        """Whether matchConditions are evaluated."""
        return any(member.policy.match_conditions for member in self.members if not member.unconditional)

    def failing(self, failure: Failure) -> "Plan":
        """The same plan in which no policy can be called, for this reason (such as OVERLOADED)."""
        # The last one is kept: under overload it is needed for each review, and its table of policies is large.
        kept = self._failing
        if not kept or kept[0].unavailable is not failure:
            kept[:] = [replace(self, unavailable=failure)]
        return kept[0]

    @cached_property
    def _failing(self) -> list["Plan"]:
        return []


def make_plan(
    phase: Phase,
    policies: Sequence[Policy],
    availabilities: Mapping[str, PolicyAvailability],
    *,
    registered: bool = False,
    index: PolicyIndex | None = None,
    workers: Mapping[str, Worker] = MappingProxyType({}),
) -> Plan:
    """The plan over ``policies``: all of a phase, or those of one entry.

    Args:
        phase: of all of them.
        policies: in chain order.
        availabilities: by qualified name. A policy that is missing here has not been described yet and cannot be
            called.
        registered: this is the entry of one isolated policy, which is called for every request of the entry: its rules,
            selectors and conditions are registered, and the gateway does not check them again.
        index: the index of an earlier plan over the same policies; None: a new one is made.
        workers: of the configuration, by name.
    """
    names = Counter(policy.name for policy in policies)
    if index is None:
        index = EveryPolicy(len(policies)) if registered else RuleIndex(policies)
    return Plan(
        phase=phase,
        members=tuple(
            _member(
                policy,
                policy.name if names[policy.name] == 1 else policy.qualified_name,
                availability_of(policy, availabilities),
                unconditional=registered or not _is_conditional(policy),
            )
            for policy in policies
        ),
        index=index,
        workers=workers,
    )


def _is_conditional(policy: Policy) -> bool:
    return bool(
        policy.object_selector.requirements or policy.namespace_selector.requirements or policy.match_conditions
    )


def _member(policy: Policy, label: str, availability: PolicyAvailability, *, unconditional: bool) -> Member:
    if isinstance(availability, Unavailable):
        return Member(policy=policy, label=label, unconditional=unconditional, unavailable=availability.failure)
    return Member(
        policy=policy,
        label=label,
        unconditional=unconditional,
        version=availability.version,
        inputs=policy.inputs if availability.inputs is None else availability.inputs,
        writes=policy.writes if availability.writes is None else availability.writes,
        key_prefix=key_prefix(phase=policy.phase, identity=availability.identity, version=availability.version),
        timeout_failure=availability.timeout_failure,
    )


def availability_of(policy: Policy, availabilities: Mapping[str, PolicyAvailability]) -> PolicyAvailability:
    """The availability of a policy; one that is missing in ``availabilities`` is not described yet."""
    if policy.fault is not None:
        return Unavailable(why=UnavailableReason.INVALID, message=f"{policy.place.file}: {policy.fault}")
    undescribed = f"worker {policy.worker!r} has not been described yet"
    return availabilities.get(policy.qualified_name) or Unavailable(
        why=UnavailableReason.UNDESCRIBED, message=undescribed
    )
