"""Offered load against goodput and latency, from half of the gateway's capacity to ten times of it; and the recovery.

Starts ``admission-gateway serve`` with one worker. A load generator in Go (``benchmarks/load``) sends recorded reviews
of a pod at a given rate, whether or not the answers keep up. Where the machine has two cores, the gateway has one, and
the worker and the generator have the other.

The capacity of kept connections is the rate of answers on 32 of them that always send the next review; of new ones, the
best of rates that grow. It is measured again before and after each multiple, and is the mean of both, because a machine
is never quiet for long. Between them are two seconds at half of the capacity, some at the multiple, and some at half
again.

    share      goodput / capacity: at least 0.9 on kept connections, from the capacity on
    goodput    reviews judged in a second while the load is offered; after: of those that arrived then, judged when the
               load had fallen; overloaded: answered with OVERLOADED
    late       reviews without an answer at the end of their timeout; unsent: no kept connection was free
    p50, p99   milliseconds of the reviews that were judged while the load is offered, from their arrival
    recovery   seconds, after the load has fallen, until at least 95 % of the reviews of every tenth of a second were
               judged: at most 1

As many connections are kept as the gateway accepts, so that all of them wait at three times the capacity. Exit 1 if a
row has less than it should. With ``--worker-ms`` the worker is the slower one: it takes so long for each call, one
after the other; the load is multiples of its capacity, and the recovery, which is that of its queue, is not judged.
Where other programs have the cores, the capacity is not that of the rows below it: trust a quiet machine only.
Repeat it with ``make bench-overload``, or ``make bench-overload ARGS="--mode new --multiples 3,10 -o json"``.
"""

import argparse
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from reviews import CONFIGURATION, WORKER, loads
from served import ROOT, children, start

JUDGED, OVERLOADED, FAILED, LATE, UNSENT = range(5)
"""The outcomes in the generator's slices."""

CAPACITY_CONNECTIONS = 32
GOOD = 0.95
SLICE_SECONDS = 0.1
SHARE, RECOVERY_SECONDS = 0.9, 1.0


@dataclass(frozen=True, kw_only=True)
class Row:
    """What became of one multiple of the capacity: rates a second, milliseconds, and seconds of recovery."""

    mode: str
    multiple: float
    capacity: float
    offered: float
    share: float
    goodput: float
    after: float
    overloaded: float
    late: float
    failed: float
    unsent: float
    p50: float
    p99: float
    recovery: float | None


@dataclass(frozen=True, kw_only=True)
class Generator:
    """The load generator, and what all its runs have in common."""

    program: Path
    folder: Path
    port: int
    connections: int
    timeout: float

    def run(self, mode: str, phases: str, connections: int | None = None) -> list[dict[str, Any]]:
        """Send these phases; what became of each."""
        timeout = f"{self.timeout:g}s"
        ran = subprocess.run(
            [
                *(self.program, "-address", f"127.0.0.1:{self.port}", "-ca", self.folder / "tls" / "ca.crt"),
                *("-body", self.folder / "review.json", "-path", f"/validate?timeout={timeout}", "-timeout", timeout),
                *("-mode", mode, "-connections", str(connections or self.connections), "-phases", phases),
            ],
            stdout=subprocess.PIPE,
            check=True,
            preexec_fn=lambda: pin(0, 1),
        )
        phases_: list[dict[str, Any]] = json.loads(ran.stdout)
        return phases_


