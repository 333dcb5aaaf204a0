"""Settings: each error has its place, and settings are parsed once."""

import dataclasses
from typing import Annotated, Literal, TypedDict

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission_worker import InvalidSettingsError, Limits, SettingsError, SettingsWarning
from admission_worker.settings import KeptSettings, NoSettings, SettingsType


class Rule(msgspec.Struct, forbid_unknown_fields=True):
    """A nested object."""

    key: str
    weight: Annotated[int, msgspec.Meta(ge=0)] = 0


class Settings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Something of everything."""

    labels: dict[str, Annotated[str, msgspec.Meta(max_length=3)]] = {}
    names: Annotated[list[str], msgspec.Meta(min_length=1)] = msgspec.field(default_factory=lambda: ["a"])
    rules: list[Rule] | None = None
    mode: Literal["warn", "deny"] = "deny"
    origin: str = msgspec.field(name="from", default="")
    limit: int | Rule = 1
    pair: tuple[int, str] | None = None
    numbers: tuple[int, ...] = ()
    required: bool

    def __post_init__(self):
        if self.origin == "bad":
            raise ValueError("from must not be bad")
        if self.origin == "worse":
            raise KeyError("an error of the author's")


@dataclasses.dataclass
class Plain:
    """A dataclass, with annotations as text."""

    count: "int"
    names: "list[str]" = dataclasses.field(default_factory=list)


class Typed(TypedDict):
    """A TypedDict."""

    count: int


class Tree(msgspec.Struct):
    """As deep as it likes."""

    below: "Tree | None" = None


ERRORS = [
    (Settings, "{}", {"/required": "Required value"}),
    (Settings, '{"required": 1}', {"/required": "Expected `bool`, got `int`"}),
    (
        Settings,
        '{"required": true, "labels": {"a/b": 1, "c~d": "long", "e": "ok"}}',
        {"/labels/a~1b": "Expected `str`, got `int`", "/labels/c~0d": "Expected `str` of length <= 3"},
    ),
    (
        Settings,
        '{"required": true, "rules": [{"key": "a"}, {"weight": -1, "extra": 1}, 5]}',
        {
            "/rules/1/key": "Required value",
            "/rules/1/weight": "Expected `int` >= 0",
            "/rules/1/extra": "Unknown member; known are: key, weight",
            "/rules/2": "Expected `object`, got `int`",
        },
    ),
    (Settings, '{"required": true, "names": []}', {"/names": "Expected `array` of length >= 1"}),
    (Settings, '{"required": true, "mode": "off"}', {"/mode": "Invalid enum value 'off'"}),
    (Settings, '{"required": true, "from": "bad"}', {"": "from must not be bad"}),
    (Settings, '{"required": true, "from": 1}', {"/from": "Expected `str`, got `int`"}),
    (Settings, '{"required": true, "limit": {"weight": 1}}', {"/limit": "Object missing required field `key`"}),
    (Settings, '{"required": true, "limit": {"key": 1}}', {"/limit/key": "Expected `str`, got `int`"}),
    (Settings, '{"required": true, "pair": [1, 2]}', {"/pair/1": "Expected `str`, got `int`"}),
    (
        Settings,
        '{"required": true, "numbers": [1, "2", "3"]}',
        {"/numbers/1": "Expected `int`, got `str`", "/numbers/2": "Expected `int`, got `str`"},
    ),
    (
        Settings,
        '{"required": true, "unknown": 1, "mode": 5}',
        {
            "/mode": "Expected `str`, got `int`",
            "/unknown": "Unknown member; known are: from, labels, limit, mode, names, numbers, pair, required, rules",
        },
    ),
    (Plain, '{"names": [1]}', {"/count": "Required value", "/names/0": "Expected `str`, got `int`"}),
    (Typed, '{"count": "1"}', {"/count": "Expected `int`, got `str`"}),
    (NoSettings, '{"a": 1}', {"/a": "Unknown member; known are: none"}),
    (Settings, "[]", {"": "The settings must be one JSON object, found an array"}),
    (Settings, "null", {"": "The settings must be one JSON object, found null"}),
]


@pytest.mark.parametrize(("shape", "text", "expected"), ERRORS)
def test_every_error_has_its_own_place(shape, text, expected):
    """All errors at once, each with a JSON Pointer."""
    with pytest.raises(InvalidSettingsError) as error:
        SettingsType(shape=shape).read(text.encode())
    assert {one.pointer: one.message for one in error.value.errors} == expected


@pytest.mark.parametrize("text", [b"", b"{", b"\xff", b'{"a": "\xff"}', b"{} {}", b"[" * 5000])
def test_settings_that_are_not_json_are_one_error(text):
    """Unreadable settings are an error of the settings as a whole."""
    with pytest.raises(InvalidSettingsError, match="must be one JSON object, never empty") as error:
        SettingsType(shape=Settings).read(text)
    assert [one.pointer for one in error.value.errors] == [""]


def test_the_search_for_errors_ends():
    """Below the searched levels msgspec's first error is reported, with its place."""
    text = b'{"below":' * 200 + b"5" + b"}" * 200
    with pytest.raises(InvalidSettingsError) as error:
        SettingsType(shape=Tree).read(text)
    assert [one.pointer for one in error.value.errors] == ["/below" * 200]


