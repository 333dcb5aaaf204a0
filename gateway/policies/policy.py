"""One entry of ``policies``: the schema of a webhook, with ``clientConfig`` replaced by a worker's name.

Whatever stands in the list becomes a Policy, with all its mistakes in ``fault``: one that disappeared would be a rule
that nobody enforces. The defaults are Kubernetes', and each of them is the strictest reading as well (failurePolicy
Fail, matchPolicy Equivalent, selectors that select everything); only ``rules`` that are absent match nothing, so where
a name of the entry is not known, absent rules may be misspelt ones, and match everything.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from gateway.policies import wording
from gateway.policies.fields import Field, summary
from gateway.policies.later import POLICY, refuse_later
from gateway.policies.model import (
    EVERYTHING,
    FailurePolicy,
    MatchPolicy,
    Phase,
    Policy,
    ReinvocationPolicy,
    SideEffects,
    Worker,
)
from gateway.policies.names import dns_label, dns_subdomain
from gateway.policies.rules import read_rules
from gateway.policies.selectors import read_selector
from gateway.policies.settings import read_settings

DEFAULT_TIMEOUT: Final = 10.0
MAX_TIMEOUT: Final = 30.0
"""Seconds, as for a webhook in admissionregistration.k8s.io/v1."""

_FIELDS: Final = (
    "name",
    "worker",
    "policy",
    "rules",
    "namespaceSelector",
    "objectSelector",
    "matchPolicy",
    "failurePolicy",
    "timeoutSeconds",
    "sideEffects",
    "settings",
    *POLICY,
)
_KNOWN: Final = {
    Phase.MUTATING: (*_FIELDS, "reinvocationPolicy"),
    Phase.VALIDATING: _FIELDS,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Workers:
    """The Workers of the whole source: those that can be asked, and why the others cannot, by name."""

    sound: Mapping[str, Worker]
    broken: Mapping[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Seat:
    """A policy's place in the chain: its phase, its configuration, its index there."""

    phase: Phase
    configuration: str
    index: int


def read_policy(entry: Field, seat: Seat, name: str | None, called: str, workers: Workers) -> Policy:
    """The policy that stands here; ``fault`` is whatever was reported to ``entry.findings``.

    Args:
        entry: the element of ``policies``, with findings of its own.
        seat: where in the chain it stands.
        name: its name, which was read before (names are compared first), or None where it has no usable one.
        called: its name, or what it is called without one.
        workers: whom it may name.
    """
    before = len(entry.findings)
    is_mapping = entry.mapping(_KNOWN[seat.phase])
    has_stranger = len(entry.findings) > before
    if is_mapping:
        policy = _read(entry, seat, name, called, workers)
    else:
        policy = Policy(
            phase=seat.phase,
            configuration=seat.configuration,
            index=seat.index,
            name=called,
            worker="",
            policy="",
            rules=(EVERYTHING,),
            place=entry.place,
        )
    if has_stranger and entry.get("rules").absent:
        policy = replace(policy, rules=(EVERYTHING,))
    return replace(policy, fault=summary(entry.findings) or None)


def _read(entry: Field, seat: Seat, name: str | None, called: str, workers: Workers) -> Policy:
    refuse_later(entry, POLICY)
    return Policy(
        phase=seat.phase,
        configuration=seat.configuration,
        index=seat.index,
        name=called,
        worker=_worker(entry.get("worker"), workers),
        policy=_worker_policy(entry.get("policy"), name),
        rules=read_rules(entry.get("rules")),
        namespace_selector=read_selector(entry.get("namespaceSelector")),
        object_selector=read_selector(entry.get("objectSelector")),
        match_policy=entry.get("matchPolicy").word(MatchPolicy) or MatchPolicy.EQUIVALENT,
        failure_policy=entry.get("failurePolicy").word(FailurePolicy) or FailurePolicy.FAIL,
        timeout=_timeout(entry.get("timeoutSeconds")),
        side_effects=_side_effects(entry.get("sideEffects")),
        reinvocation_policy=_reinvocation(entry.get("reinvocationPolicy"), seat.phase),
        settings=read_settings(entry.get("settings")),
        place=entry.place,
    )


def _worker(field: Field, workers: Workers) -> str:
    name = field.name(dns_subdomain)
    if name is None:
        return ""
    if name in workers.broken:
        field.refuse(f"worker {wording.quote(name)} is invalid: {workers.broken[name]}")
    elif name not in workers.sound:
        field.refuse(wording.not_found(name))
    return name


def _worker_policy(field: Field, name: str | None) -> str:
    """Which of the worker's policies; "default: the first segment of name"."""
    if not field.absent:
        return field.name(dns_label) or ""
    segment = (name or "").partition(".")[0]
    if name is not None:
        # A segment may be longer than a label: Kubernetes checks the name's length as a whole.
        field.refuse_each(segment, dns_label(segment))
    return segment


def _timeout(field: Field) -> float:
    seconds = field.number()
    if seconds is None:
        return DEFAULT_TIMEOUT
    if not 0 < seconds <= MAX_TIMEOUT:  # false for .nan as well
        detail = f"the timeout value must be more than 0 and at most {MAX_TIMEOUT:g} seconds"
        field.refuse(wording.invalid(seconds, detail))
        return DEFAULT_TIMEOUT
    return float(seconds)


def _side_effects(field: Field) -> SideEffects:
    if field.absent:
        field.refuse(wording.required("must specify one of " + ", ".join(sorted(SideEffects))))
    return field.word(SideEffects) or SideEffects.NONE


def _reinvocation(field: Field, phase: Phase) -> ReinvocationPolicy:
    if phase is Phase.VALIDATING:
        return ReinvocationPolicy.NEVER  # there is no such field; it was reported as unknown
    return field.word(ReinvocationPolicy) or ReinvocationPolicy.NEVER
