"""What a hook is asked: shell-operator's binding context, with the bytes that were granted and no others."""

import json

from hypothesis import given
from hypothesis import strategies as st

from gateway.hooks.protocol.context import binding_context
from gateway.policies.model import Phase

DOCUMENT = b'{"operation":"CREATE","object":{"spec":{"n":1.0}},"oldObject":null}'


def test_it_is_one_element_of_shell_operators_form():
    """Binding, type and review, and no snapshots unless the binding asks for some."""
    context = json.loads(binding_context("a.example.com", Phase.VALIDATING, DOCUMENT, uid="u"))
    request = {"uid": "u", **json.loads(DOCUMENT)}
    assert context == [{"binding": "a.example.com", "type": "Validating", "review": {"request": request}}]


def test_a_mutating_binding_is_told_so():
    """By the type."""
    assert json.loads(binding_context("a", Phase.MUTATING, DOCUMENT))[0]["type"] == "Mutating"


def test_the_documents_own_bytes_go_on():
    """A number is written as the API server wrote it."""
    assert b'"object":{"spec":{"n":1.0}}' in binding_context("a", Phase.MUTATING, DOCUMENT)


def test_every_call_has_a_uid_of_its_own():
    """Two questions are two."""
    uids = {json.loads(binding_context("a", Phase.MUTATING, b"{}"))[0]["review"]["request"]["uid"] for _ in range(9)}
    assert len(uids) == 9


def test_nothing_granted_is_a_request_with_a_uid():
    """An empty document is no broken JSON."""
    context = json.loads(binding_context("a", Phase.MUTATING, b" { } ", uid="u"))
    assert context[0]["review"] == {"request": {"uid": "u"}}


def test_snapshots_stand_beside_the_review():
    """As they were made."""
    assert json.loads(binding_context("a", Phase.MUTATING, b"{}", b'{"ns":[]}'))[0]["snapshots"] == {"ns": []}


@given(st.text(), st.dictionaries(st.text().filter(lambda name: name != "uid"), st.text()))
def test_whatever_the_names_it_is_json(binding, members):
    """Quotes and half surrogates included."""
    context = json.loads(binding_context(binding, Phase.MUTATING, json.dumps(members).encode(), uid="u"))
    assert context[0]["review"]["request"] == {"uid": "u"} | members
