"""Which names and labels Kubernetes accepts, in its own words (k8s.io/apimachinery/pkg/util/validation).

Each function returns what is wrong, nothing where the value is fine. Lengths are of the UTF-8 bytes, as in Go; names in
DNS are reported in "characters", labels in "bytes" (pkg/api/validate/content has the newer words).
"""

import re
from typing import Final

LABEL_MAX: Final = 63
"""A label in DNS (RFC 1123): at most 63 octets. Kubernetes has taken the same for label values and the names in
keys."""

SUBDOMAIN_MAX: Final = 253
"""A name in DNS: at most 255 octets on the wire, 253 as text."""

TOO_FEW_SEGMENTS: Final = "should be a domain with at least three segments separated by dots"

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_KEY: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE: Final = f"({_LABEL_KEY})?"

_LABEL_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"

_LABEL_REGEX = re.compile(_LABEL)
_LABEL_1035_REGEX = re.compile(_LABEL_1035)
_SUBDOMAIN_REGEX = re.compile(_SUBDOMAIN)
_LABEL_KEY_REGEX = re.compile(_LABEL_KEY)
_LABEL_VALUE_REGEX = re.compile(_LABEL_VALUE)

_LABEL_WORDS: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character"
)
_LABEL_1035_WORDS: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character"
)
_SUBDOMAIN_WORDS: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character"
)
_LABEL_KEY_WORDS: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
_LABEL_VALUE_WORDS: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character"
)


def dns_label(value: str) -> list[str]:
    """A DNS-1123 label: the name of a Namespace, or of a worker's policy."""
    errors = _too_long(value, LABEL_MAX, "characters")
    if not _LABEL_REGEX.fullmatch(value):
        if _SUBDOMAIN_REGEX.fullmatch(value):
            errors.append("must not contain dots")
        else:
            errors.append(_regex(_LABEL_WORDS, _LABEL, "my-name", "123-abc"))
    return errors


def dns_label_1035(value: str) -> list[str]:
    """A DNS-1035 label: an element of admissionReviewVersions."""
    errors = _too_long(value, LABEL_MAX, "characters")
    if not _LABEL_1035_REGEX.fullmatch(value):
        errors.append(_regex(_LABEL_1035_WORDS, _LABEL_1035, "my-name", "abc-123"))
    return errors


def name_prefix(value: str) -> list[str]:
    """A generateName: what it ends in may be a dash, since more will follow it (maskTrailingDash)."""
    return dns_subdomain(value[:-2] + "a" if len(value) > 1 and value.endswith("-") else value)


def dns_subdomain(value: str) -> list[str]:
    """A DNS-1123 subdomain: the name of a Worker or of a configuration, a segment of a Service's path."""
    return _subdomain(value, "characters")


def fully_qualified(value: str) -> list[str]:
    """The name of a webhook, and so of a policy: a DNS-1123 subdomain of three labels or more."""
    errors = dns_subdomain(value)
    if errors:
        return [",".join(errors)]
    if value.count(".") < 2:  # noqa: PLR2004 - three segments have two dots
        return [TOO_FEW_SEGMENTS]
    return []


def label_key(value: str) -> list[str]:
    """The key of a label: ``[PREFIX/]NAME``, the prefix a DNS subdomain."""
    *prefixes, name = value.split("/")
    regex = _regex(_LABEL_KEY_WORDS, _LABEL_KEY, "MyName", "my.name", "123-abc")
    if len(prefixes) > 1:
        example = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {regex} {example}"]
    errors = [f"prefix part {error}" for prefix in prefixes for error in _prefix(prefix)]
    if not name:
        errors.append("name part must be non-empty")
    errors += [f"name part {error}" for error in _too_long(name, LABEL_MAX, "bytes")]
    if not _LABEL_KEY_REGEX.fullmatch(name):
        errors.append(f"name part {regex}")
    return errors


def annotation_key(value: str) -> list[str]:
    """The key of an annotation: as that of a label, "except that case doesn't matter"."""
    # Go lowers each character by itself: of this one Python would make two.
    return label_key(value.replace("\u0130", "i").lower())


def label_value(value: str) -> list[str]:
    """The value of a label; may be empty."""
    errors = _too_long(value, LABEL_MAX, "bytes")
    if not _LABEL_VALUE_REGEX.fullmatch(value):
        errors.append(_regex(_LABEL_VALUE_WORDS, _LABEL_VALUE, "MyValue", "my_value", "12345"))
    return errors


def _prefix(prefix: str) -> list[str]:
    return _subdomain(prefix, "bytes") if prefix else ["must be non-empty"]


def _subdomain(value: str, unit: str) -> list[str]:
    errors = _too_long(value, SUBDOMAIN_MAX, unit)
    if not _SUBDOMAIN_REGEX.fullmatch(value):
        errors.append(_regex(_SUBDOMAIN_WORDS, _SUBDOMAIN, "example.com"))
    return errors


def _too_long(value: str, limit: int, unit: str) -> list[str]:
    return [f"must be no more than {limit} {unit}"] if len(value.encode()) > limit else []


def _regex(words: str, regex: str, *examples: str) -> str:
    """Kubernetes' RegexError, comma for comma."""
    samples = " or ".join(f"'{example}', " for example in examples)
    return f"{words} (e.g. {samples}regex used for validation is '{regex}')"
