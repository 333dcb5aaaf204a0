"""Judges candidates by the same engine and workers as a review, page by page, and keeps where it is.

It calls the workers, never a serving gateway; at most ``CONCURRENT`` objects at a time, at the given pace. A policy's
verdict depends on nothing but its document, so no cache and no other policy is in its way: also a policy after another
one's denial judges each object.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from gateway.audit.api_reader import ApiReader
from gateway.audit.candidates import AuditPart, Candidate, CandidatePage, Review
from gateway.audit.lost_inputs import needed
from gateway.audit.results import MESSAGE_CHARACTERS, AuditResults, Finding, Result
from gateway.audit.state import AuditState
from gateway.audit.synthetic import synthetic_review
from gateway.cluster.errors import ApiError
from gateway.engine.decision import Decision
from gateway.engine.engine import Engine
from gateway.engine.invocation_record import InvocationRecord
from gateway.engine.plan import Plan, make_plan
from gateway.engine.verdicts import Allow, Deny, Failure
from gateway.policies.model import Phase, Policy
from gateway.reasons import Reason
from gateway.review.request import Request, ReviewError, TooManyValuesError
from gateway.serving.driver import Driver
from gateway.serving.loaded_configuration import LoadedConfiguration
from gateway.telemetry.redaction import Redaction

if TYPE_CHECKING:
    from gateway.matching.index import PolicyIndex

CONCURRENT: Final = 4
"""Objects that are judged at the same time: a few, so that workers serve the reviews of users as before."""

OBJECT_SECONDS: Final = 40.0
"""Budget of one object: the longest timeoutSeconds, 30, and 10 for what matching looks up."""


BURST_SECONDS: Final = 0.5
"""How far a pace that was slower may catch up: without it, every late timer would lower the rate."""


class Pace:
    """How fast objects are judged: at most N per second, evenly. The caller has the clock, and waits.

    Args:
        rate: objects per second; 0: as fast as possible.
    """

    def __init__(self, rate: float) -> None:
        self._interval = 1 / rate if rate else 0.0
        self._next = 0.0

    def wait(self, now: float) -> float:
        """Take the next turn; returns the seconds until it begins."""
        begins = max(self._next, now - BURST_SECONDS)
        self._next = begins + self._interval
        return max(begins - now, 0.0)


class Auditor:
    """Judges the parts of an audit.

    Args:
        configuration: started.
        reader: of the API server.
        pace: of all objects.
        state: from where to go on; it is changed.
        save: keeps the state, after each page.
        progress: called after each page with the name of the part.
        now: seconds, from any start.
        sleep: waits.
    """

    def __init__(  # noqa: PLR0913 - all but the first by name
        self,
        configuration: LoadedConfiguration,
        *,
        reader: ApiReader,
        pace: Pace,
        state: AuditState,
        save: Callable[[AuditState], object],
        progress: Callable[[str], object] = lambda _: None,
        now: Callable[[], float] = monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._configuration = configuration
        self._reader = reader
        self._pace = pace
        self._state = state
        self._save = save
        self._progress = progress
        self._now = now
        self._sleep = sleep
        self._indexes: dict[tuple[str, ...], PolicyIndex] = {}

    async def run(self, parts: Sequence[AuditPart]) -> AuditResults:
        """Judge all parts that are not done yet; returns the results of all.

        A part that the API server does not list ends there: the results say so.
        """
        for part in parts:
            if part.name not in self._state.done:
                await self._part(part)
        return self._state.results

    async def _part(self, part: AuditPart) -> None:
        state = self._state
        token = state.begin(part.name)
        try:
            async for page in part.pages(self._reader, token):
                results = await self._judged(page)
                state.advance(results, page.token, restarted=page.restarted)
                if page.token:
                    self._save(state)
                self._progress(part.name)
        except ApiError as error:
            state.current.not_audited(f"{part.name}: {error}")
        # With the last page in one step: what is kept never has a complete part that is not done.
        state.end()
        self._save(state)

    async def _judged(self, page: CandidatePage) -> AuditResults:
        """The results of a page. Raises ApiError: an object cannot be read."""
        results = AuditResults()
        for why, number in page.skipped.items():
            results.skip(why, number)
        waiting = iter(page.candidates)
        errors: list[ApiError] = []
        async with asyncio.TaskGroup() as tasks:
            for _ in range(CONCURRENT):
                tasks.create_task(self._take(waiting, results, errors))
        if errors:
            raise errors[0]
        return results

    async def _take(self, waiting: Iterator[Candidate], results: AuditResults, errors: list[ApiError]) -> None:
        # The tasks share one iterator: each candidate is taken by one of them.
        for candidate in waiting:
            # One turn for reading an object and judging it: the pace is that of both, the API server and the workers.
            await self._sleep(self._pace.wait(self._now()))
            if errors:
                return
            try:
                obj = await candidate.read(self._reader)
            except ApiError as error:
                errors.append(error)
                return
            if isinstance(obj, str):
                results.skip(obj)
                continue
            read = replace(candidate, obj=obj)
            judged = False
            for review in candidate.reviews:
                judged |= await self._review(read, review, results)
            results.objects += judged

    async def _review(self, candidate: Candidate, review: Review, results: AuditResults) -> bool:
        """Judge an object as one operation. Returns whether a policy matched."""
        plan = self._plan(review.policies)
        policies: list[Policy] = []
        for member in plan.members:
            if place := needed(member, review.lost, candidate.obj):
                text = f"it cannot judge this {review.operation} again: it needs {place}, which the log does not have"
                results.found(_about(candidate, review, member.policy, result=Result.ERROR, reason="", message=text))
            else:
                policies.append(member.policy)
        if not policies:
            return False
        if len(policies) < len(plan.members):
            plan = self._plan(tuple(policies))
        return await self._judge(candidate, review, plan, results)

    async def _judge(self, candidate: Candidate, review: Review, plan: Plan, results: AuditResults) -> bool:
        try:
            request = synthetic_review(candidate.obj, candidate.served, review.operation, review.user)
            decision = await self._decide(request, plan)
        except ReviewError as error:
            for member in plan.members:
                results.found(_unreadable(candidate, review, member.policy, error))
            return True
        redaction = Redaction.of(decision)
        matched = [call for call in decision.calls if call.matched and call.answer is not None]
        for call in matched:
            if isinstance(call.answer, Allow):
                results.passed(call.policy.qualified_name, _namespace(candidate))
            else:
                results.found(_finding(candidate, review, call, redaction))
        return bool(matched)

    def _plan(self, policies: tuple[Policy, ...]) -> Plan:
        names = tuple(policy.qualified_name for policy in policies)
        availabilities = self._configuration.workers.availabilities(Phase.VALIDATING)
        plan = make_plan(Phase.VALIDATING, policies, availabilities, index=self._indexes.get(names))
        self._indexes[names] = plan.index
        return plan

    async def _decide(self, request: Request, plan: Plan) -> Decision:
        configuration = self._configuration
        ends = monotonic() + OBJECT_SECONDS
        engine = Engine(request, plan, ends=ends, namespaces=configuration.namespaces)
        driver = Driver(request.uid, engine, caller=configuration.policy_caller, facts=configuration.facts)
        return await driver.decide()


def _finding(candidate: Candidate, review: Review, call: InvocationRecord, redaction: Redaction) -> Finding:
    answer = call.answer
    result = Result.VIOLATION if isinstance(answer, Deny) else Result.ERROR
    reason = answer.reason.value if isinstance(answer, Failure) else ""
    text = answer.message if isinstance(answer, Deny | Failure) else ""
    if isinstance(answer, Deny):
        text = text or answer.reason
    message = redaction.text(text, call)[:MESSAGE_CHARACTERS]
    return _about(candidate, review, call.policy, result=result, reason=reason, message=message)


def _unreadable(candidate: Candidate, review: Review, policy: Policy, error: ReviewError) -> Finding:
    reason = Reason.REQUEST_TOO_LARGE if isinstance(error, TooManyValuesError) else Reason.INTERNAL
    return _about(candidate, review, policy, result=Result.ERROR, reason=reason.value, message=str(error))


def _about(
    candidate: Candidate, review: Review, policy: Policy, *, result: Result, reason: str, message: str
) -> Finding:
    served, metadata = candidate.served, candidate.obj["metadata"]
    return Finding(
        policy=policy.qualified_name,
        result=result,
        reason=reason,
        message=message,
        operation=review.operation,
        group=served.group,
        version=served.version,
        resource=served.name,
        kind=served.kind,
        namespace=_namespace(candidate),
        name=metadata["name"],
        uid=metadata.get("uid", ""),
    )


def _namespace(candidate: Candidate) -> str:
    return candidate.obj["metadata"].get("namespace") or ""
