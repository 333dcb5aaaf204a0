"""documents.md: what `check -o json`, `review -o json` and so on print, from the docstrings of what prints it."""

import ast
from pathlib import Path
from typing import Final

from docs.generator.markdown import page_of, prose
from gateway.cli import audit_document, decision_document, policy_reports
from gateway.telemetry import decision_document as decisions
from gateway.telemetry import recordings, unjudged

# `gateway.cli.check` is the command of this name; the module behind it is what is meant.
_CHECK: Final = Path("gateway") / "cli" / "check.py"
_DOCTOR: Final = Path("gateway") / "cli" / "doctor.py"

_HEAD: Final = prose("""
    # Documents that the commands print

    What ``check``, ``doctor``, ``review``, ``audit``, ``explain``, ``recordings`` and ``render`` print for programs,
    member by member. The commands: [cli.md](cli.md); how to use them:
    [operate.md](../operate.md#register-it-with-kube-apiserver) and
    [write-a-policy.md](../write-a-policy.md#try-it-without-a-cluster).
""")
_RENDER: Final = prose("""
    Two objects of ``admissionregistration.k8s.io/v1`` for ``kubectl apply -f -``: YAML documents, or with
    ``-o json`` the items of one ``v1`` ``List``. Warnings go to standard error as lines ``warning: WHO: WHAT``. Each
    field: [operate-reference.md](../operate-reference.md#what-is-registered).
""")


def page(root: Path) -> str:
    """The page's text."""
    return (
        "\n\n".join(
            [
                _HEAD,
                "## check",
                page_of(_docstring(root / _CHECK)),
                "## doctor",
                page_of(_docstring(root / _DOCTOR)),
                "## review",
                page_of(decision_document.__doc__ or ""),
                "## audit",
                page_of(audit_document.__doc__ or ""),
                page_of(policy_reports.__doc__ or ""),
                "## explain",
                page_of(decisions.__doc__ or ""),
                "## recordings",
                page_of(recordings.__doc__ or ""),
                "## unjudged admissions",
                page_of(unjudged.__doc__ or ""),
                "## render",
                _RENDER,
            ]
        )
        + "\n"
    )


def _docstring(path: Path) -> str:
    return ast.get_docstring(ast.parse(path.read_text())) or ""
