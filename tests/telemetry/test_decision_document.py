"""The document of a decision: all that explains it, within bounds, and no value that must stay hidden."""

import json
from base64 import b64encode

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gateway.engine.trace_context import TraceContext
from gateway.engine.verdicts import Allow, Change, ChangeKind, Deny, Failure
from gateway.policies.errors import Place
from gateway.policies.model import Cache, Mode, Phase, Rule
from gateway.policies.workers.targets import GrpcTarget, ServiceReference, WebhookTarget, Worker
from gateway.reasons import Reason
from gateway.scopes.inputs import Inputs
from gateway.scopes.pointer_set import PointerSet
from gateway.scopes.writes import Writes
from gateway.telemetry.decision_document import DocumentLimits, decision_document, encoded
from tests.world import decide, label, patch, policy, request

OTHERS = (Rule(operations=("*",), api_groups=("apps",), api_versions=("v1",), resources=("deployments",)),)
SECRET = {"group": "", "version": "v1", "kind": "Secret"}


def document(policies, behaviours, *, change=lambda decision: decision, limits=None, **options):
    """The document of one decision, as a reader of its JSON gets it."""
    decision = change(decide(policies, behaviours, **options)[0])
    bounds = {} if limits is None else {"limits": limits}
    return json.loads(encoded(decision_document(decision, replica="gw-1", key=b"k", offset=1_000_000.0, **bounds)))


def test_it_tells_which_review_it_is_of():
    """Uid, time, gateway, trace, entry, request."""
    made = document(
        [policy("a")],
        {"a": Allow()},
        on=request(userInfo={"username": "jane", "groups": ["dev"], "extra": {"credential": ["hunter2"]}}),
        change=lambda decision: replace(
            decision, entry="team.example.com", trace=TraceContext(traceparent=f"00-{'a' * 32}-{'b' * 16}-01")
        ),
    )
    assert made["apiVersion"] == "admission-gateway.dev/decision/v1alpha1"
    assert (made["uid"], made["time"], made["replica"]) == ("u1", "1970-01-12T13:48:20.000Z", "gw-1")
    assert (made["traceId"], made["phase"], made["entry"]) == ("a" * 32, "mutating", "team.example.com")
    assert (made["request"]["user"], made["request"]["groups"]) == ("jane", ["dev"])
    assert "hunter2" not in str(made)


def test_a_denial_names_its_policy_and_where_that_stands():
    """The line of the configuration, the worker's address, whom to ask, and those that no rule of theirs brought in."""
    strict = policy(
        "strict",
        place=Place(file="team.yaml", line=7, path="policies[0]"),
        contact="#team",
        documentation="https://wiki/strict",
    )
    last = policy("last", index=2)
    chain = [strict, policy("other", index=1, rules=OTHERS), last]
    targets = {"worker-strict": Worker(name="worker-strict", grpc=GrpcTarget(target="dns:///strict:50051"))}
    made = document(
        chain,
        {"strict": Deny(message="no")},
        change=lambda decision: replace(decision, plan=replace(decision.plan, workers=targets)),
    )
    (turn,) = made["policies"]
    assert (made["outcome"], made["allowed"], made["status"]["message"][:36]) == (
        "denied",
        False,
        "strict.test.example.com: no (contact",
    )
    assert (turn["verdict"], turn["reason"], turn["message"], turn["refuses"]) == ("deny", "DENIED", "no", True)
    assert (turn["place"], turn["target"]) == ("team.yaml:7: policies[0]", "dns:///strict:50051")
    assert (turn["contact"], turn["documentation"]) == ("#team", "https://wiki/strict")
    assert (made["unmatched"], made["notReached"]) == (
        [],
        ["test/other.test.example.com", "test/last.test.example.com"],
    )


def test_a_policy_without_a_rule_about_the_request_is_derived():
    """The decision has no record of it."""
    made = document([policy("a"), policy("b", index=1, rules=OTHERS)], {"a": Allow()})
    assert (made["unmatched"], made["notReached"]) == (["test/b.test.example.com"], [])


def test_the_time_of_each_turn_and_of_its_call():
    """From the header's arrival, with what was left of the budget."""
    made = document(
        [policy("slow"), policy("late", index=1, timeout=1.0)],
        {"slow": Allow(), "late": Allow()},
        latencies={"slow": 0.25, "late": float("inf")},
    )
    slow, late = made["policies"]
    assert (slow["startedMs"], slow["endedMs"], slow["leftMs"]) == (0.0, 250.0, 9750.0)
    assert slow["call"] == {"calledMs": 0.0, "answeredMs": 250.0, "prefetched": False}
    assert (late["reason"], late["call"]) == (
        "WORKER_TIMEOUT",
        {"calledMs": 250.0, "answeredMs": None, "prefetched": False},
    )
    assert made["ledger"]["budgetMs"] == 10_000.0
    assert [(each["name"], each["spentMs"], each["leftMs"]) for each in made["ledger"]["stages"]] == [
        ("decode", 0.0, 10_000.0),
        ("calls", 1250.0, 8750.0),
    ]


def test_a_prefetched_call_has_its_own_time():
    """The call was made before the turn."""
    made = document(
        [policy("a"), policy("b", index=1)],
        {"a": Allow(), "b": Allow()},
        latencies={"a": 0.5, "b": 0.25},
        prefetch=True,
    )
    assert made["policies"][1]["startedMs"] == 500.0
    assert made["policies"][1]["call"] == {"calledMs": 0.0, "answeredMs": 250.0, "prefetched": True}
    assert made["prefetches"] == 1


