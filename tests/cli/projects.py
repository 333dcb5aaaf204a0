"""Projects of ``new-worker``, for tests."""

from click.testing import CliRunner

from gateway.cli.main import main

NAME = "team-limits"


def made(language, folder, *more):
    """Write a project into a folder; returns the command's output."""
    done = CliRunner().invoke(main, ["new-worker", "--lang", language, NAME, "--directory", str(folder), *more])
    assert done.exit_code == 0, done.output
    return done.stdout


def contents(folder):
    """All files of a folder: bytes by path."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }
