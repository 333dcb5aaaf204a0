"""The table of the fault matrix: printed at the end of a run, and written to .run: faults.md, or faults-e2e.md."""

from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parents[2] / ".run"
_PROPERTY = "cell of the fault matrix"


class Cell(NamedTuple):
    """A link, its transport and its fault; what became of the reviews by failurePolicy, and how often they were sent
    until all were judged again.
    """

    link: str
    transport: str
    fault: str
    fail: str
    ignore: str
    attempts: int
    left: str


def cell(link, transport, fault, results):
    """A cell that was as expected. ``results``: of each repetition the outcomes by failurePolicy, and the attempts."""
    outcomes = (
        " or ".join(sorted({str(each) for found, _ in results for each in found[failure_policy]}))
        for failure_policy in ("Fail", "Ignore")
    )
    attempts = max(attempts for _, attempts in results)
    # Plain values: they are sent from process to process.
    return _PROPERTY, [str(link), str(transport), str(fault), *outcomes, attempts, "nothing"]


def summarize(terminal):
    """Print and write the cells of all reports."""
    rows = [
        (Cell(*value), report.outcome, report.nodeid)
        for reports in terminal.stats.values()
        for report in reports
        for name, value in getattr(report, "user_properties", ())
        if name == _PROPERTY and report.when == "call"
    ]
    if not rows:
        return
    is_e2e = rows[0][2].startswith("tests/e2e/")
    head = ("Link", "Transport", "Fault", "Fail", "Ignore", "Sent until judged again", "Left behind", "Result")
    table = [head, *([*map(str, each), outcome] for each, outcome, _ in sorted(rows))]
    widths = [max(len(row[column]) for row in table) for column in range(len(head))]
    table.insert(1, ["-" * width for width in widths])
    lines = [
        "| " + " | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) + " |" for row in table
    ]
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / ("faults-e2e.md" if is_e2e else "faults.md")).write_text("\n".join(lines) + "\n")
    terminal.section(f"fault matrix: {len(rows)} cells, each with both failure policies")
    for line in lines:
        terminal.write_line(line)
