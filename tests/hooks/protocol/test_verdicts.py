"""From the files that a hook leaves to its verdict, as shell-operator reads them."""

import base64
import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.engine.verdicts import Allow, Change, ChangeKind, Deny, Failure
from gateway.hooks.protocol.outcomes import HOOK_FAILED, NO_ANSWER
from gateway.hooks.protocol.verdicts import AnswerFiles, HookFailedError, UnreadFile, verdict
from gateway.policies.model import Phase
from gateway.reasons import Reason

PATCH = [{"op": "add", "path": "/spec/replicas", "value": 333}]
ENCODED = base64.b64encode(json.dumps(PATCH).encode()).decode()
ALLOWED = b'{"allowed": true}'
UNREAD = UnreadFile("Permission denied")
TOO_LARGE = UnreadFile("a file has more than 10 bytes", too_large=True)


def read(response=ALLOWED, *, phase=Phase.VALIDATING, **files):
    """The verdict of these files."""
    content = json.dumps(response).encode() if isinstance(response, dict) else response
    return verdict(AnswerFiles(response=content, **files), hook="/hooks/a.sh", binding="a.example.com", phase=phase)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"allowed": True}, Allow()),
        ({"allowed": True, "message": "ignored", "warnings": ["w"]}, Allow(warnings=("w",))),
        ({"allowed": False, "message": "no way"}, Deny(code=403, message="no way", reason="")),
        ({"allowed": False}, Deny(code=403, message="", reason="")),
        ({}, Deny(code=403, message="", reason="")),
        ({"message": "m", "warnings": ["w"], "patch": "W10="}, Deny(message="m", reason="", warnings=("w",))),
        ({"allowed": False, "status": {"code": 403, "message": "no"}}, Deny(code=403, message="no", reason="")),
        ({"allowed": False, "status": {"code": 409, "message": "no"}}, Deny(code=409, message="no", reason="")),
    ],
)
def test_an_answer_is_followed_as_by_shell_operator(answer, expected):
    """A denial has code 403, and so has an answer without allowed."""
    assert read(answer) == expected


@pytest.mark.parametrize(
    "answer", [b"\n", b"{", b"[]", {"allowed": "yes"}, {"allowed": True, "patch": PATCH}, UNREAD], ids=repr
)
def test_an_invalid_answer_is_a_failed_hook(answer):
    """Which is a denial with shell-operator's message."""
    with pytest.raises(HookFailedError) as failed:
        read(answer)
    assert failed.value.denial == HOOK_FAILED


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("metrics", b"{", "METRICS_PATH"),
        ("conversion", b"[]", "CONVERSION_RESPONSE_PATH"),
        ("patches", b"{operation: Delete, kind: Pod, name: a}", "only hook-worker with --cluster"),
        *((name, UNREAD, "Permission denied") for name in ("metrics", "conversion", "patches")),
    ],
)
def test_what_shell_operator_would_fail_on_is_a_failed_hook(name, content, why):
    """Even if the answer allows; the error names the file or the reason."""
    with pytest.raises(HookFailedError, match=why) as failed:
        read(**{name: content})
    assert failed.value.denial == HOOK_FAILED


@pytest.mark.parametrize("name", ["response", "metrics", "conversion", "patches"])
def test_a_file_that_is_too_large_is_an_invalid_response(name):
    """Not a denial: shell-operator has no such limit."""
    failure = read(**{name: TOO_LARGE})
    assert isinstance(failure, Failure)
    assert failure.reason is Reason.INVALID_RESPONSE
    assert TOO_LARGE.reason in failure.message


def test_metrics_are_validated_and_ignored():
    """The gateway has no use for them."""
    assert read(metrics=b'{"name":"a","add":1}\n{"name":"b","set":2}\n') == Allow()


def test_no_answer_is_a_denial_with_500():
    """With shell-operator's message."""
    with pytest.raises(HookFailedError) as failed:
        read(b"")
    assert failed.value.denial == NO_ANSWER


def test_a_patch_is_passed_on_unchanged():
    """It is applied by kube-apiserver's rules, not by the gateway's."""
    change = Change(kind=ChangeKind.KUBERNETES_PATCH, content=json.dumps(PATCH).encode())
    assert read({"allowed": True, "patch": ENCODED}, phase=Phase.MUTATING) == Allow(change=change)


def test_a_patch_without_operations_is_no_change():
    """The answer is as good as one without it."""
    assert read({"allowed": True, "patch": "W10="}, phase=Phase.MUTATING) == Allow()


def test_a_validating_hook_must_not_change_anything():
    """kube-apiserver would reject the response: a failure with its message."""
    answer = read({"allowed": True, "patch": ENCODED})
    assert isinstance(answer, Failure)
    assert answer.reason is Reason.INVALID_RESPONSE
    assert "validating webhook may not return response.patch" in answer.message


CONTENTS = st.one_of(
    st.binary(max_size=40),
    st.sampled_from([ALLOWED, b'{"allowed":false,"message":"no"}', b"null", b'{"patch":"W10=","allowed":true}', b""]),
    st.builds(UnreadFile, st.text(max_size=9), st.booleans()),
)


@pytest.mark.property
@given(response=CONTENTS, metrics=CONTENTS, conversion=CONTENTS, patches=CONTENTS, phase=st.sampled_from(Phase))
def test_any_files_are_an_answer_or_a_failed_hook(phase, **files):
    """No other exception is raised; and only an answer that allows is an Allow."""
    with contextlib.suppress(HookFailedError):
        answer = verdict(AnswerFiles(**files), hook="/hooks/a.sh", binding="a.example.com", phase=phase)
        assert not isinstance(answer, Allow) or b"true" in files["response"]
