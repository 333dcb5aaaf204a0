"""What a gateway has logged as unjudged is what an audit judges again, whatever else is in the log."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.audit import unjudged_lines as module
from gateway.audit.unjudged_lines import (
    ALL,
    DRY_RUN,
    EXTRA,
    GROUPS,
    MUTATING,
    NO_NAME,
    NO_OBJECT,
    NO_POLICIES,
    OLD_OBJECT,
    REFUSED,
    TOO_MANY,
    UNREADABLE,
    unjudged_lines,
)
from gateway.engine.verdicts import Failure
from gateway.policies.model import FailurePolicy, Phase
from gateway.reasons import Reason
from gateway.telemetry.unjudged import unjudged_document
from tests.world import decide, policy, request

A, B = "test/a.test.example.com", "test/b.test.example.com"
FAILED = Failure(reason=Reason.WORKER_UNAVAILABLE, message="m")


def unjudged_objects(log):
    """The objects in a log, and what does not count."""
    found = unjudged_lines(log)
    return found.objects, found.skipped


def line(*names, phase=Phase.VALIDATING, members=None, obj=None):
    """As the gateway writes it: of a review in which these policies failed."""
    fields = {"phase": phase, "failure_policy": FailurePolicy.IGNORE}
    policies = [policy(name, index=index, **fields) for index, name in enumerate(names or ("a",))]
    about = {"name": "p", "userInfo": {"username": "jane", "groups": ["g"]}} | (members or {})
    sent = request(obj or {"metadata": {"name": "p", "uid": "u"}}, **about)
    decision, _ = decide(policies, dict.fromkeys(names or ("a",), FAILED), on=sent)
    return json.dumps(unjudged_document(decision, decision.calls)).encode() + b"\n"


def test_a_line_names_what_is_judged_again():
    """The object, the user and the policies; a log agent's prefix and other lines do not matter."""
    log = [b"started\n", b'[pod/x] {"kind":"Decision"}\n', b"[pod/x] " + line("a", "b"), b"\n"]
    (found,), skipped = unjudged_objects(log)
    assert skipped == {}
    assert (found.resource, found.namespace, found.name, found.uid) == ("pods", "t", "p", "u")
    assert [name.partition("/")[2] for name in found.policies] == ["a.test.example.com", "b.test.example.com"]
    for how in found.policies.values():
        assert (how.operation, how.user, how.lost) == ("CREATE", {"username": "jane", "groups": ["g"]}, ())


def test_an_object_is_judged_once_by_each_policy():
    """By all policies that its lines name, each as of its own last line."""
    last = line("b", members={"operation": "UPDATE", "userInfo": {"username": "joe"}})
    (found,), _ = unjudged_objects([line("a"), last])
    assert {
        name.partition("/")[2][0]: (how.operation, how.user["username"]) for name, how in found.policies.items()
    } == {
        "a": ("CREATE", "jane"),
        "b": ("UPDATE", "joe"),
    }


def test_the_old_object_of_an_update_is_lost():
    """Whatever other lines the policy has: a policy that sees it cannot judge that request again."""
    update = line("a", members={"operation": "UPDATE"})
    for log in ([update], [line("a"), update], [update, line("a")], [update, event(objectRef=ABOUT)]):
        (found,), _ = unjudged_objects(log)
        how = found.by(next(iter(found.policies)))
        assert (how.operation, how.lost) == ("UPDATE", (OLD_OBJECT,))


def test_what_a_line_omits_of_the_user_is_lost():
    """Groups beyond the fiftieth, and what is not Kubernetes' own of extra; not what the line has."""
    own = {"authentication.kubernetes.io/pod-name": ["p"]}
    for user, lost, extra in (
        ({"username": "jane", "groups": ["g"] * 51}, (GROUPS,), None),
        ({"username": "jane", "extra": {"token": ["t"]} | own}, (EXTRA,), own),
        ({"username": "jane", "extra": own}, (), own),
        ({"username": "jane", "extra": {"authentication.kubernetes.io/pod-name": ["p" * 300]}}, (EXTRA,), None),
    ):
        (found,), _ = unjudged_objects([line("a", members={"userInfo": user})])
        (how,) = found.policies.values()
        assert (how.lost, how.user.get("extra")) == (lost, extra)


