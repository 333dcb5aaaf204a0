"""The state machine against a reference: the same chain, written as one plain loop that asks, waits and applies.

The reference knows no memo, no sharing, no timers and no shared structure; it deep-copies and uses the jsonpatch
library. Where both see the same workers, they must come to the same answer.
"""

import copy
import json

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conditions import Authorization, AuthorizationCheck, EvaluationError
from gateway.deciding import Allow, Deny, Failure
from gateway.patching import equal
from gateway.policies import FailurePolicy, Mode, Phase, ReinvocationPolicy, Requirement, Selector, SideEffects
from gateway.reasons import Reason
from tests.world import condition, decide, patch, policy, request, when_authorized

LABELS = ("x", "y", "z")
CHECKS = {verb: AuthorizationCheck(verb=verb, resource="pods") for verb in ("get", "list")}
LATENCIES = (0.0, 0.3, 0.9, 1.7, float("inf"))
BUDGETS = (0.0, 0.5, 1.0, 2.0, 3.1, 20.0)


@st.composite
def behaviours(draw):
    """What a worker does, as a function of the labels it sees."""
    kind = draw(st.sampled_from(["allow", "add", "toggle", "count", "remove", "deny if", "deny", "fail", "bad patch"]))
    return kind, draw(st.sampled_from(LABELS)), draw(st.sampled_from(["1", "2"]))


def answer(behaviour, labels):  # noqa: PLR0911 - a table
    """The worker's answer to a document: pure, so that a memo is allowed."""
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
        case "bad patch":
            return patch({"op": "add", "path": path, "value": value}, {"op": "remove", "path": "/nowhere"})
        case _:
            return Allow(warnings=("fine",))


def scripted(kind, key):
    """A condition over labels and authorizations; its name says which."""
    name = f"{kind} {key}"
    if kind == "may":
        return condition(when_authorized(CHECKS[key]), name)

    def value(variables, _):
        there = key in variables.object["metadata"]["labels"]
        return there or (EvaluationError(message="no such key") if kind == "error unless" else False)

    return condition(value, name)


CONDITIONS = st.one_of(
    st.builds(scripted, st.sampled_from(["has", "error unless"]), st.sampled_from(LABELS)),
    st.builds(scripted, st.just("may"), st.sampled_from(sorted(CHECKS))),
)
RARELY = st.sampled_from([False, False, True])


@st.composite
def policies(draw, phase):
    made = []
    for index in range(draw(st.integers(1, 5))):
        key = draw(st.none() | st.sampled_from(LABELS))
        operator = draw(st.sampled_from(["Exists", "DoesNotExist"]))
        made.append(
            policy(
                f"p{index}",
                phase=phase,
                index=index,
                timeout=draw(st.sampled_from([0.5, 1.0, 5.0])),
                failure_policy=draw(st.sampled_from(list(FailurePolicy))),
                reinvocation_policy=draw(st.sampled_from(list(ReinvocationPolicy))),
                side_effects=draw(st.sampled_from(list(SideEffects))),
                mode=draw(st.sampled_from(list(Mode))) if draw(RARELY) else Mode.ENFORCE,
                match_conditions=tuple(draw(st.lists(CONDITIONS, max_size=2))) if draw(RARELY) else (),
                object_selector=Selector(requirements=(Requirement(key=key, operator=operator),))
                if key
                else Selector(),
            )
        )
    return made


@st.composite
def cases(draw, phase):
    chain = draw(policies(phase))
    names = [each.policy for each in chain]
    return {
        "chain": chain,
        "behaviours": {name: draw(behaviours()) for name in names},
        "latencies": {name: draw(st.sampled_from(LATENCIES)) for name in names},
        "budget": draw(st.sampled_from(BUDGETS)),
        "labels": draw(st.dictionaries(st.sampled_from(LABELS), st.just("0"))),
        "dry_run": draw(RARELY),
        "authorizations": {
            check: draw(st.sampled_from([Authorization(allowed=True), Authorization(), Authorization(error="who?")]))
            for check in CHECKS.values()
        },
    }


def selected(each, labels):
    for requirement in each.object_selector.requirements:
        if (requirement.key in labels) is not (requirement.operator == "Exists"):
            return False
    return True


