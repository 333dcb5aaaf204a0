"""``cache``: durations as Kubernetes writes them, within bounds."""

import pytest

from gateway.policies.model import Cache


@pytest.mark.parametrize(
    ("cache", "expected"),
    [
        ({"ttl": "5m"}, Cache(ttl=300)),
        ({"ttl": "1h30m", "staleIfError": "1h"}, Cache(ttl=5400, stale_if_error=3600)),
        ({"ttl": "500ms", "staleIfError": "0s"}, Cache(ttl=0.5)),
        ({"ttl": "24h", "staleIfError": "168h"}, Cache(ttl=86_400, stale_if_error=604_800)),
        ({"ttl": "1ns", "staleIfError": None}, Cache(ttl=1e-9)),
    ],
)
def test_durations(one_policy, cache, expected):
    """Go's durations, in seconds; without staleIfError, a failure is a failure at once."""
    policy, loaded = one_policy({"cache": cache})
    assert not loaded.errors
    assert policy.cache == expected


TTL = 'must be the time for which a verdict may be reused, such as "5m"'
DURATION = 'a duration such as "500ms", "5m" or "1h30m"'
SYNTAX = f"must be {DURATION}"


@pytest.mark.parametrize(
    ("cache", "expected"),
    [
        (True, ': Invalid value: "boolean": must be of type object, such as {ttl: 5m}'),
        ("5m", ': Invalid value: "string": must be of type object, such as {ttl: 5m}'),
        ({}, f".ttl: Required value: {TTL}"),
        ({"ttl": None}, f".ttl: Required value: {TTL}"),
        ({"ttl": 300}, f'.ttl: Invalid value: "integer": must be of type string, {DURATION}'),
        (
            {"ttl": "1s", "staleIfError": 5},
            f'.staleIfError: Invalid value: "integer": must be of type string, {DURATION}',
        ),
        ({"ttl": ""}, f'.ttl: Invalid value: "": {SYNTAX}'),
        ({"ttl": "5"}, f'.ttl: Invalid value: "5": {SYNTAX}'),
        ({"ttl": "1d"}, f'.ttl: Invalid value: "1d": {SYNTAX}'),
        ({"ttl": "5 m"}, f'.ttl: Invalid value: "5 m": {SYNTAX}'),
        ({"ttl": "9" * 40 + "s"}, f'.ttl: Invalid value: "{"9" * 40}s": {SYNTAX}'),
        ({"ttl": "0"}, '.ttl: Invalid value: "0": must be more than 0 and at most 24h'),
        ({"ttl": "-1s"}, '.ttl: Invalid value: "-1s": must be more than 0 and at most 24h'),
        ({"ttl": "24h1s"}, '.ttl: Invalid value: "24h1s": must be more than 0 and at most 24h'),
        (
            {"ttl": "1s", "staleIfError": "-1s"},
            '.staleIfError: Invalid value: "-1s": must not be negative, and at most 168h',
        ),
        (
            {"ttl": "1s", "staleIfError": "169h"},
            '.staleIfError: Invalid value: "169h": must not be negative, and at most 168h',
        ),
        ({"ttl": "1s", "maxAge": "1s"}, '.maxAge: unknown field "policies[0].cache.maxAge"'),
    ],
)
def test_errors(one_policy, errors, cache, expected):
    """A cache that cannot be read is none."""
    policy, loaded = one_policy({"cache": cache})
    assert errors(loaded) == [f"policies[0].cache{expected}"]
    assert policy.cache is None


def test_side_effects(one_policy):
    """With side effects outside dry runs, the cache serves dry runs only: a warning, since that may be wanted."""
    changes = {"cache": {"ttl": "5m"}, "inputs": ["/operation"]}
    assert not one_policy(changes)[1].warnings
    policy, loaded = one_policy(changes | {"sideEffects": "NoneOnDryRun"})
    (warning,) = loaded.warnings
    assert warning.place.path == "policies[0].cache"
    assert "only dry runs use the cache" in warning.message
    assert policy.cache
