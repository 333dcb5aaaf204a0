"""Cases of one JSON Patch each, in two formats: what kube-apiserver's library makes of it, and the public suite.

The first has ``doc`` and ``patch`` as JSON texts, ``kubernetes`` (ok or error), ``observed``, and ``rfc6902``: that is
what the standard says. An existing webhook's patch is read as the library reads it, a worker's as the standard has it:
both are compared. Where the standard leaves it open, only the first is.
"""

import json
from typing import Any

import msgspec

from gateway.patching.application import PatchDialect, apply_json_patch
from gateway.patching.errors import PatchError
from tests.conformance.cases import Case, CaseError, Result, member, same

KIND = "patch"
_DECIDED = ("ok", "error")


def recognizes(case: Case) -> bool:
    """Whether this is such a case, in either format."""
    return case.has("doc", "patch")


def run(case: Case) -> Result:
    """Apply."""
    return _of_the_library(case) if case.has("kubernetes") else _of_the_suite(case)


def _of_the_library(case: Case) -> Result:
    document, patch = case.get("doc", str).encode(), case.get("patch", str).encode()
    observed = case.get("observed", dict, {})
    expected = {"kubernetes": case.get("kubernetes", str)}
    if "output" in observed:
        expected["output"] = _decoded(member(observed, "output", str))
    got = _applied(msgspec.Raw(document), patch, PatchDialect.KUBERNETES, "kubernetes")
    agrees = expected["kubernetes"] == got["kubernetes"] and same(expected.get("output"), got.get("output"))
    if (standard := case.get("rfc6902", str, "")) in _DECIDED:
        expected["rfc6902"] = standard
        got["rfc6902"] = _applied(_decoded(document), patch, PatchDialect.RFC_6902, "rfc6902")["rfc6902"]
        agrees = agrees and standard == got["rfc6902"]
    return Result(expected=expected, got=got, agrees=agrees)


def _of_the_suite(case: Case) -> Result:
    patch = json.dumps(case.get("patch", list)).encode()
    got = _applied(case.members["doc"], patch, PatchDialect.RFC_6902, "rfc6902")
    if case.has("error"):
        expected: dict[str, Any] = {"rfc6902": "error"}
        return Result(expected=expected, got=got, agrees=got["rfc6902"] == "error")
    # Cases without an outcome are there to be applied, no more.
    expected = {"rfc6902": "ok"} | ({"output": case.members["expected"]} if case.has("expected") else {})
    agrees = got["rfc6902"] == "ok" and (not case.has("expected") or same(expected["output"], got["output"]))
    return Result(expected=expected, got=got, agrees=agrees)


def _applied(document: Any, patch: bytes, dialect: PatchDialect, name: str) -> dict[str, Any]:
    try:
        return {name: "ok", "output": apply_json_patch(document, patch, dialect=dialect)}
    except PatchError as error:
        return {name: "error", "error": str(error)}


def _decoded(text: str | bytes) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise CaseError(f"not JSON: {error}") from None
