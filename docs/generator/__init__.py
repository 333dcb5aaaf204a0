"""The pages of docs/reference, made from the source: what can be generated is not written by hand.

``python -m docs.generator`` writes them, ``python -m docs.generator --check`` says which are not as they would be
written, and a test runs the same check. A page holds nothing that depends on the machine, the terminal or the time.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from docs.generator import commands, contract, documents, limits, metrics, reasons

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = Path("docs") / "reference"
COMMAND: Final = "make docs"

_PAGES: Final[Mapping[str, tuple[Callable[[Path], str], str]]] = {
    "cli.md": (commands.page, "gateway/cli"),
    "documents.md": (documents.page, "gateway/cli/check.py, doctor.py and decision_document.py"),
    "limits.md": (limits.page, "the modules named in it"),
    "metrics.md": (metrics.page, "gateway/telemetry/table.py"),
    "reasons.md": (reasons.page, "gateway/reasons.py"),
    "proto.md": (contract.page, "proto/admission/worker/v1/worker.proto"),
}


def pages() -> dict[Path, str]:
    """The text of each page, by its path from the project's folder."""
    return {
        FOLDER / name: f"<!-- Made by `{COMMAND}` from {source}; change that, not this. -->\n\n{page(ROOT)}"
        for name, (page, source) in _PAGES.items()
    }


def drifted() -> list[Path]:
    """The pages that are missing, or not as they would be written now."""
    return [path for path, text in pages().items() if not (ROOT / path).is_file() or (ROOT / path).read_text() != text]
