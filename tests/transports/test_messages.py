"""The contract's messages on one side, calls and answers on the other: each arm, each default, each error."""

import pytest
from google.protobuf.duration_pb2 import Duration
from hypothesis import given
from hypothesis import strategies as st

from gateway.documents.documents import hashed
from gateway.engine.policy_call import PolicyCall
from gateway.engine.verdicts import Allow, ChangeKind, Deny, Failure
from gateway.policies.model import Phase
from gateway.reasons import Reason
from gateway.transports.messages import PHASES, one_line, outcome_answer, review_answer, review_request
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from tests.world import policy

CHARACTERS = 100
FORMS = (ChangeKind.JSON_PATCH, ChangeKind.MERGE_PATCH, ChangeKind.OBJECT)


def call(phase=Phase.MUTATING, **fields):
    """A call of policy "one" to worker "worker-one"."""
    document = hashed(b'{"operation":"CREATE"}')
    return PolicyCall(
        id=7, policy=policy("one", phase=phase, **fields), document=document, deadline=1.0, uid="u1", cancellable=True
    )


def no_consumer(about, observed):
    """Gets invalid cache hints, where there are none."""
    raise AssertionError((about, observed))


def answer(*, invalid_hint=no_consumer, **fields):
    """What an Outcome of these fields says."""
    return outcome_answer(call(), pb.Outcome(**fields), characters=CHARACTERS, invalid_hint=invalid_hint)


def read(content):
    """What these bytes say, whatever their cache hint."""
    return review_answer(call(), content, characters=CHARACTERS, invalid_hint=lambda about, observed: None)


@pytest.mark.parametrize("phase", Phase)
def test_an_call_holds_the_question(phase):
    """Policy, phase, settings, document and uid are sent, and nothing else."""
    sent = pb.ReviewRequest.FromString(review_request(call(phase, settings=b'{"a":1}')))
    expected = pb.PolicyCall(
        policy="one", phase=PHASES[phase], settings=b'{"a":1}', document=b'{"operation":"CREATE"}', uid="u1"
    )
    assert sent == pb.ReviewRequest(call=expected)


def test_the_phases_are_kubernetes_two():
    """Each phase has its number in the contract, and none is the unspecified one."""
    assert set(PHASES) == set(Phase)
    assert pb.PHASE_UNSPECIFIED not in PHASES.values()


def test_an_allow():
    """An allow is that, with its warnings, audit annotations and version."""
    said = answer(allow=pb.Allow(), warnings=["w"], audit_annotations={"k": "v"}, version="3")
    assert said == Allow(warnings=("w",), audit_annotations={"k": "v"}, version="3")


@pytest.mark.parametrize("kind", FORMS)
def test_a_change_in_each_form(kind):
    """The three forms of a change are distinguished, and their bytes are not looked at."""
    change = answer(allow=pb.Allow(**{kind: b"\x00 whatever"})).change
    assert (change.kind, change.content) == (kind, b"\x00 whatever")


@pytest.mark.parametrize("kind", FORMS)
def test_an_empty_change_is_a_change(kind):
    """A change that is set to nothing is not the same as none: it is for the applying to refuse."""
    assert answer(allow=pb.Allow(**{kind: b""})).change.content == b""


@pytest.mark.parametrize(
    ("deny", "code", "reason"),
    [
        (pb.Deny(), 403, "Forbidden"),
        (pb.Deny(reason="Invalid"), 403, "Invalid"),
        (pb.Deny(code=422), 422, ""),
        (pb.Deny(code=422, reason="Invalid"), 422, "Invalid"),
        (pb.Deny(code=0), 0, ""),
        (pb.Deny(code=302), 302, ""),
        (pb.Deny(code=-1), -1, ""),
        (pb.Deny(code=1000), 1000, ""),
    ],
)
def test_the_code_and_reason_of_a_denial(deny, code, reason):
    """Without a code a denial is 403 Forbidden; with one, the reason is the worker's, or none. (encode bounds it.)"""
    said = answer(deny=deny)
    assert (said.code, said.reason, said.message, said.details) == (code, reason, "", None)


@pytest.mark.parametrize("verdict", [{"allow": pb.Allow()}, {"deny": pb.Deny()}])
def test_the_order_of_annotations(verdict):
    """Annotations come in the order of their keys, whatever order protobuf gives: all replicas say the same bytes."""
    keys = [f"k{number}" for number in range(20)]
    said = answer(**verdict, audit_annotations=dict.fromkeys(reversed(keys), "v"))
    assert list(said.audit_annotations) == sorted(keys)


def test_a_denial_in_full():
    """Message, warnings, annotations, version and details of a denial are kept; empty details are left out."""
    cause = pb.StatusCause(reason="FieldValueInvalid", message="m", field="spec.x")
    details = pb.StatusDetails(
        name="p", group="g", kind="Pod", uid="u", causes=[cause, pb.StatusCause(message="only")], retry_after_seconds=5
    )
    said = answer(
        deny=pb.Deny(message="no\nreally", details=details), warnings=["w"], audit_annotations={"k": "v"}, version="3"
    )
    assert said == Deny(
        message="no\nreally",
        details={
            "name": "p",
            "group": "g",
            "kind": "Pod",
            "uid": "u",
            "causes": [{"reason": "FieldValueInvalid", "message": "m", "field": "spec.x"}, {"message": "only"}],
            "retryAfterSeconds": 5,
        },
        warnings=("w",),
        audit_annotations={"k": "v"},
        version="3",
    )
    assert answer(deny=pb.Deny(details=pb.StatusDetails())).details == {}


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (pb.FAILURE_REASON_UNSPECIFIED, Reason.WORKER_FAILURE),
        (pb.FAILURE_REASON_INVALID_SETTINGS, Reason.INVALID_SETTINGS),
        (pb.FAILURE_REASON_UNKNOWN_POLICY, Reason.CONFIGURATION),
        (99, Reason.WORKER_FAILURE),
    ],
)
def test_a_failure_has_its_reason_code(number, reason):
    """Each reason of the contract has its code; one of a later version is a WORKER_FAILURE."""
    said = answer(failure=pb.Failure(message="why", reason=number))
    assert said == Failure(reason=reason, message="worker 'worker-one' could not judge: why")


