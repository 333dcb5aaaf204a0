"""``make audit-dependencies``: known vulnerabilities of the pinned packages, and which pins are not the newest.

Each ecosystem's own client is asked: for vulnerabilities pip-audit, govulncheck, npm audit and cargo audit, which need
the network and databases of their own; for the newest versions uv, go, npm, cargo and Maven, which ask the index that
they are configured for. What is compared are the pins of the locks, whatever is installed; of Python packages the
newest is that which requirements/*.in permits. A tool that is missing, or cannot reach what it needs, is said. Tags of
container images are not compared: no client here asks a registry for them.

==== ==============================================================================================
exit means
==== ==============================================================================================
0    every audit ran, and found nothing. Pins that are not the newest do not count
1    an audit found a vulnerability
2    none was found, but an audit could not run: what the table says of it
==== ==============================================================================================
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from deploy.dependencies.locks import CARGO, GO, MAVEN, NPM, REQUIREMENTS, ROOT, packages, requirements, versions

SECONDS: Final = 600
"""For one client: Maven resolves its own plugin first."""

FOUND, UNKNOWN = 1, 2
"""Exit codes of this command, besides 0."""


class Answer(Struct, frozen=True, kw_only=True):
    """What a client answered: its exit code and outputs; code None: it could not be started, or did not end."""

    code: int | None
    out: str = ""
    error: str = ""


Run = Callable[[tuple[str, ...], str], Answer]
"""Runs a command in a folder of the project."""


class Audit(Struct, frozen=True, kw_only=True):
    """A client that knows vulnerabilities. ``found``: its exit code if there is one."""

    name: str
    folder: str
    command: tuple[str, ...]
    found: int = 1


class Row(Struct, frozen=True, kw_only=True):
    """A line of the table of pins: a package whose newest version is another than the pinned one."""

    kind: str
    name: str
    pinned: str
    newest: str
    lock: str


AUDITS: Final = (
    *(
        Audit(
            name="pip-audit",
            folder=".",
            # Strict: else it exits with 0 if it could audit no package at all, because the index knows none of them.
            command=("pip-audit", "--strict", "--require-hashes", "--disable-pip", "-r", lock),
        )
        for lock in REQUIREMENTS
    ),
    *(
        Audit(name="govulncheck", folder=folder, command=("govulncheck", "./..."), found=3)
        for folder in (str(Path(lock).parent) for lock in GO)
    ),
    *(
        Audit(name="npm audit", folder=str(Path(lock).parent), command=("npm", "audit", "--audit-level=low"))
        for lock in NPM
    ),
    Audit(name="cargo audit", folder="workers/rust", command=("cargo", "audit")),
)
"""There is none for Maven that needs no key: its packages are compared with the newest only."""


def run(command: tuple[str, ...], folder: str) -> Answer:
    """Run a client in a folder of the project."""
    program = shutil.which(command[0], path=f"{Path(sys.executable).parent}:{_path()}")
    if program is None:
        return Answer(code=None, error=f"{command[0]} is not installed")
    try:
        done = subprocess.run(  # noqa: S603 - the clients above
            [program, *command[1:]], cwd=ROOT / folder, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Answer(code=None, error=str(error))
    return Answer(code=done.returncode, out=done.stdout, error=done.stderr)


# ------------------------------------------------------------------------------------------------ newest versions


def _pins(lock: str) -> dict[str, str]:
    """The versions in a lock, by name."""
    return versions((each.name, each.version) for each in packages() if each.lock == lock)


_COMPILE: Final = (
    *("uv", "pip", "compile", "--quiet", "--universal", "--python-version", "3.11", "--no-header"),
    *("--no-annotate", "--no-emit-index-url"),
)


def _pip(ask: Run) -> Iterator[Row]:
    """What `make lock` would make of an empty lock."""
    for lock in REQUIREMENTS:
        name = Path(lock).with_suffix(".in").name
        newest = versions(requirements(_asked(ask((*_COMPILE, name), "requirements"))))
        for package, pinned in _pins(lock).items():
            # One that is not needed any more has none.
            if (latest := newest.get(package, "none")) != pinned:
                yield Row(kind="pypi", name=package, pinned=pinned, newest=latest, lock=lock)


def _npm(ask: Run) -> Iterator[Row]:
    for lock in NPM:
        # It exits with 1 if something is not the newest.
        answer = ask(("npm", "outdated", "--json"), str(Path(lock).parent))
        found = json.loads(_asked(answer, good=(0, 1)) or "{}")
        if "error" in found:
            raise LookupError(str(found["error"].get("summary", "npm outdated failed")))
        for name, each in found.items():
            pinned = each.get("current", each["wanted"])
            if pinned != each["latest"]:
                yield Row(kind="npm", name=name, pinned=pinned, newest=each["latest"], lock=lock)


def _go(ask: Run) -> Iterator[Row]:
    form = "{{if .Update}}{{.Path}} {{.Version}} {{.Update.Version}}{{end}}"
    for lock in GO:
        pins = _pins(lock)
        for line in _asked(
            ask(("go", "list", "-e", "-m", "-u", "-mod=readonly", "-f", form, "all"), str(Path(lock).parent))
        ).splitlines():
            # Of the modules that others know, too, go.mod pins those that a build needs.
            name, pinned, newest = line.split() if line.strip() else ("", "", "")
            if name in pins:
                yield Row(kind="golang", name=name, pinned=pinned, newest=newest, lock=lock)


_CARGO: Final = re.compile(r"(?:Adding|Unchanged|Updating) (\S+) v(\S+) (?:-> v\S+ )?\(available: v([^,)\s]+)")


def _cargo(ask: Run) -> Iterator[Row]:
    for lock in CARGO:
        pins = _pins(lock)
        answer = ask(("cargo", "update", "--dry-run", "--verbose"), str(Path(lock).parent))
        _asked(answer)
        for name, pinned, newest in _CARGO.findall(answer.error):
            # What these need themselves, no lock pins: a library has no Cargo.lock.
            if name in pins:
                yield Row(kind="cargo", name=name, pinned=pinned, newest=newest, lock=lock)


_UPDATES: Final = "org.codehaus.mojo:versions-maven-plugin:2.19.1:display-dependency-updates"
"""Not plugin-updates, too: of a plugin it names the newest for each older Maven."""

_MAVEN: Final = re.compile(
    r"^\[INFO\]\s+([\w.-]+:[\w.-]+)[ .]*(?:\n\[INFO\]\s+)?\s*([\w.-]+) -> ([\w.-]+)", re.MULTILINE
)


def _maven(ask: Run) -> Iterator[Row]:
    lock = MAVEN[0]
    text = _asked(
        ask(
            (
                "mvn",
                "--batch-mode",
                "--no-transfer-progress",
                _UPDATES,
                "-DprocessDependencyManagementTransitive=false",
            ),
            str(Path(lock).parent),
        )
    )
    for name, pinned, newest in sorted(set(_MAVEN.findall(text))):
        yield Row(kind="maven", name=name, pinned=pinned, newest=newest, lock=lock)


NEWEST: Final[dict[str, Callable[[Run], Iterator[Row]]]] = {
    "uv pip compile": _pip,
    "npm outdated": _npm,
    "go list -m -u": _go,
    "cargo update --dry-run": _cargo,
    "mvn versions": _maven,
}


def _asked(answer: Answer, *, good: tuple[int, ...] = (0,)) -> str:
    """The output of a client that succeeded; raises LookupError otherwise, with why."""
    if answer.code not in good:
        raise LookupError(_why(answer))
    return answer.out


def _why(answer: Answer) -> str:
    lines = [line.strip() for line in (answer.error or answer.out).splitlines() if line.strip()]
    told = next((line for line in lines if "error" in line.lower()), lines[-1] if lines else "it said nothing")
    return told[:200] if answer.code is None else f"exit {answer.code}: {told[:200]}"


# ------------------------------------------------------------------------------------------------------ the tables


def audited(ask: Run, audits: Iterable[Audit] = AUDITS) -> tuple[list[tuple[str, str, str]], int]:
    """A line for each audit: name, folder, result; and the exit code."""
    lines, codes = [], {0}
    for audit in audits:
        answer = ask(audit.command, audit.folder)
        what = audit.command[-1] if audit.folder == "." else audit.folder
        if answer.code == 0:
            lines.append((audit.name, what, "none known"))
        elif answer.code == audit.found and _is_finding(audit, answer):
            codes.add(FOUND)
            lines.append((audit.name, what, f"VULNERABLE\n{answer.out.strip()}"))
        else:
            codes.add(UNKNOWN)
            lines.append((audit.name, what, f"not audited: {_why(answer)}"))
    return lines, FOUND if FOUND in codes else max(codes)


_FINDING: Final = {
    "pip-audit": "Found ",
    "govulncheck": "Vulnerability #",
    "npm audit": " vulnerabilit",
    "cargo audit": "RUSTSEC-",
}
"""What a client writes if it has found something: with the same exit code it says that it has no network."""


def _is_finding(audit: Audit, answer: Answer) -> bool:
    return _FINDING[audit.name] in answer.out + answer.error


def compared(ask: Run) -> tuple[list[Row], dict[str, str]]:
    """The pins that are not the newest; and why a client could not say, by its name."""
    rows: list[Row] = []
    unknown = {}
    for name, newest in NEWEST.items():
        try:
            rows += newest(ask)
        except (LookupError, ValueError) as error:
            unknown[name] = str(error)
    return rows, unknown


def table(rows: Iterable[tuple[Any, ...]]) -> str:
    """Columns, each as wide as its widest cell; what follows a line break stays as it is."""
    made = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in made) for column in range(len(made[0]) - 1)]
    return "\n".join("  ".join([*map(str.ljust, row, widths), row[-1]]) for row in made)


def main(ask: Run = run) -> int:
    """Print both tables; the exit code."""
    lines, code = audited(ask)
    print(table([("AUDIT", "OF", "VULNERABILITIES"), *lines]))
    rows, unknown = compared(ask)
    print()
    print(
        table(
            [
                ("KIND", "PACKAGE", "PINNED", "NEWEST", "LOCK"),
                *((r.kind, r.name, r.pinned, r.newest, r.lock) for r in rows),
            ]
        )
    )
    for name, why in unknown.items():
        print(f"not compared: {name}: {why}")
    if not rows and not unknown:
        print("all pins are the newest")
    return code


def _path() -> str:
    return os.environ.get("PATH", os.defpath)


if __name__ == "__main__":
    sys.exit(main())
