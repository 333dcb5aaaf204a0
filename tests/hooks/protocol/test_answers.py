"""The files of a hook, decoded as by shell-operator; and the original proposal's form."""

import base64
import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.hooks.protocol.answers import (
    DEPTH,
    MAX_WARNINGS,
    VALUES,
    AnswerError,
    HookAnswer,
    check_conversion,
    check_metrics,
    read_answer,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(), children, max_size=3),
    max_leaves=8,
)


def encoded(operations):
    return base64.b64encode(json.dumps(operations).encode()).decode()


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ('{"allowed":true} and some text', HookAnswer(allowed=True)),
        ('{"allowed":true}{"allowed":false}', HookAnswer(allowed=True)),
        ('{"ALLOWED":true,"Message":"no"}', HookAnswer(allowed=True, message="no")),
        ('{"allowed":true,"allowed":false}', HookAnswer()),
        ('{"allowed":true,"Allowed":null}', HookAnswer(allowed=True)),
        ('{"message":"a\nb"}', HookAnswer(message="a\nb")),
        ('{"warnings":["a",null]}', HookAnswer(warnings=("a", ""))),
        (
            '{"message":"\\ud800\\ud83d\\ude00","warnings":["\\udfff"]}',
            HookAnswer(message="\ufffd😀", warnings=("\ufffd",)),
        ),
        ('{"status":{"message":"\\ud800"}}', HookAnswer(message="\ufffd")),
        ('{"warnings":null,"patch":null,"message":null}', HookAnswer()),
        ('{"patch":"W10=\\n"}', HookAnswer(patch=b"[]")),
        ('\ufeff{"allowed":true}', None),
        ('{"allowed":"true"}', None),
        ('{"allowed":1}', None),
        ('{"message":7}', None),
        ('{"warnings":[1]}', None),
        ('{"warnings":{}}', None),
        ('{"patch":[{"op":"remove","path":"/a"}]}', None),
        ('{"patch":[]}', None),
        ('{"patch":"not base64"}', None),
        ('{"patch":"W10"}', None),
        ('{"allowed":true', None),
        ('{"allowed":NaN}', None),
        ("1", None),
        ("true", None),
    ],
)
def test_an_answer_is_decoded_as_by_shell_operator(text, answer):
    """Each rule of the module's docstring; None: an error."""
    if answer is None:
        with pytest.raises(AnswerError):
            read_answer(text.encode())
    else:
        assert read_answer(text.encode()) == answer


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        ({"code": 403, "message": "status"}, 403, "status"),
        ({"code": 422, "message": ""}, 422, ""),
        ({"code": 409}, 409, "own"),
        ({"Message": "status"}, 403, "status"),
        ({"code": "409", "message": 1}, 403, "own"),
        ({"code": 200}, 403, "own"),
        ({"code": True}, 403, "own"),
        ("Failure", 403, "own"),
        (None, 403, "own"),
    ],
)
def test_status_takes_precedence_over_message(status, code, message):
    """Its valid members count; invalid ones are ignored, as shell-operator ignores all of it."""
    answer = read_answer(json.dumps({"allowed": False, "message": "own", "status": status}).encode())
    assert (answer.allowed, answer.code, answer.message) == (False, code, message)


def test_invalid_utf_8_is_replaced():
    """As in Go, by the replacement character."""
    assert read_answer(b'{"message":"\xff"}').message == "\ufffd"


def test_warnings_are_limited():
    """A thousand are accepted."""
    read_answer(json.dumps({"warnings": [""] * MAX_WARNINGS}).encode())
    with pytest.raises(AnswerError, match=f"the limit is {MAX_WARNINGS}"):
        read_answer(json.dumps({"warnings": [""] * (MAX_WARNINGS + 1)}).encode())


def test_deep_nesting_is_an_error():
    """It does not end the process."""
    with pytest.raises(AnswerError, match="nests deeper"):
        read_answer(b"[" * 1_000_000)
    assert read_answer(b'{"x":' + b"[" * (DEPTH - 1) + b"]" * (DEPTH - 1) + b"}") == HookAnswer()


@given(st.binary(max_size=60) | JSON.map(json.dumps).map(str.encode))
def test_any_file_is_an_answer_or_an_answer_error(content):
    """No other exception is raised, for any of the files."""
    for read in (read_answer, check_metrics, check_conversion):
        with contextlib.suppress(AnswerError):
            read(content)


@given(allowed=st.booleans(), message=st.text(), warnings=st.lists(st.text(), max_size=3), operations=st.lists(JSON))
def test_what_is_written_is_read(allowed, message, warnings, operations):
    """An answer of the right types comes through as it is."""
    answer = {"allowed": allowed, "message": message, "warnings": warnings, "patch": encoded(operations)}
    read = read_answer(json.dumps(answer).encode())
    assert (read.allowed, read.message, list(read.warnings)) == (allowed, message, warnings)
    assert read.patch == json.dumps(operations).encode()


@pytest.mark.parametrize(
    "text",
    [
        "",
        '{"name":"a","add":1}\n{"name":"b","set":2.5,"labels":{"x":"y"}}',
        '{"name":"h","action":"observe","value":1,"buckets":[1,2]}{"group":"g","action":"expire"}',
        "null",
    ],
)
def test_metrics_are_one_operation_after_another(text):
    """As in shell-operator's own examples."""
    check_metrics(text.encode())


@pytest.mark.parametrize(
    "text",
    ["x", "[]", '{"name":1}', '{"add":"1"}', '{"set":true}', '{"labels":[]}', '{"buckets":{}}', '{"name":"a"', '"a"'],
)
def test_invalid_metrics_are_an_error(text):
    """The run has failed then."""
    with pytest.raises(AnswerError):
        check_metrics(text.encode())


@pytest.mark.parametrize(
    ("text", "fine"), [('{"failedMessage":"x"}', True), ("null", True), ("[]", False), (" ", False)]
)
def test_an_answer_to_a_conversion_is_an_object(text, fine):
    """Another value is an error."""
    if fine:
        check_conversion(text.encode())
    else:
        with pytest.raises(AnswerError):
            check_conversion(text.encode())


@pytest.mark.parametrize("read", [read_answer, check_metrics])
@pytest.mark.parametrize("item", ["[]", "{}", '""'])
def test_json_values_are_limited(read, item):
    """A file of empty objects would take a gigabyte of memory."""
    text = '{"allowed":true,"labels":{},"x":[' + f"{item}," * VALUES + item + "]}"
    with pytest.raises(AnswerError, match=f"more than {VALUES} values"):
        read(text.encode())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"warnings":["a"],"warnings":null}', ()),
        ('{"warnings":["a","b"],"warnings":["c"]}', ("c",)),
        ('{"WARNINGS":["a"],"warnings":["c"]}', ("c",)),
        ('{"warnings":5,"warnings":["a"]}', None),
        ('{"warnings":["a"],"Warnings":5}', None),
    ],
)
def test_repeated_members_are_decoded_as_by_go_json(text, expected):
    """As by goccy/go-json 0.10.6: the last value counts, null empties a list, a wrong type is always an error."""
    if expected is None:
        with pytest.raises(AnswerError):
            read_answer(text.encode())
    else:
        assert read_answer(text.encode()).warnings == expected
