"""Claims against grants: what counts, and which claims make a policy one that cannot be called."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.policies.model import Phase
from gateway.scopes.inputs import Inputs
from gateway.scopes.pointer import parse_pointer
from gateway.scopes.pointer_set import PointerSet
from gateway.scopes.writes import Writes
from gateway.transports.claims import LISTED, ClaimError, Effective, effective, listed, shown_inputs, shown_writes
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from tests.world import policy

LABELS = "/object/metadata/labels"
EVERYTHING = pb.Claim(everything=pb.Claim.Everything())


def places(*texts):
    return PointerSet(parse_pointer(text) for text in texts)


def inputs(*texts):
    return Inputs(places=places(*texts))


def granted(*texts):
    return Writes(granted=places(*texts))


def exactly(*texts):
    """A claim of these pointers."""
    return pb.Claim(pointers=pb.Claim.Pointers(pointers=texts))


def claimed(*, phase=Phase.MUTATING, grants=None, **claims):
    """What counts for a policy with these grants, if its worker claims so."""
    about = policy("one", phase=phase, **(grants or {}))
    return effective(about, pb.PolicyDescription(name="one", **claims))


def refused(**fields):
    """Why a claim cannot be followed."""
    with pytest.raises(ClaimError) as error:
        claimed(**fields)
    assert str(error.value).isprintable()
    return str(error.value)


def test_what_is_not_claimed_is_as_granted():
    """An unset claim is no claim."""
    assert claimed() == Effective()
    assert claimed(grants={"inputs": inputs(LABELS), "writes": granted("/metadata/labels")}) == Effective()


@pytest.mark.parametrize(
    ("grant", "claim", "counts"),
    [
        (Inputs.EVERYTHING, EVERYTHING, Inputs.EVERYTHING),
        (Inputs.EVERYTHING, exactly(LABELS), inputs(LABELS)),
        (Inputs.EVERYTHING, exactly(), inputs()),
        (inputs("/object"), exactly(LABELS), inputs(LABELS)),
        (inputs(LABELS), exactly(LABELS), inputs(LABELS)),
        (inputs(LABELS), exactly(), inputs()),
        (inputs(), exactly(), inputs()),
        (inputs("/object/spec/*"), exactly("/object/spec/a/*/b"), inputs("/object/spec/a/*/b")),
        (inputs(LABELS), exactly("/operation", "/kind/group"), inputs("/operation", "/kind/group")),
    ],
    ids=str,
)
def test_a_claim_narrows_inputs(grant, claim, counts):
    """What is claimed counts, where it lies in the grant; what every document carries always does."""
    assert claimed(grants={"inputs": grant}, inputs=claim).inputs == counts


@pytest.mark.parametrize(
    ("grant", "claim", "counts"),
    [
        (Writes.DEFAULT, EVERYTHING, Writes.DEFAULT),
        (Writes.DEFAULT, exactly("/metadata/labels"), Writes.DEFAULT.narrowed_to(places("/metadata/labels"))),
        (Writes.DEFAULT, exactly(), Writes.DEFAULT.narrowed_to(places())),
        (
            granted("/metadata"),
            exactly("/metadata/labels"),
            granted("/metadata").narrowed_to(places("/metadata/labels")),
        ),
        (granted(), exactly(), granted().narrowed_to(places())),
    ],
    ids=str,
)
def test_a_claim_narrows_writes(grant, claim, counts):
    """Writes are narrowed as inputs are; the default's protection stays."""
    assert claimed(grants={"writes": grant}, writes=claim).writes == counts


@pytest.mark.parametrize(
    ("grant", "claim", "beyond", "shown"),
    [
        (inputs(LABELS), EVERYTHING, "everything", LABELS),
        (inputs(LABELS), exactly("/object/metadata"), "/object/metadata", LABELS),
        (inputs(LABELS), exactly(LABELS, "/object/data/a~1b"), "/object/data/a~1b", LABELS),
        (inputs("/object/spec/a"), exactly("/object/spec/*"), "/object/spec/*", "/object/spec/a"),
        (inputs(), exactly(LABELS), LABELS, "nothing"),
    ],
    ids=str,
)
def test_inputs_beyond_the_grant_are_refused(grant, claim, beyond, shown):
    """The message says what is claimed, what is granted, and what to do."""
    assert refused(grants={"inputs": grant}, inputs=claim) == (
        f"it claims inputs for policy 'one' that are not granted: {beyond}; granted is {shown}; grant them in the "
        "policy's inputs, or use a version of the worker that claims less"
    )


