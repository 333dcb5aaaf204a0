"""All functions, by version."""

import pytest

from gateway.cel.interpreter import costs
from gateway.cel.libraries.catalog import functions_of
from gateway.cel.versions import NEWEST, OLDEST, Version

FUNCTIONS = functions_of(NEWEST)
PLANNED = {
    "_&&_",
    "_||_",
    "_?_:_",
    "_==_",
    "_!=_",
    "_[_]",
    "_[?_]",
    "@not_strictly_false",
    "or",
    "orValue",
    "cel.@mapInsert",
}
"""Functions that are part of the plan."""


def test_overloads_have_names_of_their_own():
    """No two functions share one."""
    identities = [overload.identity for found in FUNCTIONS.values() for overload in found.overloads]
    assert len(identities) == len(set(identities)) > 300


@pytest.mark.parametrize("name", sorted(FUNCTIONS.keys() - PLANNED))
def test_every_function_can_be_called(name):
    """It looks at its arguments itself, or each of its overloads has an implementation."""
    found = FUNCTIONS[name]
    assert found.singleton is not None or all(overload.call is not None for overload in found.overloads)


def test_a_newer_version_has_all_functions_of_an_older_one():
    """Nothing is taken away."""
    versions = [Version(1, minor) for minor in range(OLDEST.minor, NEWEST.minor + 1)]
    counts = [len(functions_of(version)) for version in versions]
    assert counts == sorted(counts)
    assert functions_of(OLDEST).keys() <= FUNCTIONS.keys()


@pytest.mark.parametrize(
    "name", ["math.abs", "base64.encode", "cel.bind", "jsonpatch.escapeKey", "string.reverse", "image"]
)
def test_what_kubernetes_does_not_enable_is_not_there(name):
    """In no version."""
    assert name not in FUNCTIONS


def test_costs_are_given_to_functions_that_there_are():
    """A name that is mistyped would cost 1."""
    identities = {overload.identity for found in FUNCTIONS.values() for overload in found.overloads}
    assert costs._FUNCTIONS.keys() <= FUNCTIONS.keys()
    assert costs._OVERLOADS.keys() <= identities
    assert costs._BY_RESULT.keys() <= identities
    assert costs._EXTENSIONS.keys() <= identities
