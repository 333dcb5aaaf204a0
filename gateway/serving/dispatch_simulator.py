"""Simulates how the API server dispatches a request to the entries of a phase, and what the result is.

The simulator calls entry by entry, not ``/mutate`` as one chain, because a cluster that registered the output of
``render`` does so too: the entries determine which message a user sees, which policies are isolated, and which are
reinvoked.

* Mutating: one entry after another, each with the object as the previous entries left it. The first refusal ends the
  phase. There is one more round at most: an entry with IfNeeded that was called is called again if a later entry has
  changed the object; an entry marked in the second round is called if its turn is still to come. (This is
  kube-apiserver's rule; within an entry the engine applies the same.)
* Validating: all entries get the same object, and all are waited for. The API server answers with the refusal that
  arrives first; the simulator with the first in order.
* An entry is called if one of its policies matches. For an isolated policy the API server itself checks rules,
  selectors and conditions, so an error in those is refused in the API server's words, without a webhook's name.
* An entry's timeout is its registered timeoutSeconds, less what the gateway reserves for the rounded second.
* The kinds that configure admission itself are sent to no entry: the API server does not send them to registered
  webhooks. (It sends them to webhooks from manifest files, KEP-5793. Therefore the gateway judges them when it receives
  them; only the simulator leaves them out.)

A policy whose rules name another version of the resource than the review has does not fail with WRONG_VERSION here: the
API server would convert the object before it calls the entry. The simulator cannot convert, so it raises an error.

The simulator leaves out the API server's own defaulting, conversion and validation between the phases, and what else a
registration excludes (``render``).
"""

import asyncio
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from gateway.engine.decision import Decision
from gateway.engine.engine import Engine
from gateway.engine.plan import make_plan
from gateway.engine.verdicts import Failure
from gateway.gotypes.meta import group_version
from gateway.patching.difference import Operation, difference
from gateway.patching.limits import DEFAULT_LIMITS, PatchLimits
from gateway.policies.model import Phase, Policy, ReinvocationPolicy
from gateway.reasons import Reason
from gateway.registration.entries import Entry
from gateway.review.request import Request
from gateway.review.response import Status, clean_warnings, denial_code
from gateway.serving.budget import budget
from gateway.serving.driver import Driver
from gateway.serving.loaded_configuration import LoadedConfiguration

if TYPE_CHECKING:
    from gateway.matching.index import PolicyIndex

ROUNDS: Final = 2
"""kube-apiserver reinvokes at most once."""

_UNSENT_GROUP: Final = "admissionregistration.k8s.io"
_UNSENT_KINDS: Final = frozenset(
    {
        "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
    }
)
"""Not sent in any version, nor their subresources, so that a bad one can be repaired."""


def is_unsent(request: Request) -> bool:
    """Whether the API server sends this request to no registered webhook, whatever the rules say."""
    return request.kind.kind in _UNSENT_KINDS and request.kind.group == _UNSENT_GROUP


class SimulatedCall(Struct, frozen=True, kw_only=True):
    """One entry in one round (counted from 0), and the gateway's decision for it."""

    entry: Entry
    round: int
    decision: Decision

    @property
    def called(self) -> bool:
        """Whether the API server calls the entry for this request."""
        return any(call.called if self.entry.isolated else call.matched for call in self.decision.calls)


class Simulation(Struct, frozen=True, kw_only=True):
    """The result of a phase.

    ``request`` is the phase's input, ``object`` its output (unchanged if the request is refused). ``status`` is the
    refusal by ``refused_by``, in the API server's full wording; None if the request is allowed. ``visits`` is empty if
    the API server does not send the request (``is_unsent``).
    """

    phase: Phase
    request: Request
    object: Any
    visits: tuple[SimulatedCall, ...]
    refused_by: Entry | None = None
    status: Status | None = None

    @property
    def allowed(self) -> bool:
        """Whether the request passes this phase."""
        return self.status is None

    @property
    def changes(self) -> tuple[Operation, ...]:
        """What the phase changes in the object, as one difference."""
        return difference(self.request.object, self.object)

    @property
    def warnings(self) -> list[str]:
        """The warnings that the client gets."""
        return clean_warnings([text for visit in self.visits for text in visit.decision.response.warnings])

    @property
    def audit_annotations(self) -> Mapping[str, str]:
        """What the gateway adds to the audit event, under the API server's keys: ``ENTRY/KEY``."""
        found: dict[str, str] = {}
        for visit in self.visits:
            for key, value in visit.decision.response.audit_annotations.items():
                found.setdefault(f"{visit.entry.name}/{key}", value)
        return found


class UnconvertedError(Exception):
    """The API server would convert the object before it calls an entry. The message says which, and what to do."""


