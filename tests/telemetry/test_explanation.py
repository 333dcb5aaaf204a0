"""The text of an explanation: who, why, what, where from and how long, for people."""

from msgspec.structs import replace

from gateway.engine.verdicts import Allow, Deny, Failure
from gateway.policies.errors import Place
from gateway.policies.model import FailurePolicy, Mode, Phase, Rule
from gateway.policies.workers.targets import GrpcTarget, Worker
from gateway.reasons import Reason
from gateway.serving.explain import explanation
from gateway.serving.own_refusals import internal
from gateway.telemetry.decision_memory import DecisionMemory
from gateway.telemetry.explanation import explanation_lines
from gateway.telemetry.findings import Query, find
from tests.world import canceled, decide, label, patch, policy, request

OTHERS = (Rule(operations=("*",), api_groups=("apps",), api_versions=("v1",), resources=("deployments",)),)
SLOW = {"worker-slow": Worker(name="worker-slow", grpc=GrpcTarget(target="dns:///slow:50051"))}
WORKERS = {"worker-strict": Worker(name="worker-strict", grpc=GrpcTarget(target="dns:///strict:50051"))}


def text_of(policies, behaviours, *, change=lambda decision: decision, **options):
    """The text about one decision."""
    options.setdefault("on", request(name="web", userInfo={"username": "jane"}))
    memory = DecisionMemory()
    memory.decided(change(decide(policies, behaviours, **options)[0]))
    found = find(memory, Query(uid="u1"), replica="gw-1")
    return "\n".join(explanation_lines(explanation("u1", [found])))


def test_a_denial_leads_to_the_line_of_its_policy():
    """Who denied, where that is configured, where its worker is, whom to ask, what to read."""
    strict = policy(
        "strict",
        place=Place(file="team.yaml", line=7, path="policies[0]"),
        contact="#team",
        documentation="https://wiki/strict",
    )
    text = text_of(
        [strict, policy("late", index=1)],
        {"strict": Deny(message="no tag")},
        change=lambda decision: replace(decision, entry="e.test", plan=replace(decision.plan, workers=WORKERS)),
    )
    head, _, rest = text.partition("\n\n")
    assert head.startswith("DENIED: CREATE pods t/web by jane\n")
    assert "mutating phase, entry e.test, gateway gw-1" in head
    assert rest.startswith("test/strict.test.example.com denied it: no tag\n")
    for line in (
        "configured at  team.yaml:7: policies[0]",
        "worker         worker-strict at dns:///strict:50051, its policy strict, version 1",
        "whom to ask    #team",
        "what to read   https://wiki/strict",
        "not called, because the refusal came first: test/late.test.example.com",
    ):
        assert f"  {line}\n" in rest


def test_who_hung_up_had_no_answer_of_these():
    """After how long, which policy the gateway waited for, and where its worker is."""
    memory = DecisionMemory()
    chain = [policy("slow"), policy("late", index=1)]
    decision = canceled(chain, on=request(name="web"), prefetch=False)
    memory.decided(replace(decision, plan=replace(decision.plan, workers=SLOW)))
    text = "\n".join(explanation_lines(explanation("u1", [find(memory, Query(uid="u1"), replica="gw-1")])))
    assert text.startswith("CANCELED: CREATE pods t/web\n")
    waited = (
        "The client hung up after 2,500 ms, while the gateway waited for test/slow.test.example.com. It got no answer."
    )
    assert f"\n\n{waited}\n  worker         worker-slow at dns:///slow:50051, its policy slow, version 1\n" in text
    assert "0 policies judged it; 1 call to a worker, 0 answers without one" in text
    assert "not called, because the client hung up first: test/late.test.example.com" in text
    assert "no answer" in text.rpartition("\n")[2]


def test_what_the_gateway_refused_itself_says_so():
    """Also where a policy had refused: its verdict is not what the client got."""
    for answer in (Allow(), Deny(message="no")):
        text = text_of([policy("a")], {"a": answer}, change=internal)
        assert text.startswith("FAILED: ")
        assert "The gateway refused it: INTERNAL: the gateway could not decide this review; see its log\n" in text


def test_what_was_changed_and_by_whom():
    """The last writer, and those before it."""
    text = text_of([policy("a"), policy("b", index=1)], {"a": label("x"), "b": label("x", "2")})
    assert (
        'add     /metadata/labels/x = "2"\n          by test/b.test.example.com, after test/a.test.example.com' in text
    )
    assert "No policy refused it.\nChanged 1 field:" in text


def test_failures_say_what_became_of_them():
    """Refused, ignored, or only noted."""
    away = Failure(reason=Reason.WORKER_UNAVAILABLE, message="away")
    assert "failed, failurePolicy Fail refuses the request: WORKER_UNAVAILABLE: away" in text_of(
        [policy("a")], {"a": away}
    )
    ignored = text_of([policy("a", failure_policy=FailurePolicy.IGNORE)], {"a": away})
    assert "failed, ignored (failurePolicy Ignore, mode enforce)" in ignored
    tried = text_of([policy("a", mode=Mode.WARN)], {"a": Deny(message="bad")})
    assert "would deny it (mode warn: not enforced): bad" in tried


def test_the_table_has_a_row_for_each_policy():
    """Where its answer came from, when it began, how long it took, how large its document was."""
    chain = [policy(name, phase=Phase.VALIDATING, index=index) for index, name in enumerate("ab")]
    other = policy("c", phase=Phase.VALIDATING, index=2, rules=OTHERS)
    text = text_of([*chain, other], {"a": Allow(), "b": Allow()}, latencies={"a": 0.25})
    rows = [line.split() for line in text.partition("POLICY  ")[2].splitlines()]
    assert rows[1][:8] == ["test/a.test.example.com", "allow", "called", "none", "0.0", "ms", "250", "ms"]
    assert rows[2][:2] == ["test/b.test.example.com", "allow"]
    assert "no rule about it: test/c.test.example.com" in text
    assert "Took 250 ms of 10,000 ms" in text


def test_no_text_controls_the_terminal():
    """Whatever a worker and a request say; a value is cut."""
    on = request({"metadata": {"name": "p"}}, name="\x1b[31m", userInfo={"username": "j\u202eane"})
    text = text_of([policy("a")], {"a": patch({"op": "add", "path": "/x", "value": "\x1b[2J" + "v" * 999})}, on=on)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "v" * 100 not in text
    denied = text_of([policy("a")], {"a": Deny(message="a\x1b[2J\x07b")}, on=on)
    assert "denied it: a?[2J?b" in denied


def test_a_reduced_decision_says_what_is_missing():
    """Its document was cut."""
    text = text_of([policy("a")], {"a": Deny(message="m" * 100_000)})
    assert "Left out, because it is too large: " in text