@pytest.mark.parametrize(
    ("grant", "claim", "beyond"),
    [
        (granted("/spec"), EVERYTHING, "everything"),
        (granted("/spec"), exactly("/metadata/labels"), "/metadata/labels"),
        (Writes.DEFAULT, exactly("/metadata/labels", "/metadata/finalizers"), "/metadata/finalizers"),
    ],
    ids=str,
)
def test_writes_beyond_the_grant_are_refused(grant, claim, beyond):
    """As inputs are; what the default protects has to be granted by name."""
    assert f"writes for policy 'one' that are not granted: {beyond};" in refused(grants={"writes": grant}, writes=claim)


@pytest.mark.parametrize(
    "pointer",
    ["", "object", "/uid", "/uid/x", "/objekt/metadata", "/*", "/object/~2", "/kind/nonsense", "\n", "/object/\x00~"],
)
def test_inputs_that_are_no_places_are_refused(pointer):
    """What a configuration must not say, a claim must not either; the policy and the place are named."""
    message = refused(inputs=exactly(LABELS, pointer))
    assert message.startswith("its claim of inputs for policy 'one' is invalid: inputs[1]: ")


@pytest.mark.parametrize("pointer", ["", "metadata", "/apiVersion", "/kind", "/*", "/metadata/~"])
def test_writes_that_are_no_places_are_refused(pointer):
    """As inputs are."""
    assert "is invalid: writes[0]: " in refused(writes=exactly(pointer))


@pytest.mark.parametrize("name", ["inputs", "writes"])
def test_a_claim_that_is_neither_is_refused(name):
    """A claim that is set and says nothing is not the same as one that is unset: it may be a later contract's."""
    assert "is neither everything nor pointers" in refused(**{name: pb.Claim()})


def test_a_validating_policys_writes_are_not_looked_at():
    """It changes nothing, whatever it claims."""
    for claim in (EVERYTHING, exactly("no pointer"), pb.Claim(), exactly("/kind")):
        assert claimed(phase=Phase.VALIDATING, writes=claim) == Effective()


def test_messages_are_bounded():
    """However much is claimed and granted, a message names the first few and how many more there are."""
    many = [f"/object/{'x' * 5000}{number}" for number in range(250)]
    grants = {"inputs": inputs(*[pointer.replace("object", "oldObject") for pointer in many])}
    assert len(refused(grants=grants, inputs=exactly(*many))) < 2 * LISTED * 220 + 500
    assert len(refused(inputs=exactly(*[pointer[1:] for pointer in many]))) < 1500
    assert "Too many" in refused(inputs=exactly(*[f"/object/{number}" for number in range(10_000)]))


def test_scopes_for_people():
    """Each kind of scope has its words."""
    assert shown_inputs(Inputs.EVERYTHING) == "every member of the request but uid"
    assert shown_inputs(inputs()) == "nothing"
    assert shown_inputs(inputs("/name", LABELS)) == f"/name, {LABELS}"
    assert shown_writes(Writes.DEFAULT) == "everything but the object's identity and status"
    assert shown_writes(Writes.EVERYTHING) == "everything"
    assert shown_writes(granted("/spec")) == "/spec"
    assert shown_writes(granted("/spec").narrowed_to(places("/spec/a"))) == "/spec/a"
    assert listed([f"/{number}" for number in range(LISTED + 2)]).endswith(", /7 and 2 more")


_TEXTS = st.one_of(
    st.text(max_size=8),
    st.lists(st.sampled_from(["object", "spec", "a", "*", "0", "uid", "userInfo", ""]), max_size=5).map(
        lambda tokens: "".join(f"/{token}" for token in tokens)
    ),
)


@pytest.mark.property
@given(st.lists(_TEXTS, max_size=4), st.lists(_TEXTS, max_size=4), st.sampled_from(["inputs", "writes"]))
def test_no_claim_widens_a_grant(claim, grant, name):
    """Whatever texts are claimed, each place that counts in the end is granted, or nothing counts at all."""
    pointers = [parse_pointer(text) for text in grant if text.startswith("/") and "~" not in text]
    scope = {"inputs": Inputs(places=PointerSet(pointers)), "writes": Writes(granted=PointerSet(pointers))}[name]
    try:
        found = claimed(grants={name: scope}, **{name: exactly(*claim)})
    except ClaimError:
        return
    if name == "inputs":
        assert scope.beyond(found.inputs) == ()
    else:
        assert found.writes.granted == scope.granted
        assert scope.beyond(found.writes.narrowed) == ()
