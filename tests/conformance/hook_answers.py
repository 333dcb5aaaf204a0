"""Cases of what a hook leaves in its answer file, and what shell-operator reads in it: ``parsed``, or ``error``.

An error's text is the decoder's own, and goes to shell-operator's log only: that there is one counts.
"""

from typing import Any

from gateway.hooks.protocol.answers import AnswerError, read_answer
from tests.conformance.cases import Case, Result, same

KIND = "hook_answer"


def recognizes(case: Case) -> bool:
    """Whether this is such a case."""
    return case.has("file") and (case.has("parsed") or case.has("error"))


def run(case: Case) -> Result:
    """Read it."""
    got: dict[str, Any]
    try:
        answer = read_answer(case.get("file", str).encode())
    except AnswerError as error:
        got = {"error": str(error)}
    else:
        got = {
            "parsed": {
                "allowed": answer.allowed,
                "message": answer.message,
                "patch": answer.patch.decode(),
                "warnings": list(answer.warnings) or None,
            }
        }
    if case.has("error"):
        return Result(expected={"error": case.get("error", str)}, got=got, agrees="error" in got)
    expected = {"parsed": case.get("parsed", dict)}
    return Result(expected=expected, got=got, agrees=same(expected, got))
