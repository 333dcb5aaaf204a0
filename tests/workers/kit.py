"""The conformance kit against the sample workers of all languages: ``python -m tests.workers.kit [LANGUAGE ...]``.

The kit starts each worker with its probe policies, so it may skip no check. Exit code 0: all checks passed in
all languages; 1: one failed or was skipped, or a worker is not built.
"""

import argparse
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.workers.commands import ROOT, SAMPLES, command

WAIT_SECONDS = "30"
"""Seconds per wait: three times the kit's own, for a machine that builds and tests other things meanwhile."""

FEWEST = 140
"""The fewest checks of a whole run, so that a check cannot get lost."""


def main() -> int:
    """Run the kit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("languages", nargs="*", metavar="LANGUAGE", help="default: all")
    chosen = parser.parse_args().languages or list(SAMPLES)
    print(
        "running the conformance kit, two languages at a time (most of it is waiting for keepalive pings) ...",
        flush=True,
    )
    with ThreadPoolExecutor(2) as pool:
        passed = list(pool.map(passes, chosen))
    return 0 if all(passed) else 1


def passes(language: str) -> bool:
    """Whether a language's sample worker passes; prints a line, and the failed checks."""
    argv = command(SAMPLES, language)
    kit = [Path(sys.executable).parent / "admission-worker-conformance", "--probes", "--samples", "-o", "json"]
    run = subprocess.run(
        [*kit, "--patience", WAIT_SECONDS, "--", *argv], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False
    )
    if run.returncode not in {0, 1}:
        print(f"{language}: the kit could not run (exit code {run.returncode})")
        return False
    report = json.loads(run.stdout)
    checks = report["checks"]
    bad = [check for check in checks if check["outcome"] != "passed"]
    lines = [f"{language:8}{len(checks) - len(bad):3} of {len(checks)} checks passed"]
    lines += [json.dumps(check, indent=2, ensure_ascii=False) for check in bad]
    if len(checks) < FEWEST:
        lines.append(f"{language}: only {len(checks)} checks, expected {FEWEST} or more")
    print("\n".join(lines), flush=True)
    return not bad and len(checks) >= FEWEST


if __name__ == "__main__":
    sys.exit(main())
