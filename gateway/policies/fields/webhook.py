"""What an element of ``webhooks`` and one of ``policies`` have in common: which requests are judged, and how.

They differ in who that is: a webhook has a clientConfig and admissionReviewVersions, a policy of ours names a worker.
That part is the caller's, a Target.

Each element of the list becomes a Policy, with all its errors in ``fault``: a policy that disappeared would be a rule
that is not enforced. What is absent has the version's default. What cannot be read takes the strictest meaning
(failurePolicy Fail, matchPolicy Equivalent, selectors that select everything, nothing to see and nothing to change);
and where a name of the entry is not known, absent rules may be misspelt ones, and match everything, instead of nothing.
"""

from collections.abc import Sequence
from typing import Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from gateway.policies import field_errors
from gateway.policies.decoding.field import Field
from gateway.policies.errors import Findings, summary
from gateway.policies.fields.match_conditions import read_match_conditions
from gateway.policies.fields.rules import read_rules
from gateway.policies.fields.selectors import read_selector
from gateway.policies.fields.versions import Version
from gateway.policies.model import (
    EVERYTHING,
    Cache,
    FailurePolicy,
    MatchPolicy,
    Mode,
    OnConflict,
    Phase,
    Policy,
    ReinvocationPolicy,
    Shadow,
    SideEffects,
)
from gateway.policies.names import fully_qualified
from gateway.scopes.inputs import Inputs
from gateway.scopes.pointer_set import PointerSet
from gateway.scopes.writes import Writes

MAX_TIMEOUT: Final = 30
"""Seconds, in every version."""

TIMEOUT_RANGE: Final = f"the timeout value must be more than 0 and at most {MAX_TIMEOUT} seconds"
"""Of a timeout that may be a fraction."""

COMMON: Final = (
    "name",
    "rules",
    "failurePolicy",
    "matchPolicy",
    "sideEffects",
    "timeoutSeconds",
    "namespaceSelector",
    "objectSelector",
    "matchConditions",
)
"""The names of the fields that both have."""

MUTATING: Final = ("reinvocationPolicy",)
"""Those that only a mutating one has."""


class Slot(Struct, frozen=True, kw_only=True):
    """A place in the chain: phase, configuration, index there, and what the policy is called.

    ``is_named``: that is its own name. ``repeats``: the name that an entry before it has too, where names must be
    unique, and ``first`` where that one stands; ``namesake``: where they need not be.
    """

    phase: Phase
    configuration: str
    index: int
    called: str
    is_named: bool
    repeats: str = ""
    first: str = ""
    namesake: bool = False


class TargetFields(Struct, frozen=True, kw_only=True):
    """What only its own kind has: the worker's name, its policy, the settings; what it may see and change, and the use
    of the verdict. The defaults are a webhook's, which has no limits.
    """

    worker: str = ""
    policy: str = ""
    settings: bytes = b"{}"
    inputs: Inputs = Inputs.EVERYTHING
    writes: Writes = Writes.EVERYTHING
    cache: Cache | None = None
    on_conflict: OnConflict = OnConflict.ALLOW
    mode: Mode = Mode.ENFORCE
    isolate: bool = False
    shadow: Shadow | None = None
    is_existing: bool = False
    contact: str = ""
    documentation: str = ""