def test_an_exception_of_the_authors_own_check_is_an_error(caplog):
    """If the author's check raises, the settings are invalid, and the log has the traceback."""
    with pytest.raises(InvalidSettingsError, match="KeyError in the worker; see its log"):
        SettingsType(shape=Settings).read(b'{"required": true, "from": "worse"}')
    assert "Traceback" in caplog.text


def test_members_that_a_type_ignores_are_a_warning():
    """An unknown member that the type allows is a warning."""
    settings, warnings = SettingsType(shape=Plain).read(b'{"count": 1, "nams": ["a"]}')
    assert settings == Plain(count=1)
    assert warnings == ("/nams is no member of these settings and is ignored",)


@pytest.mark.parametrize(
    ("findings", "errors", "warnings"),
    [
        (None, (), ()),
        ([], (), ()),
        (["wrong"], (SettingsError("", "wrong"),), ()),
        ("wrong", (SettingsError("", "wrong"),), ()),
        ([SettingsError("/count", "odd"), "wrong"], (SettingsError("/count", "odd"), SettingsError("", "wrong")), ()),
        ([SettingsWarning("old")], (), ("old",)),
        ([SettingsWarning("old"), "wrong"], (SettingsError("", "wrong"),), ()),
    ],
)
def test_the_authors_check_adds_errors_and_warnings(findings, errors, warnings):
    """The author's check returns errors at their places, and warnings."""
    kind = SettingsType(shape=Plain, validate=lambda settings: findings)
    if not errors:
        assert kind.read(b'{"count": 1}') == (Plain(count=1), warnings)
        return
    with pytest.raises(InvalidSettingsError) as error:
        kind.read(b'{"count": 1}')
    assert error.value.errors == errors


def test_the_authors_check_sees_only_settings_that_convert():
    """The author's check does not run for settings that do not convert."""

    def check(settings):
        raise AssertionError("was called")

    with pytest.raises(InvalidSettingsError, match="Required value"):
        SettingsType(shape=Plain, validate=check).read(b"{}")


@pytest.mark.parametrize("shape", [int, list[int], str, object, int | str])
def test_a_type_that_is_not_a_json_object_is_an_error(shape):
    """A settings type that is not a JSON object is an error at the registration."""
    with pytest.raises(TypeError):
        SettingsType(shape=shape)


def test_the_schema_is_json_schema():
    """The schema names its dialect and the members."""
    schema = msgspec.json.decode(SettingsType(shape=Rule).schema())
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$defs"]["Rule"]["required"] == ["key"]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["labels", "names", "rules", "key", "weight", "required", "limit", "pair", "numbers", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@pytest.mark.property
@given(VALUES, st.sampled_from([Settings, Plain, Typed, NoSettings, dict[str, Rule], Rule]))
def test_settings_are_accepted_exactly_when_msgspec_accepts_them(value, shape):
    """The search for all errors agrees with msgspec's conversion, and each pointer leads
    somewhere."""
    text = msgspec.json.encode(value)
    try:
        expected = msgspec.json.decode(text, type=shape) if isinstance(value, dict) else None
    except msgspec.ValidationError:
        expected = None
    found, errors = _read(shape, text)
    assert found == expected
    assert (not errors) == (expected is not None)
    assert all(error.message and _leads_somewhere(value, error.pointer) for error in errors)


def _read(shape, text):
    """The settings and no errors, or no settings and the errors."""
    try:
        return SettingsType(shape=shape).read(text)[0], ()
    except InvalidSettingsError as error:
        return None, error.errors


def _leads_somewhere(value, pointer):
    """Whether a pointer is one into the value, or to a member that is missing in it."""
    tokens = pointer.split("/")[1:]
    for place, token in enumerate(tokens):
        if isinstance(value, list):
            value = value[int(token)]
        elif token in value:
            value = value[token]
        else:
            return place == len(tokens) - 1
    return True


def test_settings_are_kept_by_their_bytes_up_to_a_number():
    """The least recently used ones go first."""
    kept, seen = KeptSettings(Limits(settings_kept=2)), []
    kind = SettingsType(shape=dict[str, int], validate=lambda settings: seen.append(settings["n"]))
    for number in (1, 2, 1, 3, 1, 2):
        assert kept.read("p", kind, b'{"n":%d}' % number) == {"n": number}
    assert seen == [1, 2, 3, 2]


def test_settings_are_kept_up_to_a_size():
    """Their text together stays within the limit; what is larger alone is used and not kept."""
    kept, seen = KeptSettings(Limits(settings_kept_bytes=20)), []
    kind = SettingsType(shape=dict[str, str], validate=lambda settings: seen.append(settings["n"]))
    for text in ("a", "b", "a", "c" * 30, "a"):
        assert kept.read("p", kind, b'{"n":"%s"}' % text.encode())["n"] == text
    assert seen == ["a", "b", "c" * 30, "a"]


def test_settings_of_two_policies_are_kept_apart():
    """Equal bytes mean different things to different policies."""
    kept = KeptSettings(Limits())
    assert kept.read("a", SettingsType(shape=Plain), b'{"count":1}') == Plain(count=1)
    assert kept.read("b", SettingsType(shape=Typed), b'{"count":1}') == {"count": 1}
