"""Names that others chose, made legal: ids as shell-operator makes them, and the names of Workers."""

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
    """Upper case becomes a dash and lower case, what is no part of a path a dash, and several dashes one."""
    assert webhook_id(binding) == expected


@pytest.mark.parametrize(("path", "expected"), [("validate.sh", "hook.validate.sh"), ("pods.d", "hook.pods.d")])
def test_a_legal_path_is_the_name(path, expected):
    """So that people find their files in metrics and logs."""
    assert worker_name(path) == expected


def test_an_illegal_path_is_readable_all_the_same():
    """And has a digest behind it."""
    assert re.fullmatch(r"hook\.sub\.my-hook-py-[0-9a-f]{16}", worker_name("sub/My_Hook.py"))


PATHS = st.text(st.characters(exclude_characters="\0", codec="utf-8"), min_size=1, max_size=300)


@pytest.mark.property
@given(PATHS)
def test_every_path_becomes_a_legal_name(path):
    """However long it is, and whatever it is made of."""
    assert dns_subdomain(worker_name(path)) == []


@pytest.mark.property
@given(PATHS, PATHS)
def test_different_paths_are_different_workers(one, other):
    """Those too that look alike once they are made legal."""
    assert (worker_name(one) == worker_name(other)) is (one == other)


@pytest.mark.parametrize(("one", "other"), [("a/b", "a.b"), ("a_b", "a-b"), ("A", "a"), ("a/b", "a//b")])
def test_paths_that_look_alike(one, other):
    """Are told apart."""
    assert worker_name(one) != worker_name(other)
