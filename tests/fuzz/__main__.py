"""Runs fuzz targets: ``python -m tests.fuzz`` all of them, each with a bounded number of inputs, always the same ones;
``python -m tests.fuzz entry --runs 1000000 --seed 7`` one of them, with as many inputs as are asked for.

Each target runs in a process of its own, two at a time. The corpus that a run has found is in ``.run/fuzz/TARGET``; a
run by name goes on with it. An input that breaks the invariant is left there too, and named.
"""

import argparse
import asyncio
import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
RUNS = {
    "entry": 100_000,
    "policies": 500,
    "hooks": 1_500,
    "cel": 5_000,
    "worker_answers": 2_500,
    "webhook_answers": 5_000,
    "redis_answers": 4_000,
    "review": 10_000,
    "patches": 10_000,
}
"""The targets, and how many inputs each gets in CI: the entry about 90 s of CPU, each of the others about 20."""

INPUT_SECONDS = 20
"""After which an input counts as a hang: no target needs more than milliseconds for one."""

MEMORY_MEGABYTES = 2048
LONGEST_REPORT = 6000
FOUND = "=== Uncaught Python exception"
"""Where the report of a finding begins, in what libFuzzer prints."""


async def main() -> int:
    """Exit 1: an input broke an invariant."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", choices=[[], *RUNS], help="which; all of them without")
    parser.add_argument("--runs", type=int, default=0, help="inputs of each target; 0: as in CI")
    parser.add_argument("--seed", type=int, default=1, help="of the random numbers; 0: another one each time")
    options = parser.parse_args()
    at_once = asyncio.Semaphore(os.cpu_count() or 1)
    named = bool(options.targets)

    async def one(target: str) -> int:
        async with at_once:
            return await fuzz(target, options.runs or RUNS[target], options.seed, keep=named)

    return max(await asyncio.gather(*map(one, options.targets or RUNS)))


async def fuzz(target: str, runs: int, seed: int, *, keep: bool) -> int:
    """Run one target; print its inputs, seconds and, if it failed, what libFuzzer says."""
    folder = ROOT / ".run" / "fuzz" / target
    found, corpus = folder / "found", folder / ("corpus" if keep else f"corpus-{os.getpid()}")
    for each in (found, corpus):
        each.mkdir(parents=True, exist_ok=True)
    flags = [f"-runs={runs}", f"-artifact_prefix={found}/", f"-timeout={INPUT_SECONDS}"]
    flags += [f"-seed={seed}"] if seed else []
    flags += [f"-rss_limit_mb={MEMORY_MEGABYTES}", "-print_final_stats=1", str(corpus)]
    started = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.fuzz.process", target, *flags),
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output = (await process.communicate())[0].decode(errors="replace")
    seconds = time.monotonic() - started
    stats = dict(line.split(": ", 1) for line in output.splitlines() if line.startswith("stat::"))
    count = stats.get("stat::number_of_executed_units", "?").strip()
    if not keep:
        for each in corpus.iterdir():
            each.unlink()
        corpus.rmdir()
    if process.returncode == 0:
        print(f"{target}: {count} inputs in {seconds:.0f} s, no finding", flush=True)
        return 0
    report = output[max(output.find(FOUND), len(output) - LONGEST_REPORT) :]
    print(f"{target}: FAILED after {count} inputs, {seconds:.0f} s\n{report}", flush=True)
    print(f"The input is in {found}. Copy it to tests/fuzz/regressions/{target}/NAME, and `make test` replays it.")
    return 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
