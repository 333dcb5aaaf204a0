"""Reads and verifies the AdmissionReview that a webhook answers, as kube-apiserver does.

There are three steps, each with its own prefix of the error. All errors are errors of the call, so the webhook's
failurePolicy applies:

1. The text is parsed as JSON, and its apiVersion and kind select a type. Only here names are case-insensitive, so
   ``APIVERSION`` selects a type too. If apiVersion or kind is absent, that of the request is used.
2. The JSON is decoded into that type, by the rules of ``gateway.gotypes``: names are case-sensitive, unknown members
   are ignored, wrong types are errors, in the echoed request as well. Of several members with the same name the last
   counts; two objects are merged; ``null`` leaves a plain value unchanged.
3. The type is verified (VerifyAdmissionResponse):

   ========================================  ==========================  ==================================
   what                                      admission.k8s.io/v1         v1beta1
   ========================================  ==========================  ==================================
   ``response`` absent                       an error                    an error
   another ``response.uid``                  an error                    accepted
   ``apiVersion`` or ``kind`` absent         an error                    accepted
   mutating: ``patch`` without ``patchType`` an error                    is a JSONPatch
   mutating: ``patchType`` without ``patch`` an error                    accepted
   validating: ``patch`` or ``patchType``    an error                    accepted, and ignored
   ========================================  ==========================  ==================================

``allowed`` absent is a denial. An answer may be preceded by a byte order mark. (kube-apiserver reads YAML as well, and
nesting of up to 10,000 levels; here both are errors.)
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from gateway.cel.values.strconv import go_quoted
from gateway.depth import too_deep
from gateway.gotypes.places import DecodeError
from gateway.gotypes.types import read
from gateway.gotypes.values import Fraction, json_object
from gateway.review.request import API_VERSIONS, DEPTH
from gateway.review.types import KIND, OPTIONS, REVIEWS, UNVERSIONED, VERSION_AND_KIND

JSON_PATCH: Final = "JSONPatch"
"""The only patch type there is."""

_GROUP: Final = "admission.k8s.io"
_SCHEME: Final = "pkg/runtime/scheme.go:111"
_CALL: Final = "failed to call webhook"
_VERIFICATION: Final = "received invalid webhook response"
_SHOWN: Final = 200
"""Characters of an answer's text that an error quotes: a uid has 36, an apiVersion at most some 300."""


class AnswerError(Exception):
    """A webhook's answer that kube-apiserver would reject: ``str(error)`` is kube-apiserver's own message.

    The caller adds the prefix ``failed calling webhook "NAME": ``.
    """


class WebhookStatus(Struct, frozen=True, kw_only=True):
    """The metav1.Status of an answer, as sent; absent fields are zero.

    ``details`` is a metav1.StatusDetails in its JSON shape, without members that are unknown or null; None if absent.
    """

    status: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: Mapping[str, Any] | None = None


class WebhookAnswer(Struct, frozen=True, kw_only=True):
    """A verified AdmissionResponse.

    ``patch`` is the decoded base64, not yet parsed; None if it is absent, empty, or not allowed in the phase.
    ``patch_type`` goes with it: in v1 as sent, ``JSONPatch`` or not.
    """

    allowed: bool
    patch: bytes | None = None
    patch_type: str = ""
    status: WebhookStatus | None = None
    warnings: tuple[str, ...] = ()
    audit_annotations: Mapping[str, str] = {}


def read_answer(body: bytes, *, uid: str, api_version: str, mutating: bool) -> WebhookAnswer:
    """Read a webhook's answer with a 2xx status.

    Args:
        body: the whole body, whatever its Content-Type.
        uid: of the request that was sent.
        api_version: of the review that was sent, ``admission.k8s.io/v1`` or ``/v1beta1``.
        mutating: the phase.

    Raises:
        AnswerError: kube-apiserver would treat the call as failed.
    """
    if not body:
        raise AnswerError(f"{_CALL}: 0-length response")
    try:
        review = _typed(body, api_version)
    except DecodeError as error:
        raise AnswerError(f"{_CALL}: {error.go}") from None
    response = review.get("response")
    if response is None:
        raise _invalid("webhook response was absent")
    patch = response.get("patch") or None
    patch_type = response.get("patchType")
    if api_version == API_VERSIONS[0]:
        _verify_identity(review, uid)
        _verify_patch(patch, patch_type, mutating=mutating)
    else:
        # "patch type was not verified in v1beta1 ... pin to only supported version if a patch is provided."
        patch_type = JSON_PATCH if patch else None
    return WebhookAnswer(
        allowed=response.get("allowed", False),
        patch=patch if mutating else None,
        patch_type=(patch_type or "") if mutating else "",
        status=_status(response.get("status")),
        warnings=tuple(response.get("warnings", ())),
        audit_annotations=response.get("auditAnnotations", {}),
    )


