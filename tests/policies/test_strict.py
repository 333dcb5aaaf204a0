"""One Go type, two ways in: a manifest is decoded strictly, an answer as encoding/json does it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.gotypes.places import DecodeError, Place
from gateway.gotypes.types import read
from gateway.policies.decoding.field import Field
from gateway.policies.decoding.native_types import WEBHOOKS
from gateway.policies.decoding.strict import decode
from gateway.policies.decoding.texts import SourceText, read_documents
from gateway.policies.errors import Place as Line
from gateway.policies.model import Phase

WEBHOOK = WEBHOOKS[Phase.MUTATING, "v1"]
LEAVES = st.none() | st.booleans() | st.integers(-300, 2**40) | st.sampled_from(["", "x", "QQ==", "a/b"])
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["url", "caBundle", "service", "port", "matchLabels", "operations", "scope"]), inner
        )
    ),
    max_leaves=8,
)
WEBHOOK_VALUES = st.dictionaries(
    st.sampled_from(["name", "clientConfig", "rules", "objectSelector", "timeoutSeconds"]), VALUES
)


def errors(text):
    """What strict decoding reports of a webhook."""
    (node,), error = read_documents(SourceText(name="f", content=text.encode()))
    assert error is None
    findings = []
    decode(Field(node=node, place=Line(file="f", line=1), findings=findings), WEBHOOK, Place())
    return [each.message for each in findings]


@given(WEBHOOK_VALUES)
def test_lax_and_strict_decoding_have_the_same_errors(value):
    """And where it is refused by none, strict decoding reports unknown fields, if anything."""
    reported = [message for message in errors(json.dumps(value)) if "unknown field" not in message]
    assert refused(value) in (reported or [None])


def refused(value):
    """What the lax way says; None: nothing."""
    try:
        read(value, WEBHOOK)
    except DecodeError as error:
        return error.go
    return None


@pytest.mark.parametrize("element", ["300", "-1", "x", "{}", "!tag y", "1.5"])
def test_bytes_that_are_none(element):
    """An array of what are no bytes is one error, whatever stands in it."""
    (found,) = errors(f"clientConfig: {{caBundle: [1, {element}]}}")
    assert found.startswith("json: cannot unmarshal ")
    assert found.endswith(" into Go struct field WebhookClientConfig.clientConfig.caBundle of type uint8")
