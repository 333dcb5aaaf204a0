"""Named formats: ``format.dns1123Label().validate(s)`` is none if s is one, else what is wrong with it."""

import re
from collections.abc import Callable
from datetime import date
from typing import Any, ClassVar, Final

from gateway.cel.libraries.overloads import Library, Overload, function, member
from gateway.cel.libraries.urls import check_request_uri
from gateway.cel.values.containers import NONE, Optional
from gateway.cel.values.faults import no_such_overload
from gateway.cel.values.reflection import Opaque
from gateway.cel.values.types import Type, written

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_KEY: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE: Final = f"({_KEY})?"
_UUID: Final = "[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}"
_BASE64: Final = "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"
_DATE: Final = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK: Final = "([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))"

_LABEL_WORDS: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with"
    " an alphanumeric character"
)
_SUBDOMAIN_WORDS: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and"
    " end with an alphanumeric character"
)
_LABEL_1035_WORDS: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character,"
    " and end with an alphanumeric character"
)
_KEY_WORDS: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
_VALUE_WORDS: Final = f"a valid label must be an empty string or {_KEY_WORDS.removeprefix('must ')}"

LONGEST_LABEL: Final = 63
LONGEST_SUBDOMAIN: Final = 253

Problems = list[str]


def _against(words: str, pattern: str, *examples: str) -> str:
    """RegexError."""
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{words} (e.g. {shown}regex used for validation is '{pattern}')"


def _length(text: str) -> int:
    return len(text.encode(errors="replace"))


def _too_long(text: str, most: int, unit: str = "characters") -> Problems:
    return [f"must be no more than {most} {unit}"] if _length(text) > most else []


def label_problems(text: str) -> Problems:
    """IsDNS1123Label."""
    problems = _too_long(text, LONGEST_LABEL)
    if not re.fullmatch(_LABEL, text):
        dotted = re.fullmatch(_SUBDOMAIN, text)
        problems.append("must not contain dots" if dotted else _against(_LABEL_WORDS, _LABEL, "my-name", "123-abc"))
    return problems


def subdomain_problems(text: str) -> Problems:
    """IsDNS1123Subdomain."""
    problems = _too_long(text, LONGEST_SUBDOMAIN)
    if not re.fullmatch(_SUBDOMAIN, text):
        problems.append(_against(_SUBDOMAIN_WORDS, _SUBDOMAIN, "example.com"))
    return problems


def _label_1035_problems(text: str) -> Problems:
    problems = _too_long(text, LONGEST_LABEL)
    if not re.fullmatch(_LABEL_1035, text):
        problems.append(_against(_LABEL_1035_WORDS, _LABEL_1035, "my-name", "abc-123"))
    return problems