def test_why_an_answer_was_not_cached():
    """No cache, an equal call before; a policy that was not called has no word about it."""
    twin = {"worker": "w", "policy": "a", "inputs": Inputs.EVERYTHING}
    away = policy("away", index=2, cache=Cache(ttl=60.0))
    made = document(
        [policy("a", **twin), policy("b", **twin | {"index": 1}), away],
        {"a": Allow(), "away": Failure(reason=Reason.WORKER_UNAVAILABLE, message="m")},
        budget=9.0,
    )
    assert [each["cache"]["result"] for each in made["policies"]] == ["none", "memo", "none"]
    assert made["policies"][0]["cache"]["why"] == "the policy has no cache"
    no_time = document([policy("a")], {}, budget=0.0)
    assert (no_time["policies"][0]["cache"], no_time["policies"][0]["call"]) == (None, None)


def test_who_changed_what():
    """As ``review -o json`` says it."""
    made = document(
        [policy("one"), policy("two", index=1), policy("try", index=2, mode=Mode.WARN)],
        {"one": label("x", "1"), "two": label("x", "2"), "try": label("y")},
    )
    (change,) = made["changedBy"]
    assert (change["path"], change["after"], change["policy"], change["order"], change["earlier"]) == (
        "/metadata/labels/x",
        "2",
        "test/two.test.example.com",
        1,
        [0],
    )
    assert made["patch"] == [{"op": "add", "path": "/metadata/labels/x", "value": "2"}]
    assert made["policies"][2]["wouldChange"] == [{"op": "add", "path": "/metadata/labels/y", "value": "1"}]


def test_a_validating_decision_has_no_changes():
    """All turns at once."""
    made = document([policy("a", phase=Phase.VALIDATING)], {"a": Allow(warnings=("w",))})
    assert (made["phase"], made["patch"], made["changedBy"], made["warnings"]) == ("validating", [], [], ["w"])


@given(value=st.text(min_size=4, max_size=40).filter(lambda text: text.isalnum() and text not in "metadata hidden"))
def test_no_value_of_a_secret_appears(value):
    """Neither in changes nor in what a worker says, plain or in base64."""
    value = f"#{value}"
    coded = b64encode(value.encode()).decode()
    obj = {"metadata": {"name": "s", "labels": {}}, "data": {"key": coded}, "stringData": {"plain": value}}
    texts = {"warnings": (f"is {value}",), "audit_annotations": {"note": f"{coded}!"}}
    behaviours = {
        "change": patch({"op": "add", "path": "/data/copy", "value": coded}, **texts),
        "deny": Deny(message=f"the password {value} ({coded}) is weak " * 100, **texts),
    }
    chain = [policy("change"), policy("deny", index=1)]
    for judges in (chain, chain[:1]):
        made = str(document(judges, behaviours, on=request(obj, kind=SECRET)))
        assert value not in made
        assert coded not in made
        assert "/data/copy" in made


def test_a_large_value_is_left_out():
    """Its size stands in its place."""
    made = document([policy("a")], {"a": patch({"op": "add", "path": "/spec", "value": {"x": "y" * 5000}})})
    assert made["patch"] == [{"op": "add", "path": "/spec", "valueBytes": 5008}]
    assert made["changedBy"][0]["afterBytes"] == 5008
    assert "patch[0].value: 0 of 5008 bytes" in made["cuts"]


def test_a_value_that_a_policy_was_not_shown_is_a_digest():
    """The difference may contain what its inputs hide."""
    seen = Inputs(places=PointerSet([("object", "metadata", "labels")]))
    change = Allow(change=Change(kind=ChangeKind.MERGE_PATCH, content=b'{"spec": {"password": "hunter2"}}'))
    made = document([policy("a", inputs=seen, writes=Writes.EVERYTHING)], {"a": change})
    assert made["allowed"]
    assert made["patch"]
    assert made["changedBy"][0]["hidden"]
    assert "hunter2" not in str(made)


def test_it_is_bounded():
    """Whatever a request is called and its workers answer; what is missing is said."""
    keys = ["k" * 300 + str(index) for index in range(10)]
    behaviours = {
        f"p{number}": patch(
            *({"op": "add", "path": f"/metadata/labels/{number}-{key}", "value": "v" * 900} for key in keys),
            warnings=("w" * 5000,) * 20,
        )
        for number in range(60)
    }
    many = [policy(f"p{number}", index=number) for number in range(60)]
    made = document(many, behaviours, on=request(uid="u" * 100_000, name="n" * 100_000))
    assert len(json.dumps(made, separators=(",", ":"), ensure_ascii=False).encode()) <= DocumentLimits().document_bytes
    assert any(each.startswith("policies: ") for each in made["cuts"])
    small = document(many[:3], behaviours, limits=DocumentLimits(document_bytes=10_000))
    assert len(json.dumps(small, separators=(",", ":"))) <= 10_000


def test_where_a_worker_is():
    """One text for each kind of worker; of a command only the program."""
    service = ServiceReference(namespace="ns", name="svc", path="/x", port=8443)
    assert Worker(name="w", grpc=GrpcTarget(target="", command=("./w", "--token=hunter2"))).address == "command ./w"
    assert Worker(name="w", webhook=WebhookTarget(service=service)).address == "https://svc.ns.svc:8443/x"
    assert Worker(name="w", webhook=WebhookTarget(url="https://x/y")).address == "https://x/y"
