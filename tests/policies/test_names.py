"""Names and labels, as Kubernetes' own tests of its validation try them (k8s.io/apimachinery/pkg/util/validation)."""

import pytest

from gateway.policies import names


@pytest.mark.parametrize("name", ["a", "ab", "abc", "a1", "a-1", "a--1--2--b", "0", "01", "012", "1a", "1-a", "a" * 63])
def test_dns_labels(name):
    """Kubernetes' good DNS-1123 labels are accepted."""
    assert names.dns_label(name) == []


@pytest.mark.parametrize(
    "name", ["", "A", "ABC", "aBc", "-", "a-", "-a", "_", "a_", "a b", " a", "a ", "é", "a\n", "a" * 64]
)
def test_no_dns_labels(name):
    """Kubernetes' bad DNS-1123 labels are refused."""
    assert names.dns_label(name)


def test_label_with_dots():
    """The error for a subdomain in place of a label states the cause instead of a regular expression."""
    assert names.dns_label("a.b") == ["must not contain dots"]


@pytest.mark.parametrize("name", ["a", "a.b", "a-1.b", "0.1.a", "a" * 253, "a.a.a.a"])
def test_dns_subdomains(name):
    """Kubernetes' good DNS-1123 subdomains are accepted; the length of a label is not looked at there."""
    assert names.dns_subdomain(name) == []


@pytest.mark.parametrize("name", ["", "A", "a.", ".a", "a..b", "a.B", "_", "a_b", "a b", "a.b\n", "a" * 254, "ä.b"])
def test_no_dns_subdomains(name):
    """Kubernetes' bad DNS-1123 subdomains are refused."""
    assert names.dns_subdomain(name)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("a.b.c", None),
        ("a", "should be a domain with at least three segments separated by dots"),
        ("a.b", "should be a domain with at least three segments separated by dots"),
        (
            "A.b.c",
            (
                "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and "
                "must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
                "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
            ),
        ),
    ],
)
def test_fully_qualified_names(name, error):
    """A webhook's name has three segments or more; the message is Kubernetes', letter for letter."""
    assert names.fully_qualified(name) == ([] if error is None else [error])


@pytest.mark.parametrize(
    "key",
    [
        "simple",
        "now-with-dashes",
        "1-starts-with-num",
        "1234",
        "simple/simple",
        "a.b.c/K_e.y",
        "a" * 63,
        "x/" + "a" * 63,
    ],
)
def test_label_keys(key):
    """Kubernetes' good label keys are accepted."""
    assert names.label_key(key) == []


@pytest.mark.parametrize(
    ("key", "error"),
    [
        ("", "name part must be non-empty"),
        ("a/", "name part must be non-empty"),
        ("/a", "prefix part must be non-empty"),
        ("a" * 64, "name part must be no more than 63 bytes"),
        ("a/b/c", "a valid label key must consist of alphanumeric characters"),
        ("a b", "name part must consist of alphanumeric characters"),
        ("A.b/c", "prefix part a lowercase RFC 1123 subdomain must consist of"),
        ("a-", "name part must consist of alphanumeric characters"),
    ],
)
def test_no_label_keys(key, error):
    """The error for an invalid label key names the invalid part and the reason."""
    assert names.label_key(key)[0].startswith(error)


@pytest.mark.parametrize("value", ["", "simple", "1.2_3-4", "UPPER", "a" * 63])
def test_label_values(value):
    """Kubernetes' good label values are accepted, the empty one among them."""
    assert names.label_value(value) == []


@pytest.mark.parametrize("value", ["nospecialchars%", "-a", "a-", ".", "a b", "a/b", "a" * 64, "é", "a\n"])
def test_no_label_values(value):
    """Kubernetes' bad label values are refused."""
    assert names.label_value(value)


def test_both_reasons():
    """A value that is too long and malformed has both errors."""
    assert len(names.label_value("%" * 64)) == 2


def test_length_in_bytes():
    """Lengths are those of the UTF-8 bytes, as in Go."""
    assert names.dns_label("é" * 32)[0] == "must be no more than 63 characters"