def main() -> None:
    """Run the benchmark and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--multiples", default="0.5,0.8,1,1.5,2,3,5,10", help="of the capacity")
    parser.add_argument("--mode", choices=["keep", "new", "both"], default="both", help="kept connections, or new ones")
    parser.add_argument("--connections", type=int, default=2000, help="kept connections (default 2000)")
    parser.add_argument("--timeout", type=float, default=10, help="seconds that a review has (default 10)")
    parser.add_argument("--seconds", type=float, default=5, help="length of one phase (default 5)")
    parser.add_argument("--worker-ms", type=float, default=0, help="a worker that takes so long for each call")
    parser.add_argument("-o", "--output", choices=["text", "json"], default="text")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = folder / "load"
        subprocess.run(["go", "build", "-o", program, ROOT / "benchmarks" / "load" / "main.go"], check=True)
        (folder / "review.json").write_bytes(loads()[1].body)
        judge = "def judge(request):\n"
        slow = f"{judge}    import time; time.sleep({arguments.worker_ms / 1000})\n"
        worker_text = WORKER.replace(judge, slow) if arguments.worker_ms else WORKER
        gateway, port, _ = start(folder, CONFIGURATION, worker_text, "--decision-log", "none")
        try:
            pin(gateway.pid, 0)
            for worker in children(gateway.pid):
                pin(worker, 1)
            generator = Generator(
                program=program,
                folder=folder,
                port=port,
                connections=arguments.connections,
                timeout=arguments.timeout,
            )
            rows = []
            for row in measured(generator, arguments):
                rows.append(row)
                if arguments.output == "text":
                    show(row, first=len(rows) == 1)
            if arguments.output == "json":
                print(json.dumps([asdict(row) for row in rows]))
            if not all(is_good(row, recovers=not arguments.worker_ms) for row in rows):
                raise SystemExit(1)
        finally:
            gateway.terminate()
            gateway.wait(60)


def measured(generator: Generator, arguments: argparse.Namespace) -> Iterator[Row]:
    """All rows."""
    for mode in ("keep", "new") if arguments.mode == "both" else (arguments.mode,):
        generator.run("keep", "0:2", CAPACITY_CONNECTIONS)
        after = capacity_of(generator, mode)
        for multiple in map(float, arguments.multiples.split(",")):
            before = after
            low, high, seconds = before / 2, before * multiple, arguments.seconds
            phases = generator.run(mode, f"{low:.0f}:2,{high:.0f}:{seconds:g},{low:.0f}:{seconds:g}")
            after = capacity_of(generator, mode)
            yield row_of(mode, multiple, (before + after) / 2, phases)


def capacity_of(generator: Generator, mode: str) -> float:
    """Reviews a second: on kept connections that are always busy; on new ones, the best of rates that grow."""
    if mode == "keep":
        return goodput(generator.run("keep", "0:3", CAPACITY_CONNECTIONS)[0])
    return max(goodput(each) for each in generator.run("new", "200:1,400:1,600:1,800:1"))


def goodput(phase: dict[str, Any]) -> float:
    """Reviews judged in a second."""
    return float(phase["judged"] / phase["seconds"])


def row_of(mode: str, multiple: float, capacity: float, phases: list[dict[str, Any]]) -> Row:
    """The figures of a multiple of the capacity, from its three phases."""
    _, high, after = phases
    sums = [sum(each[outcome] for each in high["slices"]) / high["seconds"] for outcome in range(5)]
    return Row(
        mode=mode,
        multiple=multiple,
        capacity=capacity,
        share=goodput(high) / capacity,
        offered=high["rate"],
        goodput=goodput(high),
        after=sums[JUDGED] - goodput(high),
        overloaded=sums[OVERLOADED],
        late=sums[LATE],
        failed=sums[FAILED],
        unsent=sums[UNSENT],
        p50=high["milliseconds"].get("p50", float("nan")),
        p99=high["milliseconds"].get("p99", float("nan")),
        recovery=recovery(after["slices"]),
    )


def is_good(row: Row, *, recovers: bool) -> bool:
    """Whether a row of kept connections has the share, and if that is judged the recovery, that are asked of it."""
    if row.mode != "keep" or row.multiple < 1:
        return True
    in_time = row.recovery is not None and row.recovery <= RECOVERY_SECONDS
    return row.share >= SHARE and (in_time or not recovers)


def recovery(slices: list[list[int]]) -> float | None:
    """Seconds until every later slice was good; None: the last one was not."""
    bad = [number for number, each in enumerate(slices) if each[JUDGED] < GOOD * sum(each)]
    if not bad:
        return 0.0
    return None if bad[-1] >= len(slices) - 2 else (bad[-1] + 1) * SLICE_SECONDS


def show(row: Row, *, first: bool) -> None:
    """One row of the table."""
    names = list(asdict(row))
    if first:
        print("".join(f"{name:>11}" for name in names))
    cells = (
        "never" if value is None else value if isinstance(value, str) else f"{value:.{1 if value > 10 else 2}f}"
        for value in asdict(row).values()
    )
    print("".join(f"{cell:>11}" for cell in cells), flush=True)


def pin(pid: int, core: int) -> None:
    """Keep all threads of a process (0: this one) on one core, where there are two."""
    if (os.cpu_count() or 1) < 2:
        return
    threads = [0] if pid == 0 else [int(each.name) for each in Path(f"/proc/{pid}/task").iterdir()]
    for thread in threads:
        os.sched_setaffinity(thread, {core})


if __name__ == "__main__":
    main()