class Target(Protocol):
    """Reads what only its own kind of entry has."""

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of all fields of an entry."""

    def read(self, entry: Field, slot: Slot) -> TargetFields:
        """Read these fields; called where Kubernetes validates the clientConfig."""

    def finish(self, entry: Field) -> None:
        """Judge what Kubernetes judges after everything else."""


def slots(entries: Sequence[Field], phase: Phase, configuration: str, *, unique: bool, word: str) -> list[Slot]:
    """The slots of the entries of one list, in order; reports nothing.

    A policy whose name cannot be used is called after its place (``WORD-INDEX.name.invalid``).
    """
    names = [entry.get("name").raw_text or "" for entry in entries]
    usable = {name: not fully_qualified(name) for name in set(names)}
    first: dict[str, int] = {}
    found = []
    for index, name in enumerate(names):
        repeated = bool(name) and first.setdefault(name, index) != index
        is_named = usable[name] and not (repeated and unique)
        found.append(
            Slot(
                phase=phase,
                configuration=configuration,
                index=index,
                called=name if is_named else _stand_in(f"{word}-{index}", usable),
                is_named=is_named,
                repeats=name if repeated and unique else "",
                first=_named_place(entries[first[name]]) if repeated else "",
                namesake=repeated and is_named,
            )
        )
    return found


def _named_place(entry: Field) -> str:
    return f"the first is {entry.place.path}, in line {entry.place.line}"


def _stand_in(place: str, names: dict[str, bool]) -> str:
    """An unused legal name, for a policy without one. RFC 2606 keeps ``invalid`` for such things."""
    name = f"{place}.name.invalid"
    while name in names:
        name = "x" + name
    return name


def read_webhook(entry: Field, slot: Slot, version: Version, target: Target, warnings: Findings) -> Policy:
    """The policy that stands here; ``fault`` is whatever was reported to ``entry.findings``.

    Args:
        entry: the element of the list, with findings of its own.
        slot: its place in the chain.
        version: whose defaults and rules hold.
        target: what its kind adds.
        warnings: takes what is no error.
    """
    policy = Policy(
        phase=slot.phase,
        configuration=slot.configuration,
        index=slot.index,
        name=slot.called,
        worker="",
        policy="",
        rules=(EVERYTHING,),
        inputs=Inputs(places=PointerSet()),
        writes=Writes(granted=PointerSet()),
        on_conflict=OnConflict.DENY,
        namesake=slot.namesake,
        place=entry.place,
    )
    if entry.mapping(target.fields):
        policy = _read(entry, policy, slot, version, target, warnings)
    if entry.has_unknown(target.fields) and entry.get("rules").absent:
        policy = replace(policy, rules=(EVERYTHING,))
    return replace(policy, fault=summary(entry.findings) or None)


def _read(entry: Field, policy: Policy, slot: Slot, version: Version, target: Target, warnings: Findings) -> Policy:
    """The fields in the order in which Kubernetes validates them (validateMutatingWebhook), which is that of errors."""
    entry.get("name").name(fully_qualified)
    rules = read_rules(entry.get("rules"), warnings)
    failure_policy = _failure_policy(entry.get("failurePolicy"), version)
    match_policy = _match_policy(entry.get("matchPolicy"), version)
    side_effects = _side_effects(entry.get("sideEffects"), version)
    timeout = _timeout(entry.get("timeoutSeconds"), version)
    namespace_selector = read_selector(entry.get("namespaceSelector"))
    object_selector = read_selector(entry.get("objectSelector"))
    reinvocation_policy = ReinvocationPolicy.NEVER
    if slot.phase is Phase.MUTATING:
        reinvocation_policy = entry.get("reinvocationPolicy").word(ReinvocationPolicy) or ReinvocationPolicy.NEVER
    own = target.read(entry, slot)
    match_conditions = read_match_conditions(entry.get("matchConditions"))
    target.finish(entry)
    if slot.repeats:
        entry.get("name").refuse(field_errors.duplicate(slot.repeats), slot.first)
    return replace(
        policy,
        worker=own.worker,
        policy=own.policy,
        rules=rules,
        namespace_selector=namespace_selector,
        object_selector=object_selector,
        match_conditions=match_conditions,
        match_policy=match_policy,
        failure_policy=failure_policy,
        timeout=timeout,
        side_effects=side_effects,
        reinvocation_policy=reinvocation_policy,
        settings=own.settings,
        inputs=own.inputs,
        writes=own.writes,
        cache=own.cache,
        on_conflict=own.on_conflict,
        mode=own.mode,
        isolate=own.isolate,
        shadow=own.shadow,
        is_existing=own.is_existing,
        contact=own.contact,
        documentation=own.documentation,
    )


def _failure_policy(field: Field, version: Version) -> FailurePolicy:
    return version.failure_policy if field.absent else field.word(FailurePolicy) or FailurePolicy.FAIL


def _match_policy(field: Field, version: Version) -> MatchPolicy:
    return version.match_policy if field.absent else field.word(MatchPolicy) or MatchPolicy.EQUIVALENT


def _side_effects(field: Field, version: Version) -> SideEffects:
    if field.absent:
        if version.default_side_effects is not None:
            return version.default_side_effects
        field.refuse(field_errors.required("must specify one of " + ", ".join(sorted(version.side_effects))))
    return field.word(version.side_effects) or SideEffects.NONE


def _timeout(field: Field, version: Version) -> float:
    seconds = field.number()
    if seconds is None:
        return version.timeout
    if version.has_fractional_timeout:
        # False for .nan as well.
        is_good = 0 < seconds <= MAX_TIMEOUT
        detail = TIMEOUT_RANGE
    else:
        is_good = 1 <= seconds <= MAX_TIMEOUT
        detail = f"the timeout value must be between 1 and {MAX_TIMEOUT} seconds"
    if is_good:
        return float(seconds)
    field.refuse(field_errors.invalid(seconds, detail))
    return version.timeout
