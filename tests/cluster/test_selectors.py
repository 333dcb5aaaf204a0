"""Selectors as texts of a list's query."""

import pytest

from gateway.cluster.selectors import field_selector, label_selector
from gateway.policies.model import Requirement, Selector


@pytest.mark.parametrize(
    ("requirements", "text"),
    [
        ([], ""),
        ([("app", "In", ("x",))], "app in (x)"),
        ([("app", "In", ("y", "x")), ("a.b/c", "NotIn", ("z",))], "app in (x,y),a.b/c notin (z)"),
        ([("app", "Exists", ()), ("b", "DoesNotExist", ())], "app,!b"),
    ],
)
def test_a_label_selector_is_kubernetes_text(requirements, text):
    """As k8s.io/apimachinery/pkg/labels prints it, with ``in`` for one value too."""
    found = Selector(requirements=tuple(Requirement(key=k, operator=o, values=v) for k, o, v in requirements))
    assert label_selector(found) == text


@pytest.mark.parametrize(
    ("requirements", "text"),
    [
        ([], ""),
        ([("metadata.name", "a", True), ("spec.nodeName", "", False)], "metadata.name=a,spec.nodeName!="),
        ([("a", "x=y,z\\", True)], r"a=x\=y\,z\\"),
    ],
)
def test_a_field_selectors_values_are_escaped(requirements, text):
    """A backslash precedes each backslash, comma and equals sign."""
    assert field_selector(requirements) == text
