"""Names derived from names of hooks: ids as in shell-operator, and the names of Workers."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.hooks.configuration.names import webhook_id, worker_name
from gateway.policies.names import dns_subdomain


@pytest.mark.parametrize(
    ("binding", "expected"),
    [
        ("private-repo-policy.example.com", "private-repo-policy-example-com"),
        ("myValidator.Example.com", "my-validator-example-com"),
        ("a--b..c", "a-b-c"),
        ("with/slash and_more", "with/slash-and-more"),
    ],
)
def test_ids_are_shell_operators(binding, expected):
    """An upper case letter becomes a dash and the lower case letter, another character a dash, several dashes one."""
    assert webhook_id(binding) == expected


@pytest.mark.parametrize(("path", "expected"), [("validate.sh", "hook.validate.sh"), ("pods.d", "hook.pods.d")])
def test_a_valid_path_is_the_name(path, expected):
    """So that the file can be found from metrics and logs."""
    assert worker_name(path) == expected


def test_an_invalid_path_stays_readable():
    """With a digest appended."""
    assert re.fullmatch(r"hook\.sub\.my-hook-py-[0-9a-f]{16}", worker_name("sub/My_Hook.py"))


PATHS = st.text(st.characters(exclude_characters="\0", codec="utf-8"), min_size=1, max_size=300)


@pytest.mark.property
@given(PATHS)
def test_every_path_becomes_a_valid_name(path):
    """However long it is, and whatever its characters are."""
    assert dns_subdomain(worker_name(path)) == []


@pytest.mark.property
@given(PATHS, PATHS)
def test_different_paths_are_different_workers(one, other):
    """Also those that differ only in replaced characters."""
    assert (worker_name(one) == worker_name(other)) is (one == other)


@pytest.mark.parametrize(("one", "other"), [("a/b", "a.b"), ("a_b", "a-b"), ("A", "a"), ("a/b", "a//b")])
def test_similar_paths_have_different_names(one, other):
    """By their digests."""
    assert worker_name(one) != worker_name(other)
