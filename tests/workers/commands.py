"""The command of each language's workers, relative to the repository.

Python's workers run from source, the others from the output of ``make -C workers/LANG build``.
"""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PYTHON = (sys.executable, "-m")

SAMPLES = {
    "python": (*PYTHON, "admission_worker.samples"),
    "go": ("workers/go/bin/samples",),
    "node": ("node", "workers/node/samples/main.js"),
    "rust": ("workers/rust/bin/samples",),
    "java": ("java", "-jar", "workers/java/bin/samples.jar"),
}

AGNHOST = {
    "python": (*PYTHON, "admission_worker.samples.agnhost"),
    "go": ("workers/go/bin/agnhost",),
}

EXPORTING = {
    "python": (sys.executable, "tests/e2e/exporting.py"),
    "go": ("workers/go/bin/exporting",),
    "node": ("node", "workers/node/examples/exporting.js"),
    "rust": ("workers/rust/bin/exporting",),
    "java": ("java", "-jar", "workers/java/exporting/target/exporting.jar"),
}
"""Workers with OpenTelemetry's SDK and exporter, set up as each SDK's README shows."""

NEEDS = {"node": "workers/node/node_modules"}
"""Further output of a build, for workers that run from source."""


def command(commands, language):
    """The argv of a language's worker, with absolute paths; the test fails if it is not built."""
    argv = [str(ROOT / part) if part.startswith(("workers/", "tests/")) else part for part in commands[language]]
    needed = [part for part in argv if part.startswith(str(ROOT / "workers"))]
    needed += [str(ROOT / NEEDS[language])] if language in NEEDS else []
    missing = [part for part in needed if not Path(part).exists()]
    assert not missing, f"{missing[0]} is not there: build it with `make -C workers/{language} build`"
    return argv


def languages(commands, *, without=()):
    """The languages as parameters of a test: all but Python's are marked ``workers``, since they must be built."""
    return [
        pytest.param(language, marks=() if language == "python" else pytest.mark.workers)
        for language in commands
        if language not in without
    ]
