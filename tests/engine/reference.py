"""The mutating chain as one plain loop that calls, waits and applies, and random cases to hold the engine against it.

The reference knows no memo, no prefetched calls, no sharing, no timers and no shared structure; it deep-copies and uses
the jsonpatch library. Where both see the same workers, whose answers are functions of what they are shown, both must
come to the same answer. A case is made from its seed alone, in less time than it takes to decide it.
"""

import copy
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jsonpatch
from hypothesis import settings
from msgspec.structs import replace

from gateway.cel.authorization import Authorization, AuthorizationCheck
from gateway.cel.program import EvaluationError
from gateway.engine.decision import Decision
from gateway.engine.verdicts import Allow, Answer, Deny, Failure
from gateway.matching.outcomes import Unknown
from gateway.policies.model import (
    FailurePolicy,
    MatchCondition,
    Mode,
    OnConflict,
    Phase,
    Policy,
    ReinvocationPolicy,
    Requirement,
    Rule,
    Selector,
    SideEffects,
)
from gateway.reasons import Reason
from gateway.scopes.inputs import Inputs
from gateway.scopes.pointer_set import PointerSet
from gateway.scopes.writes import Writes
from tests.world import PODS, World, condition, decide, patch, policy, request, when_authorized

LABELS = ("x", "y", "z")
ELSEWHERE = Rule(operations=("*",), api_groups=("",), api_versions=("*",), resources=("pods/status", "secrets"))
CHECKS = {verb: AuthorizationCheck(verb=verb, resource="pods") for verb in ("get", "list")}
LATENCIES = (0.0, 0.0, 0.0, 0.3, 0.3, 0.9, 1.7, float("inf"))
TIMEOUTS = (0.5, 1.0, 5.0)
LOOKUP_LATENCIES = (0.0, 0.2)
"""Two of them stay below the shortest timeout: what comes too late for the serial chain may be in time for prefetched
calls, as they look things up earlier."""
BUDGETS = (0.0, 0.5, 1.0, 2.0, 3.1, 60.0, 60.0, 60.0)
KINDS = ("allow", "add", "toggle", "count", "remove", "deny if", "deny", "fail", "fail if", "bad patch")
WEIGHTS = (2, 4, 3, 3, 2, 2, 1, 1, 2, 1)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A chain, its workers, and what it judges. Latencies and budget are seconds from the start at 0."""

    seed: int
    chain: list[Policy]
    behaviours: dict[str, tuple[str, str, str]]
    latencies: dict[str, float]
    lookup_latency: float
    budget: float
    labels: dict[str, str]
    dry_run: bool
    authorizations: dict[AuthorizationCheck, Authorization]

    @property
    def request(self) -> Any:
        return request({"metadata": {"name": "p", "labels": dict(self.labels)}}, dryRun=self.dry_run)


def cases(block: int, phase: Phase = Phase.MUTATING) -> Iterator[Case]:
    """As many cases as the profile says; another block gives other ones."""
    count = settings().max_examples
    return (make_case(seed, phase) for seed in range(block * count, (block + 1) * count))


def make_case(seed: int, phase: Phase = Phase.MUTATING) -> Case:
    """The case of this seed."""
    rng = random.Random(seed)
    chain = [_policy(rng, index, phase) for index in range(rng.randint(1, 6))]
    if phase is Phase.MUTATING:
        # A verdict that one had time for would serve the other, who in the serial chain has none.
        timeouts = {each.policy: each.timeout for each in chain}
        chain = [replace(each, timeout=timeouts[each.policy]) for each in chain]
    else:
        # What one has looked up another need not: of two facts in turn, it would know the second earlier than alone.
        chain = [replace(each, match_conditions=_one_lookup(each.match_conditions)) for each in chain]
    kinds, weights = (KINDS, WEIGHTS) if phase is Phase.MUTATING else (("allow", "deny", "deny if", "fail"), None)
    if phase is Phase.VALIDATING and len({each.policy for each in chain}) < len(chain):
        # A policy that shared a failed call is called again, and so fails later than alone.
        kinds = kinds[:-1]
    said = [Authorization(allowed=True), Authorization(), Unknown(message="who?")]
    return Case(
        seed=seed,
        chain=chain,
        behaviours={
            each.policy: (rng.choices(kinds, weights)[0], rng.choice(LABELS), rng.choice("12")) for each in chain
        },
        latencies={each.policy: rng.choice(LATENCIES) for each in chain},
        lookup_latency=rng.choice(LOOKUP_LATENCIES),
        budget=rng.choice(BUDGETS),
        labels={key: "0" for key in LABELS if rng.random() < 0.4},
        dry_run=rng.random() < 0.3,
        authorizations={check: rng.choice(said) for check in CHECKS.values()},
    )


def _policy(rng: random.Random, index: int, phase: Phase) -> Policy:
    def rarely(values: Any, usual: Any, share: float = 0.3) -> Any:
        return rng.choice(list(values)) if rng.random() < share else usual

    key = rarely(LABELS, None)
    requirement = Requirement(key=key or "", operator=rng.choice(["Exists", "DoesNotExist"]))
    shown = rarely([1], None)
    granted = rarely([1], None, 0.2)
    # Some are the same policy of the same worker as another one: then they may have the same question.
    called = rarely(range(index + 1), index)
    return policy(
        f"p{index}",
        phase=phase,
        index=index,
        worker=f"worker-p{called}",
        policy=f"p{called}",
        timeout=rng.choice(TIMEOUTS),
        failure_policy=rng.choice(list(FailurePolicy)),
        reinvocation_policy=rng.choice(list(ReinvocationPolicy)),
        side_effects=rarely(SideEffects, SideEffects.NONE),
        mode=rarely(Mode, Mode.ENFORCE, 0.2),
        on_conflict=rarely(OnConflict, OnConflict.ALLOW, 0.4),
        match_conditions=tuple(_condition(rng) for _ in range(rarely([1, 2], 0))),
        object_selector=Selector(requirements=(requirement,)) if key else Selector(),
        # Some are about something else: the engine has no turn for them.
        rules=(rarely([ELSEWHERE], PODS, 0.15),),
        inputs=Inputs(places=_places(rng, ("object", "metadata", "labels"))) if shown else Inputs.EVERYTHING,
        writes=Writes(granted=_places(rng, ("metadata", "labels"))) if granted else Writes.DEFAULT,
    )


def _one_lookup(conditions: tuple[MatchCondition, ...]) -> tuple[MatchCondition, ...]:
    """The conditions without all but the first that needs an authorization."""
    needing = [each for each in conditions if each.name.startswith("may ")]
    return tuple(each for each in conditions if each not in needing[1:])


def _places(rng: random.Random, above: tuple[str, ...]) -> PointerSet:
    return PointerSet((*above, key) for key in LABELS if rng.random() < 0.7)


def _condition(rng: random.Random) -> Any:
    """A condition over labels and authorizations; its name says which."""
    kind = rng.choice(["has", "error unless", "may"])
    key = rng.choice(sorted(CHECKS) if kind == "may" else LABELS)
    name = f"{kind} {key}"
    if kind == "may":
        return condition(when_authorized(CHECKS[key]), name)

    def value(variables: Any, _: Any) -> Any:
        there = key in variables.object["metadata"]["labels"]
        return there or (EvaluationError(message="no such key") if kind == "error unless" else False)

    return condition(value, name)


# --------------------------------------------------------------------------------------------------- workers


def answer(behaviour: tuple[str, str, str], labels: dict[str, str]) -> Answer:  # noqa: PLR0911 - a table
    """The worker's answer to the labels that it is shown: pure, so that a memo is allowed."""
    kind, key, value = behaviour
    path = f"/metadata/labels/{key}"
    match kind:
        case "add":
            return patch({"op": "add", "path": path, "value": value}, warnings=(f"added {key}",))
        case "toggle":
            operation = {"op": "remove", "path": path} if key in labels else {"op": "add", "path": path, "value": "t"}
            return patch(operation)
        case "count":
            return patch({"op": "add", "path": path, "value": labels.get(key, "") + "i"})
        case "remove":
            return patch({"op": "remove", "path": path}) if key in labels else Allow(audit_annotations={"clean": key})
        case "deny if":
            return Deny(code=422, message=f"{key} is set") if key in labels else Allow()
        case "deny":
            return Deny(message="never", warnings=("sorry",))
        case "fail":
            return Failure(reason=Reason.WORKER_FAILURE, message="it broke")
        case "fail if":
            return Failure(reason=Reason.WORKER_FAILURE, message="it broke") if key in labels else Allow()
        case "bad patch":
            return patch({"op": "add", "path": path, "value": value}, {"op": "remove", "path": "/nowhere"})
        case _:
            return Allow(warnings=("fine",))


