"""What it costs to start: CPU time of a command, of a TAB, and of ``serve`` until it is ready with the samples.

Each is the median of the CPU time, user and system, of the process and of those that it waits for. Of ``serve`` it is
reported twice: of the gateway's process alone, and with the sample worker in Python that it starts. Everything is
measured twice: with the bytecode of our own modules, as in an image, and without, as at the first start from a
checkout. PYTHONDONTWRITEBYTECODE in the environment changes nothing: the benchmark runs copies of the tree.

The ratio is to ``python -c 'import click, yaml'`` in the same run, which a busy machine slows down alike. With
``--against`` the benchmark alternates between this tree and another one, in the same interpreter and with the same
installed packages, and the ratio is to that tree.

Repeat it with ``make bench-startup``, or ``make bench-startup ARGS="--rounds 9 -o json"``; compare with an earlier
commit: ``git worktree add /tmp/before COMMIT; make bench-startup ARGS="--against /tmp/before"``.
"""

import argparse
import json
import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
BASE: Final = "import click, yaml"
KEPT, NONE = "bytecode kept", "no bytecode"
GATEWAY, WITH_WORKER = "serve, the gateway", "serve, with its worker"
TAB: Final = {
    "_ADMISSION_GATEWAY_COMPLETE": "bash_complete",
    "COMP_WORDS": "admission-gateway serve --tls",
    "COMP_CWORD": "2",
}
# The start waits for the worker however busy the machine is. Older trees call the flag --worker-startup-timeout.
PATIENT: Final = {"ADMISSION_GATEWAY_WORKER_STARTUP_TIMEOUT": "60", "ADMISSION_GATEWAY_WORKER_WAIT": "60"}


class Tree:
    """A copy of a tree's gateway, and of the sample policies with their worker beside them.

    A worker is started in the directory of its policies, where Python looks first for what it imports.
    """

    def __init__(self, source: Path, folder: Path, *, keeps_bytecode: bool) -> None:
        self._folder = folder
        self._keeps_bytecode = keeps_bytecode
        self.policies = folder / "policies"
        module = "gateway.cli.main" if (source / "gateway/cli/main.py").exists() else "gateway.cli"
        self._code = f"import sys; sys.argv[0] = 'admission-gateway'; from {module} import main; main()"
        without_bytecode = shutil.ignore_patterns("__pycache__")
        for part, place in (
            ("gateway", "gateway"),
            ("examples/policies", "policies"),
            ("workers/python/admission_worker", "policies/admission_worker"),
        ):
            shutil.copytree(source / part, folder / place, ignore=without_bytecode)
        self._environment = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
        if not keeps_bytecode:
            self._environment["PYTHONDONTWRITEBYTECODE"] = "1"

    def start(self, *arguments: str, env: Mapping[str, str] | None = None) -> "subprocess.Popen[str]":
        """Start the command. Workers write bytecode whatever the gateway does, so it is removed where none is kept."""
        if not self._keeps_bytecode:
            for each in self._folder.rglob("__pycache__"):
                shutil.rmtree(each)
        return subprocess.Popen(
            [sys.executable, "-c", self._code, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=self._folder,
            env={**self._environment, **(env or {})},
        )

    def ended(self, *arguments: str, env: Mapping[str, str] | None = None) -> float:
        """The CPU seconds of a command that ends by itself."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        process = self.start(*arguments, env=env)
        process.communicate()
        assert process.returncode == 0, f"{arguments} ended with {process.returncode}"
        return _seconds(resource.getrusage(resource.RUSAGE_CHILDREN)) - _seconds(before)

    def ready(self) -> tuple[float, float]:
        """The CPU seconds until serve is ready: of the gateway, and with its worker."""
        certificates = tempfile.mkdtemp(dir=self._folder)
        flags = ("--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--tls-dev-dir", certificates)
        process = self.start("serve", "--policies", str(self.policies), *flags, env=PATIENT)
        assert process.stdout is not None
        with process.stdout as lines:
            assert any(line.startswith("serving ") for line in lines), "it ended before it served"
            gateway = _used(process.pid)
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            workers = sum(_used(int(pid)) for pid in children)
            process.send_signal(signal.SIGTERM)
            lines.read()
        assert process.wait() == 0
        return gateway, gateway + workers

    def measured(self) -> dict[str, float]:
        """The CPU seconds of everything, once."""
        gateway, with_worker = self.ready()
        return {
            "--version": self.ended("--version"),
            "TAB": self.ended(env=TAB),
            "check": self.ended("check", str(self.policies)),
            GATEWAY: gateway,
            WITH_WORKER: with_worker,
        }


def _seconds(usage: resource.struct_rusage) -> float:
    return usage.ru_utime + usage.ru_stime


def _used(pid: int) -> float:
    """The CPU seconds of a process that runs: proc(5), fields 14 and 15 of its stat."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _base() -> dict[str, float]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", BASE], check=True)
    return {BASE: _seconds(resource.getrusage(resource.RUSAGE_CHILDREN)) - _seconds(before)}


def measure(sources: Mapping[str, Path], rounds: int, folder: Path) -> dict[str, dict[str, float]]:
    """The medians, in seconds, by what they are of, and what is measured.

    By turns, so that a busy moment meets all of them; after a round that does not count and leaves the bytecode.
    """
    measures: dict[str, Callable[[], dict[str, float]]] = {BASE: _base}
    for name, source in sources.items():
        for kind in (KEPT, NONE):
            copy = folder / f"{name} {kind}"
            measures[f"{name}, {kind}"] = Tree(source, copy, keeps_bytecode=kind == KEPT).measured
    found = [{name: once() for name, once in measures.items()} for _ in range(rounds + 1)][1:]
    return {
        name: {what: statistics.median(each[name][what] for each in found) for what in found[0][name]}
        for name in measures
    }


def main() -> None:
    """Measure, and report."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--against", type=Path, metavar="PATH", help="another tree, to be compared with")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")
    arguments = parser.parse_args()
    sources = {"this": ROOT} | ({"other": arguments.against.resolve()} if arguments.against else {})
    with tempfile.TemporaryDirectory() as folder:
        seconds = measure(sources, arguments.rounds, Path(folder))
    if arguments.output == "json":
        print(json.dumps(seconds, indent=2))
        return
    base = seconds.pop(BASE)[BASE]
    print(f"{BASE}: {1000 * base:.0f} ms")
    for kind in (KEPT, NONE):
        print(f"\n{kind}")
        for what, each in seconds[f"this, {kind}"].items():
            row = f"{what:<24} {1000 * each:7.0f} ms"
            if not arguments.against:
                print(f"{row}  {each / base:5.1f} times")
                continue
            other = seconds[f"other, {kind}"][what]
            print(f"{row}  of {1000 * other:7.0f} ms  {each / other:4.0%}")


if __name__ == "__main__":
    main()