def test_every_failure_reason_is_known():
    """No reason of the contract is forgotten."""
    for number in pb.FailureReason.values():
        expected = Reason.WORKER_FAILURE if number == pb.FAILURE_REASON_UNSPECIFIED else None
        reason = answer(failure=pb.Failure(reason=number)).reason
        assert reason == expected or (expected is None and reason is not Reason.WORKER_FAILURE)


def test_a_failure_explains_itself_on_one_line():
    """The worker's words are put on one line and cut; without any, that is said."""
    long = answer(failure=pb.Failure(message="why\n\x1b[31m" + "x" * 1000)).message
    assert long.startswith("worker 'worker-one' could not judge: why [31mxxx")
    assert long.endswith("x…")
    assert "gave no reason" in answer(failure=pb.Failure()).message
    assert "gave no reason" in answer(failure=pb.Failure(message="\n \t")).message


def ttl(seconds, nanos=0):
    return pb.CacheHint(ttl=Duration(seconds=seconds, nanos=nanos))


VERDICTS = [{"allow": pb.Allow()}, {"deny": pb.Deny()}]


@pytest.mark.parametrize("verdict", VERDICTS, ids=str)
@pytest.mark.parametrize(
    ("hint", "reuse"),
    [
        (None, None),
        (pb.CacheHint(no_store=pb.CacheHint.NoStore()), 0.0),
        (ttl(0), 0.0),
        (ttl(300), 300.0),
        (ttl(1, 500_000_000), 1.5),
        (ttl(315_576_000_000), 315_576_000_000.0),
    ],
    ids=str,
)
def test_a_cache_hint_says_how_long_a_verdict_may_be_reused(verdict, hint, reuse):
    """Unset is as configured, no_store is never, a ttl is its seconds."""
    assert answer(cache=hint, **verdict).reuse == reuse


@pytest.mark.parametrize("verdict", VERDICTS, ids=str)
@pytest.mark.parametrize(
    "hint",
    [
        pb.CacheHint(),
        ttl(-1),
        ttl(0, -1),
        ttl(1, -1),
        ttl(0, 1_000_000_000),
        ttl(315_576_000_001),
        ttl(2**63 - 1, 2**31 - 1),
        ttl(-(2**63)),
    ],
    ids=str,
)
def test_a_meaningless_cache_hint_is_never_reuse(verdict, hint):
    """A hint that is empty, negative or no Duration keeps the verdict, which is not reused; and it is reported."""
    reported = []
    said = answer(cache=hint, invalid_hint=lambda about, observed: reported.append((about.id, observed)), **verdict)
    assert said.reuse == 0.0
    assert isinstance(said, Allow | Deny)
    assert [about for about, _ in reported] == [7]


@pytest.mark.parametrize(
    "outcome", [{}, {"warnings": ["w"]}, {"cache": pb.CacheHint(ttl=Duration(seconds=1))}], ids=str
)
def test_an_outcome_without_a_verdict_is_a_failure(outcome):
    """Neither allow nor deny nor failure is INVALID_RESPONSE, never an allow."""
    said = answer(**outcome)
    assert said.reason is Reason.INVALID_RESPONSE
    assert "worker 'worker-one' answered policy 'one'" in said.message


def test_of_two_verdicts_the_last_counts():
    """A oneof that is on the wire twice holds the last one, as protobuf has it."""
    both = pb.ReviewResponse(outcome=pb.Outcome(allow=pb.Allow())).SerializeToString()
    both += pb.ReviewResponse(outcome=pb.Outcome(deny=pb.Deny(message="no"))).SerializeToString()
    assert read(both) == Deny(message="no")


@pytest.mark.property
@given(st.binary(max_size=200))
def test_any_bytes_are_an_answer(content):
    """Whatever bytes a worker sends are an allow, a deny or a failure, never an exception."""
    assert isinstance(read(content), Allow | Deny | Failure)


@pytest.mark.property
@given(st.binary(min_size=1, max_size=60), st.integers(0, 60), st.integers(0, 255))
def test_a_damaged_answer_is_an_answer(message, at, byte):
    """An answer with a wrong byte in it is an allow, a deny or a failure too."""
    details = pb.StatusDetails(causes=[pb.StatusCause(message="m")])
    deny = pb.Deny(message=message.decode(errors="replace"), code=422, details=details)
    content = bytearray(pb.ReviewResponse(outcome=pb.Outcome(deny=deny, warnings=["w"])).SerializeToString())
    content[at % len(content)] = byte
    assert isinstance(read(bytes(content)), Allow | Deny | Failure)


@pytest.mark.property
@given(st.text(max_size=300), st.integers(1, 200))
def test_one_line_is_one_line(text, characters):
    """Whatever the text, one line of it holds no control character and is as short as called, but for the ellipsis."""
    line = one_line(text, characters)
    assert len(line) <= characters + 1
    assert len(line.splitlines()) <= 1 or {"\u2028", "\u2029"} & set(line)
    assert not any(ord(char) < 32 or 127 <= ord(char) < 160 for char in line)
