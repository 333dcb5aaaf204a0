"""shell-operator's binding context, with the document's bytes and no others."""

import json

from hypothesis import given
from hypothesis import strategies as st

from gateway.hooks.protocol.context import binding_context
from gateway.policies.model import Phase

DOCUMENT = b'{"operation":"CREATE","object":{"spec":{"n":1.0}},"oldObject":null}'


def test_the_context_is_one_element_in_shell_operators_form():
    """Binding, type and review, and no snapshots unless the binding includes some."""
    context = json.loads(binding_context("a.example.com", Phase.VALIDATING, DOCUMENT, uid="u"))
    request = {"uid": "u", **json.loads(DOCUMENT)}
    assert context == [{"binding": "a.example.com", "type": "Validating", "review": {"request": request}}]


def test_the_type_of_a_mutating_binding_is_mutating():
    """shell-operator's name of the phase."""
    assert json.loads(binding_context("a", Phase.MUTATING, DOCUMENT))[0]["type"] == "Mutating"


def test_the_bytes_of_the_document_are_unchanged():
    """A number is as the API server wrote it."""
    assert b'"object":{"spec":{"n":1.0}}' in binding_context("a", Phase.MUTATING, DOCUMENT)


def test_every_call_has_a_uid_of_its_own():
    """Equal calls too."""
    uids = {json.loads(binding_context("a", Phase.MUTATING, b"{}"))[0]["review"]["request"]["uid"] for _ in range(9)}
    assert len(uids) == 9


def test_an_empty_document_is_a_request_with_a_uid():
    """The JSON is valid."""
    context = json.loads(binding_context("a", Phase.MUTATING, b" { } ", uid="u"))
    assert context[0]["review"] == {"request": {"uid": "u"}}


def test_snapshots_are_a_member_of_the_element():
    """Unchanged."""
    assert json.loads(binding_context("a", Phase.MUTATING, b"{}", b'{"ns":[]}'))[0]["snapshots"] == {"ns": []}


@given(st.text(), st.dictionaries(st.text().filter(lambda name: name != "uid"), st.text()))
def test_any_name_gives_valid_json(binding, members):
    """Quotes and lone surrogates included."""
    context = json.loads(binding_context(binding, Phase.MUTATING, json.dumps(members).encode(), uid="u"))
    assert context[0]["review"]["request"] == {"uid": "u"} | members
