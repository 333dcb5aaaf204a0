"""What it costs to start: CPU time of a command, of a TAB, and of ``serve`` until it is ready with the samples.

Each is told as a ratio to ``python -c 'import click, yaml'`` in the same run, which a busy machine slows down alike.
They are medians of the CPU time, user and system, of the process and of those that it waits for. Of ``serve`` it is
told twice: of the gateway's process alone, and with the sample worker in Python that it starts.

Repeat it with ``make bench-startup``, or ``make bench-startup ARGS="--rounds 9 -o json"``.
"""

import argparse
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
POLICIES: Final = ROOT / "examples" / "policies"
COMMAND: Final = str(Path(sys.executable).parent / "admission-gateway")
BASE: Final = (sys.executable, "-c", "import click, yaml")
TAB: Final = {
    "_ADMISSION_GATEWAY_COMPLETE": "bash_complete",
    "COMP_WORDS": "admission-gateway serve --tls",
    "COMP_CWORD": "2",
}


def ended(*command: str, env: Mapping[str, str] | None = None) -> float:
    """The CPU seconds of a command that ends by itself."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ | (env or {}))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def used(pid: int) -> float:
    """The CPU seconds of a process that runs: proc(5), fields 14 and 15 of its stat."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ready() -> tuple[float, float]:
    """The CPU seconds until serve is ready: of the gateway, and with its worker."""
    with tempfile.TemporaryDirectory() as folder:
        flags = ("--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--worker-wait", "60")
        process = subprocess.Popen(
            [COMMAND, "serve", "--policies", str(POLICIES), "--tls-dev-dir", folder, *flags],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert process.stdout is not None
        with process.stdout as lines:
            assert any(line.startswith("serving ") for line in lines), "it ended before it served"
            gateway = used(process.pid)
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            workers = sum(used(int(pid)) for pid in children)
            process.send_signal(signal.SIGTERM)
            lines.read()
        assert process.wait() == 0
    return gateway, gateway + workers


def main() -> None:
    """Measure, and tell."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")
    arguments = parser.parse_args()
    commands: dict[str, Callable[[], float]] = {
        "import click, yaml": lambda: ended(*BASE),
        "--version": lambda: ended(COMMAND, "--version"),
        "TAB": lambda: ended(COMMAND, env=TAB),
        "check": lambda: ended(COMMAND, "check", str(POLICIES)),
    }
    # By turns, so that a busy moment meets all of them.
    rounds = [({name: measure() for name, measure in commands.items()}, ready()) for _ in range(arguments.rounds)]
    seconds = {name: statistics.median(each[0][name] for each in rounds) for name in commands}
    seconds["serve, the gateway"] = statistics.median(each[1][0] for each in rounds)
    seconds["serve, with its worker"] = statistics.median(each[1][1] for each in rounds)
    base = seconds["import click, yaml"]
    if arguments.output == "json":
        print(json.dumps({name: {"seconds": each, "ratio": each / base} for name, each in seconds.items()}, indent=2))
        return
    for name, each in seconds.items():
        print(f"{name:<24} {1000 * each:7.0f} ms  {each / base:5.1f}")


if __name__ == "__main__":
    main()
