"""A registration says which policies its entries have, so that a gateway that starts later knows its paths."""

import base64
import zlib

import pytest
from hypothesis import given

from gateway.policies.model import Phase
from gateway.registration.former_entries import former_entries, learnt_entries
from gateway.registration.registered_entries import ANNOTATION, decode, encode, registered_entries, with_kept
from gateway.registration.webhook_configurations import Registrar, register
from tests.registration.test_former_entries import IGNORE, KINDS, NAMES, configured
from tests.world import policy


def chain(names, kinds):
    return configured(*(policy(f"p{name}", **kinds[name]) for name in names))


def learnt(before, after):
    """The policies of each path of the first configuration's registration, under the second."""
    registered = registered_entries(before[1].mutating)
    return {each.key: each.policies for each in learnt_entries(Phase.MUTATING, registered, after)}


@pytest.mark.property
@given(first=NAMES, then=NAMES, kinds=KINDS, changed=KINDS)
def test_a_gateway_that_restarts_knows_the_paths_as_one_that_did_not(first, then, kinds, changed):
    """Each path of the registration has the same policies, however the configuration has changed."""
    before, after = chain(first, kinds), chain(then, changed)
    assert learnt(before, after) == {each.key: each.policies for each in former_entries((), before, after)}


@pytest.mark.property
@given(names=NAMES, kinds=KINDS)
def test_the_annotation_is_read_as_it_was_written(names, kinds):
    """Every entry with its policies, in chain order."""
    registered = registered_entries(chain(names, kinds)[1].mutating)
    assert decode(encode(registered)) == registered


def test_an_isolated_policy_is_matched_again():
    """Its registered rules and conditions are not in the annotation, so the gateway does not rely on them."""
    before, after = configured(policy("a", isolate=True)), configured(policy("b", isolate=True))
    (entry,) = learnt_entries(Phase.MUTATING, registered_entries(before[1].mutating), after)
    policies = entry.members(after[0].mutating)
    assert [each.name for each in policies] == ["b.test.example.com"]
    assert not entry.has_registered_rules(policies)
    assert not entry.has_registered_conditions(policies)


def test_names_of_policies():
    """With the index of a namesake, which v1beta1 permits."""
    before = configured(policy("a", namesake=True), policy("b"))
    names = [each.name for each in registered_entries(before[1].mutating).policies]
    assert names == ["a.test.example.com", "b.test.example.com"]


def test_entries_whose_webhooks_stay():
    """What is not desired and stays registered keeps its policies."""
    desired = registered_entries(configured("b")[1].mutating)
    live = registered_entries(configured("a", policy("b", **IGNORE), policy("c", isolate=True))[1].mutating)
    kept = with_kept(desired, live, {"chain.b.test.example.com", "c.test.example.com"})
    assert [name for name, _ in kept.entries] == ["c.test.example.com", "chain.b.test.example.com"]
    assert kept.entries.items() >= desired.entries.items()
    assert {each.name for each in kept.policies} == {"b.test.example.com", "c.test.example.com"}


def _compressed(text):
    return base64.b64encode(zlib.compress(text.encode())).decode()


@pytest.mark.parametrize(
    "value",
    [
        "",
        "%",
        base64.b64encode(b"{}").decode(),
        encode(registered_entries(()))[:-8],
        _compressed("{}"),
        _compressed('{"policies": ["a/b"], "entries": {"e/1": [1]}}'),
        _compressed('{"policies": ["a/b"], "entries": {"e/1": ["a"]}}'),
        _compressed(" " * 5_000_000),
    ],
)
def test_what_is_no_annotation_of_ours(value):
    """It is refused, whatever somebody has made of it."""
    with pytest.raises(ValueError, match="these are no registered entries"):
        decode(value)


def test_it_is_registered():
    """On each object that has webhooks; not in a manifest file, which no gateway can read."""
    entries = configured("a", policy("b", **IGNORE))[1]
    for manifest in (False, True):
        registrar = Registrar(url="https://gateway.example.com", manifest=manifest)
        mutating, validating = register(entries, registrar).objects
        assert "annotations" not in validating["metadata"]
        assert ("annotations" in mutating["metadata"]) is not manifest
        if not manifest:
            assert decode(mutating["metadata"]["annotations"][ANNOTATION]) == registered_entries(entries.mutating)