def test_what_left_no_object_does_not_count():
    """And is counted, by the reason."""
    refused = json.loads(line()) | {"allowed": False}
    log = [
        line(members={"dryRun": True}),
        line(phase=Phase.MUTATING),
        line("a", "b", members={"operation": "DELETE", "object": None}),
        json.dumps(json.loads(line()) | {"subResource": "status"}).encode(),
        json.dumps(refused).encode(),
        line()[:-20],
        b'{"kind":"UnjudgedAdmission"}',
    ]
    found = unjudged_lines(log)
    assert found.objects == []
    assert found.skipped == {DRY_RUN: 1, MUTATING: 1, NO_OBJECT: 2, REFUSED: 1, UNREADABLE: 2}
    assert [(each.operation, each.sub_resource, each.name, each.policies) for each in found.past] == [
        ("DELETE", "", "p", (A, B)),
        ("CREATE", "status", "p", (A,)),
    ]


ABOUT = {"resource": "pods", "namespace": "t", "name": "p", "apiVersion": "v1", "uid": "u"}
EVENT = {
    "kind": "Event",
    "apiVersion": "audit.k8s.io/v1",
    "stage": "ResponseComplete",
    "requestURI": "/api/v1/namespaces/t/pods?fieldManager=kubectl",
    "verb": "create",
    "user": {"username": "jane", "groups": ["g"]},
    "objectRef": {"resource": "pods", "namespace": "t", "name": "p", "apiVersion": "v1"},
    "responseStatus": {"metadata": {}, "code": 201},
    "annotations": {"failed-open.validating.webhook.admission.k8s.io/round_0_index_0": "group.a.example.com"},
}


def event(**members):
    return json.dumps(EVENT | members).encode() + b"\n"


def test_an_event_of_the_api_server_names_no_policy():
    """The gateway could not be called: whatever its policies are, none of them has judged the object."""
    (found,), skipped = unjudged_objects([event(), json.dumps(EVENT | {"annotations": {}}).encode()])
    assert skipped == {}
    assert (found.resource, found.version, found.namespace, found.name, found.uid) == ("pods", "v1", "t", "p", "")
    how = found.by("any")
    assert (how.operation, how.user, how.lost) == ("CREATE", {"username": "jane", "groups": ["g"]}, ())
    about = EVENT["objectRef"] | {"uid": "u"}
    for log in ([line("a"), event(objectRef=about)], [event(objectRef=about), line("a")]):
        (both,), _ = unjudged_objects(log)
        assert ALL in both.policies


def test_an_event_that_left_no_object_does_not_count():
    """As of a gateway's lines; earlier stages of a request are not counted."""
    about = {"resource": "pods", "namespace": "t", "apiVersion": "v1"}
    generated = {"metadata": {"name": "p-x", "uid": "u"}}
    log = [
        event(stage="ResponseStarted"),
        event(requestURI="/api/v1/namespaces/t/pods?dryRun=All"),
        event(responseStatus={"code": 409}),
        event(verb="delete"),
        event(objectRef=about | {"name": "p", "subresource": "eviction"}),
        event(objectRef=about),
        event(objectRef=about, responseObject=generated),
        event(verb="patch"),
    ]
    found, skipped = unjudged_objects(log)
    assert [(each.name, each.by("any").operation) for each in found] == [("p-x", "CREATE"), ("p", "UPDATE")]
    assert skipped == {DRY_RUN: 1, REFUSED: 1, NO_POLICIES: 2, NO_NAME: 1}


LINE = line()
SIMPLE = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
VALUES = SIMPLE | st.lists(SIMPLE, max_size=2) | st.dictionaries(st.text(max_size=5), SIMPLE, max_size=2)


@pytest.mark.property
@given(st.data())
def test_no_line_of_a_log_ends_the_audit(data):
    """Whatever a log has: with members of other types, or cut, it is one object, or one that does not count."""
    known = data.draw(st.sampled_from([json.loads(LINE), EVENT | {"responseObject": {}}]))
    changed = data.draw(st.dictionaries(st.sampled_from(sorted(known)), VALUES, max_size=3))
    text = json.dumps(known | changed, ensure_ascii=False).encode(errors="surrogatepass")
    end = data.draw(st.sampled_from([len(text)]) | st.integers(0, len(text)))
    found, skipped = unjudged_objects([data.draw(st.binary(max_size=5)), text[:end]])
    assert len(found) + sum(skipped.values()) <= 1
    assert all(isinstance(each.name, str) and each.name for each in found)


def test_a_long_log_is_bounded(monkeypatch):
    """What is beyond the bound is counted."""
    monkeypatch.setattr(module, "OBJECTS_KEPT", 2)
    found, skipped = unjudged_objects(line(members={"name": f"p{number}"}) for number in range(5))
    assert (len(found), skipped) == (2, {TOO_MANY: 3})
