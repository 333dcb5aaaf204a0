"""The Python SDK and its sample policies, as the gateway takes them: what they claim, and what they would be sent."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission_worker.claims import EVERYTHING
from admission_worker.projection import document_of
from admission_worker.samples import worker
from gateway.documents.documents import DocumentBuilder
from gateway.policies.model import Phase
from gateway.review.request import decode
from gateway.scopes.inputs import Inputs
from gateway.scopes.pointer import format_pointer, parse_pointer
from gateway.scopes.pointer_set import PointerSet
from gateway.transports.claims import effective
from tests.traffic import recordings
from tests.world import policy

PHASES = {1: Phase.MUTATING, 2: Phase.VALIDATING}

DEEPEST_STAR = 3
"""Tokens before a ``*``: each of them doubles the places."""

LABELS = {"kubernetes.io/metadata.name": "default", "team": "a"}


@pytest.mark.parametrize("sample", worker.policies.values(), ids=lambda sample: sample.name)
def test_a_samples_claims_lie_in_the_default_grants(sample):
    """Each sample can be called by an operator who grants nothing in particular, and is shown what it claims."""
    described = sample.description_message()
    about = policy(sample.name, phase=PHASES[sample.phase.value])
    found = effective(about, described)
    assert set(found.inputs.pointers) <= set(sample.inputs)
    assert (found.writes is None) == (about.phase is Phase.VALIDATING)


def places(request):
    """Pointers to all places in a request but its uid, each token but the first as it is and as ``*``."""
    found = set()

    def walk(value, tokens):
        found.add(format_pointer(tokens))
        members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for name, child in members:
            walk(child, (*tokens, str(name)))
            if len(tokens) < DEEPEST_STAR:
                walk(child, (*tokens, "*"))

    for member, value in request.items():
        if member != "uid":
            walk(value, (member,))
    return sorted(found)


@pytest.mark.property
@given(st.data())
def test_the_sdk_cuts_documents_as_the_gateway_does(data):
    """What the SDK's test helper puts to a policy is what the gateway sends, in the same order, whatever is claimed."""
    recording = data.draw(st.sampled_from(recordings()))
    request = json.loads(recording.body)["request"]
    claim = data.draw(
        st.one_of(
            st.just(EVERYTHING),
            st.lists(st.sampled_from([*places(request), "/object/nothing", "/namespaceObject/metadata"]), max_size=5),
        )
    )
    inputs = Inputs.EVERYTHING if claim is EVERYTHING else Inputs(places=PointerSet(map(parse_pointer, claim)))
    documents = DocumentBuilder(decode(recording.body))
    sent = documents.of(inputs, None, changed=False, namespace=LABELS)
    if documents.namespace:
        request["namespaceObject"] = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": documents.namespace, "labels": LABELS},
        }
    assert msgspec.json.decode(sent.content) == document_of(request, claim)
    assert list(msgspec.json.decode(sent.content)) == list(document_of(request, claim))
