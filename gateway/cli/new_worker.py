"""``admission-gateway new-worker``: a complete little project to begin a worker with.

It is written whole or not at all: everything is read and checked first, and what was begun is taken away if the disk
refuses the rest. Exit codes, for scripts:

    ====  ===============================================================================================
    0     written
    2     could not, or wrong usage: nothing is written
    ====  ===============================================================================================
"""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from gateway.cli.commands.new_worker import LANGUAGES
from gateway.cli.new_project import Project, new_project
from gateway.cli.sdk_sources import SdkError
from gateway.cli.streams import COULD_NOT, fail

_NAME_LENGTH: Final = 50
"""The Service has this name, and a DNS label has at most 63 characters (RFC 1035): 13 are left for whoever runs another
one beside it, such as NAME-canary or NAME-development."""
_NAMESPACE_LENGTH: Final = 63
"""A DNS-1123 label's."""

_SERVICE_NAME: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")

_NEXT: Final = (
    ("make test", "build it and run its tests (the first time it fetches what it needs)"),
    ("make run", "serve its policy under a gateway on this machine"),
    ("make kit", "check it against the contract"),
)


def run(lang: str, directory: Path | None, namespace: str, name: str) -> None:
    """See the command."""
    where = Path(name) if directory is None else directory
    errors = [*_errors(name, namespace)]
    # A wrong name is no place to look at.
    if not errors or directory is not None:
        errors += _occupied(where)
    if errors:
        fail("\nadmission-gateway: ".join(errors), COULD_NOT)
    try:
        project = new_project(lang, name, namespace)
    except SdkError as error:
        fail(str(error), COULD_NOT)
    try:
        _write(project, where)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        fail(f"{error.filename or where} cannot be written: {reason}; nothing is left of the project", COULD_NOT)
    for line in _reported(project, where, lang):
        click.echo(line)


def _errors(name: str, namespace: str) -> Iterator[str]:
    if len(name) > _NAME_LENGTH or not _SERVICE_NAME.fullmatch(name):
        yield (
            f"NAME: {_quoted(name)} cannot be a worker's name here, for its Service gets it: at most {_NAME_LENGTH} "
            'characters "a" to "z", "0" to "9" and "-", beginning with a letter and not ending with "-" (DNS-1035), '
            f"such as {_suggestion(name)}"
        )
    if len(namespace) > _NAMESPACE_LENGTH or not _LABEL.fullmatch(namespace):
        yield (
            f"--namespace: {_quoted(namespace)} cannot be a namespace: at most {_NAMESPACE_LENGTH} "
            'characters "a" to "z", "0" to "9" and "-", not beginning or ending with "-" (DNS-1123), such as policies'
        )


def _quoted(text: str) -> str:
    """As it was given, cut where it is absurd, without what would control a terminal."""
    return repr(text if len(text) <= 2 * _NAME_LENGTH else f"{text[: 2 * _NAME_LENGTH]}…")


def _suggestion(name: str) -> str:
    """A name that can be used and is near to the one that cannot."""
    letters = re.sub(r"[^a-z0-9]+", "-", name.lower()).lstrip("-0123456789")
    return letters[:_NAME_LENGTH].rstrip("-") or "replicas"


def _occupied(where: Path) -> Iterator[str]:
    try:
        if where.is_dir():
            found = sorted(path.name for path in where.iterdir())
            if found:
                more = f" and {len(found) - 1} more" if len(found) > 1 else ""
                yield f"{where} is not empty: it holds {found[0]}{more}; give another NAME, or a new --directory"
        elif where.exists() or where.is_symlink():
            yield f"{where} is there, and no directory; give another NAME, or a new --directory"
    except OSError as error:
        yield f"{where} cannot be looked at: {error.strerror}; give a --directory that can"


def _write(project: Project, where: Path) -> None:
    """Write all of it.

    Raises:
        OSError: it cannot be written; then what was begun is taken away again.
    """
    begun = [folder for folder in (where, *where.parents) if not folder.exists()]
    try:
        for path, content in (project.own | project.sdk).items():
            file = where / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
    except BaseException:
        # Ctrl-C as well. The directory was empty or was not there: what is in it is ours.
        for ours in where.iterdir() if where.is_dir() else ():
            shutil.rmtree(ours, ignore_errors=True) if ours.is_dir() else ours.unlink(missing_ok=True)
        for folder in begun:
            folder.rmdir() if folder.is_dir() else None
        raise


def _reported(project: Project, where: Path, language: str) -> Iterator[str]:
    count = len(project.own)
    yield f"{where}: {count} files of a {LANGUAGES[language]} project, and the SDK's {len(project.sdk)} in sdk/"
    yield ""
    yield f"Next, in {where}:"
    for command, what in _NEXT:
        yield f"  {command:<10} {what}"
    yield "README.md says what each file is for, and how it gets into a cluster."