def _key_problems(text: str) -> Problems:
    """IsLabelKey: a name, with or without a prefix."""
    against = _against(_KEY_WORDS, _KEY, "MyName", "my.name", "123-abc")
    parts = text.split("/")
    if len(parts) > 2:  # noqa: PLR2004 - prefix and name
        return [
            f"a valid label key {against} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    problems: Problems = []
    prefix, name = parts if len(parts) > 1 else (None, parts[0])
    if prefix == "":
        problems.append("prefix part must be non-empty")
    elif prefix is not None:
        problems += [f"prefix part {problem}" for problem in subdomain_problems(prefix)]
    if not name:
        problems.append("name part must be non-empty")
    problems += [f"name part {problem}" for problem in _too_long(name, LONGEST_LABEL, "bytes")]
    if not re.fullmatch(_KEY, name):
        problems.append(f"name part {against}")
    return problems


def _value_problems(text: str) -> Problems:
    problems = _too_long(text, LONGEST_LABEL, "bytes")
    if not re.fullmatch(_VALUE, text):
        problems.append(_against(_VALUE_WORDS, _VALUE, "MyValue", "my_value", "12345"))
    return problems


def _prefix_of(check: Callable[[str], Problems]) -> Callable[[str], Problems]:
    """A prefix may end in the dash that a generated suffix follows (maskTrailingDash)."""

    def checked(text: str) -> Problems:
        masked = f"{text[:-2]}a" if _length(text) > 1 and text.endswith("-") else text
        return check(masked)

    return checked


def _uri_problems(text: str) -> Problems:
    problem = check_request_uri(text)
    return [] if problem is None else [problem]


def _matching(pattern: str, problem: str) -> Callable[[str], Problems]:
    compiled = re.compile(pattern, re.ASCII)
    return lambda text: [] if compiled.fullmatch(text) else [problem]


def _is_date(text: str) -> bool:
    if not re.fullmatch(_DATE, text, re.ASCII):
        return False
    year, month, day = map(int, text.split("-"))
    try:
        date(year or 2000, month, day)  # Go has a year 0, a leap year
    except ValueError:
        return False
    return True


def _date_problems(text: str) -> Problems:
    return [] if _is_date(text) else ["invalid date"]


def _datetime_problems(text: str) -> Problems:
    day, *rest = text.lower().split("t")
    clock = re.fullmatch(_CLOCK, rest[0], re.ASCII) if rest and _is_date(day) else None
    valid = clock is not None and clock[1] <= "23" and clock[2] <= "59" and clock[3] <= "59"
    return [] if valid else ["invalid datetime"]


class Format(Opaque, frozen=True, eq=False):
    """``pattern_size`` is what Kubernetes counts for the regular expression, in the cost of ``validate``."""

    name: str
    problems: Callable[[str], Problems]
    pattern_size: int

    CEL: ClassVar[Type] = written("kubernetes.NamedFormat")

    def equals(self, other: Any) -> bool:
        """``==``; an error for any other type."""
        if not isinstance(other, Format):
            raise no_such_overload()
        return self.name == other.name


_PATTERN_OF_DATETIME: Final = len(_CLOCK) + 2
"""Of strfmt's DateTimePattern with its anchors, counted for dates as well."""

FORMATS: Final = {
    "dns1123Label": Format("DNS1123Label", label_problems, 30),
    "dns1123Subdomain": Format("DNS1123Subdomain", subdomain_problems, 60),
    "dns1035Label": Format("DNS1035Label", _label_1035_problems, 30),
    "qualifiedName": Format("QualifiedName", _key_problems, 60),
    "dns1123LabelPrefix": Format("DNS1123LabelPrefix", _prefix_of(label_problems), 30),
    "dns1123SubdomainPrefix": Format("DNS1123SubdomainPrefix", _prefix_of(subdomain_problems), 60),
    "dns1035LabelPrefix": Format("DNS1035LabelPrefix", _prefix_of(_label_1035_problems), 30),
    "labelValue": Format("LabelValue", _value_problems, 40),
    "uri": Format("URI", _uri_problems, 1103),
    "uuid": Format("uuid", _matching(f"(?i:{_UUID})", "does not match the UUID format"), len(_UUID) + 6),
    "byte": Format("byte", _matching(_BASE64, "invalid base64"), 84),
    "date": Format("date", _date_problems, _PATTERN_OF_DATETIME),
    "datetime": Format("datetime", _datetime_problems, _PATTERN_OF_DATETIME),
}
"""Patterns that are compiled here are matched as a whole; in these there is nothing to backtrack over for long."""


def _named(name: str) -> Optional:
    return Optional(FORMATS[name]) if name in FORMATS else NONE


def _validate(named: Format, text: str) -> Optional:
    problems = named.problems(text)
    return Optional(problems) if problems else NONE


def _constant(found: Format) -> Callable[[], Format]:
    return lambda: found


def _overloads() -> tuple[Overload, ...]:
    constants = (
        function(f"format.{name}", f"format.{name}() -> {Format.CEL.name}", _constant(found))
        for name, found in FORMATS.items()
    )
    return (
        *constants,
        function("format-named", f"format.named(string) -> optional_type({Format.CEL.name})", _named),
        member("format-validate", f"{Format.CEL.name}.validate(string) -> optional_type(list(string))", _validate),
    )


NAMED_FORMATS: Final = Library(overloads=_overloads())