class DispatchSimulator:
    """Dispatches requests to the entries of a configuration.

    Args:
        configuration: started.
        limits: of the patches that workers send.
        prefetch: whether mutating policies are called before their turn.
        entry: the name of the only entry that is called; None: all are.
    """

    def __init__(
        self,
        configuration: LoadedConfiguration,
        limits: PatchLimits = DEFAULT_LIMITS,
        *,
        prefetch: bool = True,
        entry: str | None = None,
    ) -> None:
        self._configuration = configuration
        self._limits = limits
        self._prefetch = prefetch
        self._entry = entry
        self._indexes: dict[str, PolicyIndex] = {}

    async def simulate(self, phase: Phase, request: Request) -> Simulation:
        """The result of this phase for ``request``.

        Raises:
            ReviewError: a part of the request that the gateway needs cannot be read.
            UnconvertedError: only the API server can convert the object to the version that a policy needs.
        """
        if is_unsent(request):
            return _walk(phase, request, request, ())
        return await (self._mutating(request) if phase is Phase.MUTATING else self._validating(request))

    async def _mutating(self, request: Request) -> Simulation:
        visits: list[SimulatedCall] = []
        current = request
        changed = False
        called: set[str] = set()
        marked: set[str] = set()
        for number in range(ROUNDS):
            if number and not changed:
                break
            for entry in self._called(self._configuration.entries.mutating):
                if number and entry.name not in marked:
                    continue
                visit = await self._visit(entry, number, current)
                visits.append(visit)
                if not visit.decision.response.allowed:
                    return _walk(Phase.MUTATING, request, request, visits)
                if visit.decision.patch:
                    current = with_object(request, visit.decision.object)
                    changed = True
                    marked |= called
                    called.clear()
                if visit.called and entry.reinvocation_policy is ReinvocationPolicy.IF_NEEDED:
                    called.add(entry.name)
        return _walk(Phase.MUTATING, request, current, visits)

    async def _validating(self, request: Request) -> Simulation:
        entries = self._called(self._configuration.entries.validating)
        visits = await asyncio.gather(*(self._visit(entry, 0, request) for entry in entries))
        return _walk(Phase.VALIDATING, request, request, visits)

    def _called(self, entries: Sequence[Entry]) -> list[Entry]:
        return [each for each in entries if self._entry in {None, each.name}]

    async def _visit(self, entry: Entry, number: int, request: Request) -> SimulatedCall:
        configuration = self._configuration
        # No API server has checked rules, selectors and conditions of an isolated policy, so the plan checks them.
        availabilities = configuration.workers.availabilities(entry.phase)
        plan = make_plan(entry.phase, entry.policies, availabilities, index=self._indexes.get(entry.name))
        self._indexes[entry.name] = plan.index
        now = monotonic()
        engine = Engine(
            request,
            plan,
            ends=now + budget(f"{entry.timeout_seconds}s"),
            received=now,
            namespaces=configuration.namespaces,
            limits=self._limits,
            prefetch=self._prefetch,
        )
        driver = Driver(request.uid, engine, caller=configuration.policy_caller, facts=configuration.facts)
        decision = await driver.decide()
        for call in decision.calls:
            if isinstance(call.answer, Failure) and call.answer.reason is Reason.WRONG_VERSION:
                raise UnconvertedError(_unconverted(entry, call.policy, request))
        return SimulatedCall(entry=entry, round=number, decision=decision)


def with_object(request: Request, after: Any) -> Request:
    """The same request about another object."""
    return Request(request.api_version, {**request.members, "object": msgspec.Raw(msgspec.json.encode(after))})


def after_mutation(simulation: Simulation) -> Request:
    """The request as the validating phase gets it, with the gateway's own changes only."""
    return with_object(simulation.request, simulation.object) if simulation.changes else simulation.request


def _unconverted(entry: Entry, policy: Policy, request: Request) -> str:
    resource = request.resource
    named = {
        group_version(group, version)
        for rule in policy.rules
        if {resource.resource, "*"} & {each.partition("/")[0] for each in rule.resources}
        for group in rule.api_groups
        for version in rule.api_versions
    }
    came = group_version(resource.group, resource.version)
    return (
        f"policy {policy.name} matches {resource.resource} in {', '.join(sorted(named)) or 'another version'}, but "
        f"the review has it in {came}: the API server would convert the object before it calls entry {entry.name}, "
        "and review cannot; give it the request in a version that the policy names"
    )


def _walk(phase: Phase, request: Request, after: Request, visits: Sequence[SimulatedCall]) -> Simulation:
    first = next((visit for visit in visits if not visit.decision.response.allowed), None)
    return Simulation(
        phase=phase,
        request=request,
        object=after.object,
        visits=tuple(visits),
        refused_by=None if first is None else first.entry,
        status=None if first is None else _status(first),
    )


def _status(visit: SimulatedCall) -> Status:
    """kube-apiserver's ToStatusErr: "admission webhook %q denied the request: " and the message, else the reason, else
    "without explanation".
    """
    status = visit.decision.response.status or Status(code=0)
    status = replace(status, code=denial_code(status.code))
    if not visit.called:
        return status
    denied = f'admission webhook "{visit.entry.name}" denied the request'
    text = status.message or status.reason
    return replace(status, message=f"{denied}: {text}" if text else f"{denied} without explanation")
