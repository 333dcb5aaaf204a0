"""Semantic versions: ``semver('1.2.3-rc.1+build')`` (blang/semver, and Kubernetes' normalization on request)."""

import re
from typing import Any, ClassVar, Final

from gateway.cel.libraries.overloads import Library, function, member
from gateway.cel.values.faults import Fault, no_such_overload
from gateway.cel.values.numbers import LARGEST_INT, LARGEST_UINT
from gateway.cel.values.reflection import Opaque
from gateway.cel.values.strconv import go_quoted
from gateway.cel.values.types import Type, written

_NUMBERS: Final = re.compile(r"[0-9]*")
_ALPHANUMERIC: Final = re.compile(r"[0-9A-Za-z-]*")
_ORDER: Final = ("Major", "Minor", "Patch")


class Semver(Opaque, frozen=True, eq=False):
    """``before``: the parts of the pre-release, numbers as numbers. Build metadata has no part in comparisons."""

    numbers: tuple[int, int, int]
    before: tuple[int | str, ...]

    CEL: ClassVar[Type] = written("kubernetes.Semver")

    def equals(self, other: Any) -> bool:
        """``==``; an error for any other type."""
        if not isinstance(other, Semver):
            raise no_such_overload()
        return _compare(self, other) == 0


def _parse(text: str) -> Semver:
    if not text:
        raise Fault("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:  # noqa: PLR2004 - major, minor and the rest
        raise Fault("No Major.Minor.Patch elements found")
    major, minor = (_number(part, name) for part, name in zip(parts[:2], _ORDER, strict=False))
    patch, plus, build = parts[2].partition("+")
    patch, dash, before = patch.partition("-")
    number = _number(patch, "Patch")
    found = tuple(map(_pre_release, before.split("."))) if dash else ()
    for part in build.split(".") if plus else ():
        if not part:
            raise Fault("Build meta data is empty")
        if not _ALPHANUMERIC.fullmatch(part):
            raise Fault(f"Invalid character(s) found in build meta data {go_quoted(part)}")
    return Semver((major, minor, number), found)


def _number(text: str, name: str) -> int:
    if not _NUMBERS.fullmatch(text):
        raise Fault(f"Invalid character(s) found in {name.lower()} number {go_quoted(text)}")
    if len(text) > 1 and text[0] == "0":
        raise Fault(f"{name} number must not contain leading zeroes {go_quoted(text)}")
    return _uint(text)


def _uint(text: str) -> int:
    """strconv.ParseUint."""
    if not text:
        raise Fault('strconv.ParseUint: parsing "": invalid syntax')
    if len(text) > 20 or int(text) > LARGEST_UINT:  # noqa: PLR2004 - digits of 2**64
        raise Fault(f"strconv.ParseUint: parsing {go_quoted(text)}: value out of range")
    return int(text)


def _pre_release(text: str) -> int | str:
    if not text:
        raise Fault("Prerelease is empty")
    if _NUMBERS.fullmatch(text):
        if len(text) > 1 and text[0] == "0":
            raise Fault(f"Numeric PreRelease version must not contain leading zeroes {go_quoted(text)}")
        return _uint(text)
    if not _ALPHANUMERIC.fullmatch(text):
        raise Fault(f"Invalid character(s) found in prerelease {go_quoted(text)}")
    return text


def _normalized(text: str) -> str:
    """``v1.02`` -> ``1.2.0``."""
    parts = [_without_zeros(part) for part in text.removeprefix("v").split(".", 2)]
    if len(parts) < 3:  # noqa: PLR2004 - major, minor, patch
        if "+" in parts[-1] or "-" in parts[-1]:
            raise Fault("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts)


def _without_zeros(part: str) -> str:
    if len(part) <= 1:
        return part
    stripped = part.lstrip("0")
    return stripped if stripped[:1] in set("0123456789") - {""} and stripped else f"0{stripped}"


def _semver(text: str, normalize: bool = False) -> Semver:  # noqa: FBT001, FBT002 - CEL gives arguments by position
    return _parse(_normalized(text) if normalize else text)


def _is_semver(text: str, normalize: bool = False) -> bool:  # noqa: FBT001, FBT002 - see above
    try:
        _semver(text, normalize)
    except Fault:
        return False
    return True


def _compare(one: Semver, other: Semver) -> int:
    if one.numbers != other.numbers:
        return 1 if one.numbers > other.numbers else -1
    if not one.before or not other.before:
        return bool(other.before) - bool(one.before)
    for left, right in zip(one.before, other.before, strict=False):
        if left != right:
            return _compare_parts(left, right)
    return (len(one.before) > len(other.before)) - (len(one.before) < len(other.before))


def _compare_parts(left: int | str, right: int | str) -> int:
    """Numbers come before words."""
    if isinstance(left, int) and isinstance(right, int):
        return 1 if left > right else -1
    if isinstance(left, str) and isinstance(right, str):
        return 1 if left > right else -1
    return -1 if isinstance(left, int) else 1


def _int(number: int) -> int:
    """Go's conversion of a uint64 to an int64, which wraps around."""
    return number if number <= LARGEST_INT else number - 2**64


_S: Final = Semver.CEL.name

SEMVER: Final = Library(
    overloads=(
        function("string_to_semver", f"semver(string) -> {_S}", _semver),
        function("string_bool_to_semver", f"semver(string, bool) -> {_S}", _semver),
        function("is_semver_string", "isSemver(string) -> bool", _is_semver),
        function("is_semver_string_bool", "isSemver(string, bool) -> bool", _is_semver),
        member(
            "semver_is_greater_than", f"{_S}.isGreaterThan({_S}) -> bool", lambda one, other: _compare(one, other) > 0
        ),
        member("semver_is_less_than", f"{_S}.isLessThan({_S}) -> bool", lambda one, other: _compare(one, other) < 0),
        member("semver_compare_to", f"{_S}.compareTo({_S}) -> int", _compare),
        member("semver_major", f"{_S}.major() -> int", lambda version: _int(version.numbers[0])),
        member("semver_minor", f"{_S}.minor() -> int", lambda version: _int(version.numbers[1])),
        member("semver_patch", f"{_S}.patch() -> int", lambda version: _int(version.numbers[2])),
    ),
)
