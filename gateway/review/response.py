"""The AdmissionReview that the gateway answers, in the version of the request.

What the API server does with unusual answers, which the gateway therefore never sends:

=====================================  ==========================================  ===================================
answer                                 what kube-apiserver does                    what ``encode`` does
=====================================  ==========================================  ===================================
code below 400 on a denial             sends 400                                   sends 400 itself
code above 599                         1000 panics its request handler             sends 400
status.status "Success" on a denial    sends "Failure"                             always "Failure"
warning with a control character       drops it silently                           a space in its place
empty or repeated warning              drops it                                    drops it
warnings over 4096 runes in total      cuts each to 256, drops what still remains  cuts each, counts the missing ones
patch without operations               may count as a change (reinvocation)        sends no patch
annotation key that is no label name   drops it with a line in its own log         makes it legal, ``annotation_key``
``patch`` without ``patchType``        fails the call                              always both or neither
``patch`` while validating             fails the call                              raises ValueError: our error
=====================================  ==========================================  ===================================
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

MIN_CODE: Final = 400
MAX_CODE: Final = 599
DEFAULT_CODE: Final = 400
"""The code that kube-apiserver itself sends instead of one that is no error."""

WARNINGS_TOTAL: Final = 4096
WARNING_EACH: Final = 256
"""kube-apiserver's own limits, in runes: it cuts each text to 256 only when all of them exceed 4096."""

ANNOTATION_KEY_LENGTH: Final = 63
"""The name part of a qualified name, ``<webhook name>/<key>``."""

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
_ILLEGAL_IN_KEY: Final = re.compile(r"[^-A-Za-z0-9_.]")
_HASH_DIGITS: Final = 8


class Status(Struct, frozen=True, kw_only=True):
    """The metav1.Status of a refusal. ``details`` is a metav1.StatusDetails in its JSON shape."""

    code: int
    message: str = ""
    reason: str = ""
    details: Mapping[str, Any] | None = None


class Response(Struct, frozen=True, kw_only=True):
    """An AdmissionResponse without its uid. ``patch`` is the text of a JSON Patch, or None."""

    allowed: bool
    status: Status | None = None
    patch: bytes | None = None
    warnings: tuple[str, ...] = ()
    audit_annotations: Mapping[str, str] = {}


class _Status(msgspec.Struct, kw_only=True, omit_defaults=True):
    status: str | None = None
    message: str = ""
    reason: str = ""
    details: Mapping[str, Any] | None = None
    code: int = 0


class _Response(msgspec.Struct, kw_only=True, omit_defaults=True, rename="camel"):
    uid: str
    allowed: bool
    status: _Status | None = None
    patch: bytes | None = None
    patch_type: str | None = None
    warnings: list[str] | None = None
    audit_annotations: Mapping[str, str] | None = None


class _Review(msgspec.Struct, kw_only=True, rename="camel"):
    kind: str
    api_version: str
    response: _Response


_encoder: Final = msgspec.json.Encoder()


def encode(response: Response, *, uid: str, api_version: str, mutating: bool) -> bytes:
    """Encode the AdmissionReview that answers ``uid``, in the version of the request.

    Raises:
        ValueError: a patch in the validating phase or with a refusal: an error of the gateway.
    """
    patch = None if response.patch in {None, b"[]"} else response.patch
    if patch is not None and not (mutating and response.allowed):
        raise ValueError("a patch may only go out with an allow in the mutating phase")
    return _encoder.encode(
        _Review(
            kind="AdmissionReview",
            api_version=api_version,
            response=_Response(
                uid=uid,
                allowed=response.allowed,
                status=None if response.allowed else _status(response),
                patch=patch,  # msgspec writes bytes as base64, as Go does
                patch_type=None if patch is None else "JSONPatch",
                warnings=(clean_warnings(response.warnings) or None) if response.warnings else None,
                audit_annotations=response.audit_annotations or None,
            ),
        )
    )


def _status(response: Response) -> _Status:
    status = response.status or Status(code=DEFAULT_CODE)
    return _Status(
        status="Failure",
        message=status.message,
        reason=status.reason,
        details=status.details or None,
        code=denial_code(status.code),
    )


def denial_code(code: int) -> int:
    """The code to send for a refusal: ``code`` if it is an HTTP error, else 400 as kube-apiserver does."""
    return code if MIN_CODE <= code <= MAX_CODE else DEFAULT_CODE


def clean_warnings(warnings: Iterable[str]) -> list[str]:
    """The warnings as kube-apiserver shows them: without control characters, empty ones and duplicates, within its
    limits.
    """
    cleaned = list(dict.fromkeys(text for text in (_CONTROL.sub(" ", warning).strip() for warning in warnings) if text))
    if sum(map(len, cleaned)) <= WARNINGS_TOTAL:
        return cleaned
    cut = list(dict.fromkeys(text if len(text) <= WARNING_EACH else text[: WARNING_EACH - 1] + "…" for text in cleaned))
    kept: list[str] = []
    # The last place is reserved for the number of missing warnings.
    room = WARNINGS_TOTAL - WARNING_EACH
    for text in cut:
        if len(text) > room:
            break
        kept.append(text)
        room -= len(text)
    if len(kept) < len(cut):
        kept.append(
            f"{len(cut) - len(kept)} more warnings were left out: Kubernetes shows at most {WARNINGS_TOTAL} characters"
        )
    return kept


def annotation_key(policy: str, key: str) -> str:
    """``POLICY_key``, made legal and at most 63 characters; if characters were lost, it ends in a hash.

    Kubernetes: ``<webhook name>/<key>`` must be a qualified name; otherwise the API server drops it and only logs that.
    """
    whole = f"{policy}_{key}"
    legal = _ILLEGAL_IN_KEY.sub("-", whole).strip("-_.")
    if legal == whole and len(whole) <= ANNOTATION_KEY_LENGTH:
        return whole
    digest = hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_DIGITS]
    return f"{legal[: ANNOTATION_KEY_LENGTH - _HASH_DIGITS - 1]}-{digest}".lstrip("-")