def _labels(document: Any) -> dict[str, str]:
    return document.get("object", {}).get("metadata", {}).get("labels", {})


def run(case: Case, *, prefetch: bool) -> tuple[Decision, World]:
    """What the engine makes of the case."""
    answers = {
        name: lambda document, behaviour=behaviour: answer(behaviour, _labels(document))
        for name, behaviour in case.behaviours.items()
    }
    return decide(
        case.chain,
        answers,
        on=case.request,
        now=0.0,
        budget=case.budget,
        latencies=case.latencies,
        lookup_latency=case.lookup_latency,
        authorizations=case.authorizations,
        prefetch=prefetch,
    )


# ------------------------------------------------------------------------------------------------- reference


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a chain comes to; turns are (round, place, what came of it), of which the budget let ``timely`` end."""

    turns: list[tuple[int, int, Answer]]
    object: Any
    ended: float
    refused: bool
    timely: int

    @property
    def kinds(self) -> list[tuple[int, int, str]]:
        return kinds(self.turns)


def kinds(turns: list[tuple[int, int, Any]]) -> list[tuple[int, int, str]]:
    """Each turn with the reason of its failure, or with which verdict it is."""
    return [
        (round_, index, str(said.reason) if isinstance(said, Failure) else type(said).__name__)
        for round_, index, said in turns
    ]


def seen(decision: Decision) -> list[tuple[int, int, str]]:
    """The same of a decision."""
    return kinds([(call.round, call.index, call.answer) for call in decision.calls if call.matched])


def refuses(each: Policy, said: Any) -> bool:
    """Whether an answer ends the chain and refuses the request."""
    if each.mode is not Mode.ENFORCE:
        return False
    if isinstance(said, Failure):
        unignorable = {Reason.DRY_RUN_UNSUPPORTED, Reason.PATCH_CONFLICT}
        return each.failure_policy is FailurePolicy.FAIL or said.reason in unignorable
    return isinstance(said, Deny)


class Serial:
    """Kubernetes' mutating chain."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.now = 0.0
        self.known: set[str] = set()
        self.object: Any = case.request.object
        self.writers: dict[str, set[int]] = {}

    def walk(self) -> Outcome:
        turns: list[tuple[int, int, Answer]] = []
        invoked: set[int] = set()
        marked: set[int] = set()
        changed = False
        timely = 0
        for round_ in range(2):
            for index, each in enumerate(self.case.chain):
                due = round_ == 0 or index in marked
                matched = self.matches(each)
                if matched is False or not (due or (isinstance(matched, Failure) and refuses(each, matched))):
                    continue
                before = self.object
                said = matched if isinstance(matched, Failure) else self.judge(index, each)
                turns.append((round_, index, said))
                timely += self.now < self.case.budget
                if self.object != before:
                    changed = True
                    marked, invoked = marked | invoked, set()
                undecided = isinstance(said, Failure) and said.reason is Reason.CONDITION_ERROR
                if each.reinvocation_policy is ReinvocationPolicy.IF_NEEDED and not undecided:
                    invoked.add(index)
                if refuses(each, said):
                    return Outcome(turns=turns, object=self.object, ended=self.now, refused=True, timely=timely)
            if not changed:
                break
        return Outcome(turns=turns, object=self.object, ended=self.now, refused=False, timely=timely)

    @property
    def labels(self) -> dict[str, str]:
        return self.object["metadata"]["labels"]

    def matches(self, each: Policy) -> bool | Failure:
        if each.rules != (PODS,):
            return False
        for requirement in each.object_selector.requirements:
            if (requirement.key in self.labels) is not (requirement.operator == "Exists"):
                return False
        return self.conditional(each)

    def conditional(self, each: Policy) -> bool | Failure:
        values = [self.outcome(made.name) for made in each.match_conditions]
        if False in values:
            return False
        needed = [check for check in values if check in CHECKS]
        if not needed:
            return Failure(reason=Reason.CONDITION_ERROR, message="") if "error" in values else True
        if self.now + self.case.lookup_latency >= self.case.budget:
            self.now = max(self.now, self.case.budget)
            return Failure(reason=Reason.BUDGET_EXHAUSTED, message="")
        self.now += self.case.lookup_latency
        self.known.add(needed[0])
        return self.conditional(each)

    def outcome(self, name: str) -> Any:
        """What a condition is: True, False, "error", or the check that it needs."""
        kind, key = name.rsplit(" ", 1)
        if kind != "may":
            return key in self.labels or (False if kind == "has" else "error")
        if key not in self.known:
            return key
        said = self.case.authorizations[CHECKS[key]]
        return "error" if isinstance(said, Unknown) else said.allowed

    def judge(self, index: int, each: Policy) -> Answer:
        said, self.now = outcome_of(each, self.case, self.labels, self.now)
        if not isinstance(said, Allow) or said.change is None:
            return said
        failure = self.apply(index, each, json.loads(said.change.content))
        return said if failure is None else Failure(reason=failure, message="")

    def apply(self, index: int, each: Policy, operations: list[dict[str, Any]]) -> Reason | None:
        key = operations[0]["path"].rsplit("/", 1)[1]
        try:
            after = jsonpatch.apply_patch(copy.deepcopy(self.object), operations)
        except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException):
            return Reason.INVALID_PATCH
        if key in self.labels and not shows(each, key):
            return Reason.INVALID_PATCH
        if after == self.object:
            return None
        granted = each.writes.granted
        if granted is not None and not granted.covers(("metadata", "labels", key)):
            return Reason.WRITE_SCOPE
        return self.write(index, each, key, after) if each.mode is Mode.ENFORCE else None

    def write(self, index: int, each: Policy, key: str, after: Any) -> Reason | None:
        others = self.writers.setdefault(key, set()) - {index}
        rules = [each.on_conflict, *(self.case.chain[other].on_conflict for other in others)]
        if others and OnConflict.DENY in rules:
            return Reason.PATCH_CONFLICT
        self.writers[key].add(index)
        self.object = after
        return None


def outcome_of(each: Policy, case: Case, labels: dict[str, str], now: float) -> tuple[Answer, float]:
    """What the calling of one worker at ``now`` comes to, and when."""
    if case.dry_run and each.side_effects not in {SideEffects.NONE, SideEffects.NONE_ON_DRY_RUN}:
        return Failure(reason=Reason.DRY_RUN_UNSUPPORTED, message=""), now
    end = case.budget
    if now >= end:
        return Failure(reason=Reason.BUDGET_EXHAUSTED, message=""), now
    deadline = min(now + each.timeout, end)
    done = now + case.latencies[each.policy]
    if done >= deadline:
        cut_short = now + each.timeout - end > min(0.1, each.timeout / 10) + 1e-6
        reason = Reason.BUDGET_EXHAUSTED if deadline == end and cut_short else Reason.WORKER_TIMEOUT
        return Failure(reason=reason, message=""), deadline
    return answer(case.behaviours[each.policy], {key: labels[key] for key in labels if shows(each, key)}), done


def shows(each: Policy, key: str) -> bool:
    """Whether a policy is shown a label."""
    return each.inputs.places is None or each.inputs.places.covers(("object", "metadata", "labels", key))