def _verify_identity(review: Mapping[str, Any], uid: str) -> None:
    got = review["response"].get("uid", "")
    if got != uid:
        raise _invalid(f"expected response.uid={_quoted(uid)}, got {_quoted(got)}")
    kind = _kind_words(review.get("apiVersion", ""), review.get("kind", ""))
    expected = f"{_GROUP}/v1, Kind={KIND}"
    if kind != expected:
        raise _invalid(f"expected webhook response of {expected}, got {kind}")


def _verify_patch(patch: bytes | None, patch_type: str | None, *, mutating: bool) -> None:
    if not mutating:
        if patch:
            raise _invalid("validating webhook may not return response.patch")
        if patch_type is not None:
            raise _invalid("validating webhook may not return response.patchType")
    elif patch and patch_type is None:
        raise _invalid("webhook returned response.patch but not response.patchType")
    elif not patch and patch_type is not None:
        raise _invalid("webhook returned response.patchType but not response.patch")
    elif patch_type == "":
        raise _invalid('webhook returned invalid response.patchType of ""')


def _typed(body: bytes, api_version: str) -> dict[str, Any]:
    """The AdmissionReview of the requested version, with its known members only."""
    value = _decoded(body)
    try:
        meta = read(value, VERSION_AND_KIND) or {}
    except DecodeError as error:
        raise AnswerError(f"{_CALL}: couldn't get version/kind; json parse error: {error.go}") from None
    group_version, kind = meta.get("apiVersion", ""), meta.get("kind", "") or KIND
    if group_version.count("/") > 1:
        raise AnswerError(f"{_CALL}: unexpected GroupVersion string: {group_version[:_SHOWN]}")
    actual = _defaulted(group_version, api_version)
    if actual.endswith("/"):
        # kube-apiserver quotes the whole answer here.
        raise AnswerError(f"{_CALL}: Object 'apiVersion' is missing")
    if kind in UNVERSIONED or (kind in OPTIONS and actual in API_VERSIONS):
        raise _unconverted(f"v1.{kind}", api_version)
    if actual not in API_VERSIONS or kind != KIND:
        raise AnswerError(
            f"{_CALL}: no kind {_quoted(kind)} is registered for version {_quoted(actual)} in scheme {_quoted(_SCHEME)}"
        )
    review = read(value, REVIEWS[actual]) or {}
    if actual != api_version:
        raise _unconverted(REVIEWS[actual].go, api_version)
    return review


def _unconverted(found: str, api_version: str) -> AnswerError:
    return AnswerError(f"{_CALL}: converting ({found}) to ({REVIEWS[api_version].go}): unknown conversion")


def _decoded(body: bytes) -> Any:
    """The JSON value in a body."""
    try:
        # Go replaces invalid UTF-8 by U+FFFD, as Python does.
        text = body.decode("utf-8-sig", "replace")
        if too_deep(body, DEPTH):
            raise AnswerError(f"{_CALL}: couldn't get version/kind; json parse error: exceeded max depth of {DEPTH}")
        return json.loads(text, object_pairs_hook=json_object, parse_constant=_refused, parse_float=Fraction)
    except (ValueError, RecursionError) as error:
        raise AnswerError(f"{_CALL}: couldn't get version/kind; json parse error: {error}") from None


def _refused(constant: str) -> Any:
    raise ValueError(f"invalid character {constant[:1]!r} looking for beginning of value")


def _defaulted(group_version: str, api_version: str) -> str:
    """The apiVersion of an answer; what is absent is taken from the requested type (gvkWithDefaults)."""
    return api_version if group_version in {"", "/", f"{_GROUP}/"} else group_version.removeprefix("/")


def _kind_words(api_version: str, kind: str) -> str:
    """A GroupVersionKind as Go prints it."""
    group, _, version = api_version.rpartition("/")
    return f"{group}/{version}, Kind={kind}"[:_SHOWN]


def _status(status: Mapping[str, Any] | None) -> WebhookStatus | None:
    if status is None:
        return None
    known = ("status", "message", "reason", "code", "details")
    return WebhookStatus(**{name: status[name] for name in known if name in status})


def _invalid(message: str) -> AnswerError:
    return AnswerError(f"{_VERIFICATION}: {message}")


def _quoted(text: str) -> str:
    return go_quoted(text[:_SHOWN])