def outcome(name, case, labels, known):
    """What a scripted condition is: True, False, "error", or the check that it needs."""
    kind, key = name.rsplit(" ", 1)
    if kind != "may":
        return key in labels or (False if kind == "has" else "error")
    if key not in known:
        return key
    said = case["authorizations"][CHECKS[key]]
    return "error" if said.error else said.allowed


def conditional(each, case, labels, known, now):
    """True, False, or the failure that the conditions come to. ``known`` are the checks that have been answered."""
    values = [outcome(made.name, case, labels, known) for made in each.match_conditions]
    if False in values:
        return False
    needed = [check for check in values if check in CHECKS]
    if not needed:
        return Failure(reason=Reason.CONDITION_ERROR, message="") if "error" in values else True
    if now >= case["budget"]:
        return Failure(reason=Reason.BUDGET_EXHAUSTED, message="")
    known.add(needed[0])
    return conditional(each, case, labels, known, now)


def refuses(each, said):
    """Whether an answer ends the chain and refuses the request."""
    if each.mode is not Mode.ENFORCE:
        return False
    if isinstance(said, Failure):
        return each.failure_policy is FailurePolicy.FAIL or said.reason is Reason.DRY_RUN_UNSUPPORTED
    return isinstance(said, Deny)


def heard(each, case, labels, now):
    """What the asking of one worker at ``now`` comes to, and when."""
    if case["dry_run"] and each.side_effects not in {SideEffects.NONE, SideEffects.NONE_ON_DRY_RUN}:
        return Failure(reason=Reason.DRY_RUN_UNSUPPORTED, message=""), now
    end = case["budget"]
    if now >= end:
        return Failure(reason=Reason.BUDGET_EXHAUSTED, message=""), now
    deadline = min(now + each.timeout, end)
    done = now + case["latencies"][each.policy]
    if done >= deadline:
        reason = Reason.BUDGET_EXHAUSTED if deadline == end else Reason.WORKER_TIMEOUT
        return Failure(reason=reason, message=""), deadline
    return answer(case["behaviours"][each.policy], labels), done


def applied(obj, said):
    """The object after a change, or the failure that it is."""
    if not isinstance(said, Allow) or said.change is None:
        return obj, said
    try:
        return jsonpatch.apply_patch(copy.deepcopy(obj), json.loads(said.change.content)), said
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException):
        return obj, Failure(reason=Reason.INVALID_PATCH, message="")


def serial_chain(case, obj):
    """Kubernetes' mutating chain: (turns, final object, when, refused)."""
    turns, now, changed_at_all, known = [], 0.0, False, set()
    invoked, marked = set(), set()
    for round_ in range(2):
        if round_ == 1 and not changed_at_all:
            break
        for index, each in enumerate(case["chain"]):
            labels = obj["metadata"]["labels"]
            matched = selected(each, labels) and conditional(each, case, labels, known, now)
            due = round_ == 0 or index in marked
            if matched is False or not (due or (isinstance(matched, Failure) and refuses(each, matched))):
                continue
            if isinstance(matched, Failure):
                after, said = obj, matched
            else:
                said, now = heard(each, case, labels, now)
                after, said = applied(obj, said)
            turns.append((round_, index, said))
            if after != obj and each.mode is Mode.ENFORCE:
                obj, changed_at_all = after, True
                marked |= invoked
                invoked = set()
            undecided = isinstance(said, Failure) and said.reason is Reason.CONDITION_ERROR
            if each.reinvocation_policy is ReinvocationPolicy.IF_NEEDED and not undecided:
                invoked.add(index)
            if refuses(each, said):
                return turns, obj, now, True
    return turns, obj, now, False


def kinds(turns):
    return [
        (round_, index, said.reason if isinstance(said, Failure) else type(said).__name__)
        for round_, index, said in turns
    ]


def seen(decision):
    return kinds([(call.round, call.index, call.answer) for call in decision.calls if call.matched])


def on(case):
    return request({"metadata": {"name": "p", "labels": case["labels"]}}, dryRun=case["dry_run"])


def run(case):
    answers = {
        name: lambda document, behaviour=behaviour: answer(behaviour, document["object"]["metadata"]["labels"])
        for name, behaviour in case["behaviours"].items()
    }
    world = {key: case[key] for key in ("budget", "latencies", "authorizations")}
    return decide(case["chain"], answers, on=on(case), now=0.0, **world)


