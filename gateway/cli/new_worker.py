"""``admission-gateway new-worker``: creates a small, complete project for a worker.

It creates all files or none: it reads and checks everything first, and removes what it wrote if a later write fails.
Exit codes, for scripts:

    ====  ===============================================================================================
    0     created
    2     failed, or wrong usage: nothing is created
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
from gateway.cli.standard_streams import COULD_NOT, fail

_NAME_LENGTH: Final = 50
"""The Service has this name, and a DNS label has at most 63 characters (RFC 1035): 13 are left for a second
worker with a suffix, such as NAME-canary or NAME-development."""
_NAMESPACE_LENGTH: Final = 63
"""The maximum of a DNS-1123 label."""

_SERVICE_NAME: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")

_NEXT: Final = (
    ("make test", "build it and run its tests (the first run downloads dependencies)"),
    ("make run", "serve its policy under a gateway on this machine"),
    ("make kit", "check it against the contract"),
)


def run(lang: str, directory: Path | None, namespace: str, name: str) -> None:
    """See the command."""
    where = Path(name) if directory is None else directory
    errors = [*_errors(name, namespace)]
    # An invalid name is no directory to check.
    if not errors or directory is not None:
        errors += _directory_errors(where)
    if errors:
        fail("\nerror: ".join(errors), COULD_NOT)
    try:
        project = new_project(lang, name, namespace)
    except SdkError as error:
        fail(str(error), COULD_NOT)
    try:
        _write(project, where)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        fail(f"{error.filename or where} cannot be written: {reason}; no file of the project is left", COULD_NOT)
    for line in _reported(project, where, lang):
        click.echo(line)


def _errors(name: str, namespace: str) -> Iterator[str]:
    if len(name) > _NAME_LENGTH or not _SERVICE_NAME.fullmatch(name):
        yield (
            f"NAME: {_quoted(name)} is not a valid name for the worker's Service: must be at most {_NAME_LENGTH} "
            'characters "a" to "z", "0" to "9" and "-", begin with a letter and not end with "-" (DNS-1035), '
            f"such as {_suggestion(name)}"
        )
    if len(namespace) > _NAMESPACE_LENGTH or not _LABEL.fullmatch(namespace):
        yield (
            f"--namespace: {_quoted(namespace)} is not a valid namespace: must be at most {_NAMESPACE_LENGTH} "
            'characters "a" to "z", "0" to "9" and "-", and not begin or end with "-" (DNS-1123), such as policies'
        )


def _quoted(text: str) -> str:
    """The text in quotation marks, cut if too long, with control characters escaped."""
    return repr(text if len(text) <= 2 * _NAME_LENGTH else f"{text[: 2 * _NAME_LENGTH]}…")


def _suggestion(name: str) -> str:
    """A valid name that is similar to an invalid one."""
    letters = re.sub(r"[^a-z0-9]+", "-", name.lower()).lstrip("-0123456789")
    return letters[:_NAME_LENGTH].rstrip("-") or "replicas"


def _directory_errors(where: Path) -> Iterator[str]:
    try:
        if where.is_dir():
            found = sorted(path.name for path in where.iterdir())
            if found:
                more = f" and {len(found) - 1} more" if len(found) > 1 else ""
                yield f"{where} is not empty: it contains {found[0]}{more}; use another NAME, or a new --directory"
        elif where.exists() or where.is_symlink():
            yield f"{where} exists and is not a directory; use another NAME, or a new --directory"
    except OSError as error:
        yield f"{where} cannot be read: {error.strerror}; use another --directory"


def _write(project: Project, where: Path) -> None:
    """Write all files.

    Raises:
        OSError: one cannot be written; then those written before are removed.
    """
    created = [folder for folder in (where, *where.parents) if not folder.exists()]
    try:
        for path, content in (project.own | project.sdk).items():
            file = where / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
    except BaseException:
        # Also after Ctrl-C. The directory was empty or did not exist: all of its content was written here.
        for each in where.iterdir() if where.is_dir() else ():
            shutil.rmtree(each, ignore_errors=True) if each.is_dir() else each.unlink(missing_ok=True)
        for folder in created:
            folder.rmdir() if folder.is_dir() else None
        raise


def _reported(project: Project, where: Path, language: str) -> Iterator[str]:
    count = len(project.own)
    yield f"{where}: created {count} files of a {LANGUAGES[language]} project, {len(project.sdk)} of the SDK in sdk/"
    yield ""
    yield f"Next, in {where}:"
    for command, what in _NEXT:
        yield f"  {command:<10} {what}"
    yield "README.md describes each file, and how to deploy the worker to a cluster."