def memo_may_differ(case):
    """A second round's verdict may come from the memo, in no time: then only an unhurried chain must be equal."""
    return any(latency > 0 for latency in case["latencies"].values())


@pytest.mark.property
@given(cases(Phase.MUTATING))
def test_the_mutating_chain_is_kubernetes_serial_chain(case):
    """Same turns in the same order with the same outcome, same object, same answer."""
    decision, _ = run(case)
    turns, obj, ended, refused = serial_chain(case, on(case).object)
    got, expected = seen(decision), kinds(turns)
    if decision.ended == pytest.approx(ended) or not memo_may_differ(case):
        assert got == expected
        assert decision.response.allowed is not refused
        assert equal(decision.object, obj)
    else:
        assert decision.ended < ended, "a memo can only save time"
        judged = [turn for turn in expected if turn[2] in {"Allow", "Deny"}]
        assert len([turn for turn in got if turn[2] in {"Allow", "Deny"}]) >= len(judged)


@pytest.mark.property
@given(cases(Phase.MUTATING))
def test_the_patch_gives_what_was_predicted(case):
    """Applying it, with another library, to the object that came gives the decision's object; a refusal has none."""
    decision, _ = run(case)
    response = decision.response
    if not response.allowed:
        assert response.patch is None
    elif response.patch is None:
        assert equal(decision.object, on(case).object)
    else:
        patched = jsonpatch.apply_patch(on(case).object, json.loads(response.patch))
        assert equal(patched, decision.object)
        assert not equal(patched, on(case).object)


@pytest.mark.property
@given(cases(Phase.VALIDATING))
def test_the_fan_out_judges_everybody_who_matches_at_once(case):
    """Each is heard or not by its own time alone, whatever the others do."""
    for name, behaviour in case["behaviours"].items():
        if behaviour[0] not in {"allow", "deny", "deny if", "fail"}:
            case["behaviours"][name] = ("allow", *behaviour[1:])
    decision, _ = run(case)
    turns, ends = [], [0.0]
    for index, each in enumerate(case["chain"]):
        matched = selected(each, case["labels"]) and conditional(each, case, case["labels"], set(), 0.0)
        if isinstance(matched, Failure):
            turns.append((0, index, matched))
        elif matched:
            said, when = heard(each, case, case["labels"], 0.0)
            turns.append((0, index, said))
            ends.append(when)
    assert seen(decision) == kinds(turns)
    assert decision.ended == pytest.approx(max(ends))


@pytest.mark.property
@given(st.sampled_from(list(Phase)).flatmap(lambda phase: st.tuples(st.just(phase), cases(phase))))
def test_a_policy_under_fail_that_denied_or_could_not_judge_is_never_followed_by_an_allow(drawn):
    """And one under Ignore that could not judge is always heard of."""
    _, case = drawn
    decision, _ = run(case)
    refusing = [call for call in decision.calls if refuses(call.policy, call.answer)]
    assert decision.response.allowed is (not refusing)
    for call in decision.calls:
        if isinstance(call.answer, Failure) and call.policy.mode is Mode.ENFORCE and call not in refusing:
            assert any(call.label in text for text in decision.response.warnings)
            assert any(key.startswith(call.label) for key in decision.response.audit_annotations)


@pytest.mark.property
@given(st.sampled_from(list(Phase)).flatmap(cases))
def test_every_decision_comes_before_the_budget_ends(case):
    """Whatever workers do. (In a budget of no time at all, at once.)"""
    decision, world = run(case)
    assert decision.ended <= case["budget"]
    assert all(ask.deadline <= case["budget"] for _, ask in world.asks)


@pytest.mark.property
@given(st.sampled_from(list(Phase)).flatmap(cases))
def test_every_ask_given_up_is_cancelled_unless_it_has_side_effects(case):
    """An ask is answered in time, or cancelled, or never cancellable."""
    _, world = run(case)
    cancelled = {ask_id for _, ask_id in world.cancels}
    for asked, ask in world.asks:
        in_time = asked + case["latencies"][ask.policy.policy] < ask.deadline
        assert (ask.id in cancelled) is (ask.cancellable and not in_time)
