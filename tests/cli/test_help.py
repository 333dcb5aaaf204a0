"""The command's help."""

import subprocess

import click
import pytest

from gateway import __version__
from gateway.cli.main import main

COMMANDS = {(): main} | {(name,): command for name, command in main.commands.items()}


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: " ".join(path) or "admission-gateway")
@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_every_command_has_help(run, path, flag):
    """--help and -h explain each command, exit code 0."""
    done = run(*path, flag)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"Usage: {' '.join(('admission-gateway', *path))} ")


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: " ".join(path) or "admission-gateway")
def test_every_option_is_explained(path):
    """Each option that is not a limit has a help text."""
    options = [each for each in COMMANDS[path].params if isinstance(each, click.Option)]
    assert [each.name for each in options if not each.help and not each.hidden] == []
    assert all(each.name.startswith("limit_") for each in options if each.hidden)


def test_every_option_of_serve_has_its_variable():
    """Each flag of serve, every limit included, is an environment variable of the same name; perhaps of another too."""
    for option in main.commands["serve"].params:
        if option.name != "help":
            names = [option.envvar] if isinstance(option.envvar, str) else option.envvar
            assert names[0] == f"ADMISSION_GATEWAY_{option.name.upper()}"


def test_the_version(run):
    """--version names the command and its version."""
    assert run("--version").out == f"admission-gateway, version {__version__}\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_a_script(run_process, shell):
    """``completion SHELL`` prints a script that mentions the command, and for bash is one."""
    done = run_process("completion", shell)
    assert (done.code, done.err) == (0, "")
    assert "admission-gateway" in done.out
    if shell == "bash":
        assert subprocess.run(["bash", "-n"], input=done.out, text=True, check=False).returncode == 0


def test_completion_completes(run_process):
    """The script's own question is answered: the flags of serve."""
    env = {
        "_ADMISSION_GATEWAY_COMPLETE": "bash_complete",
        "COMP_WORDS": "admission-gateway serve --tls",
        "COMP_CWORD": "2",
    }
    assert run_process(env=env).out.split() == [
        "plain,--tls-cert",
        "plain,--tls-key",
        "plain,--tls-dev-dir",
        "plain,--tls-dev-name",
        "plain,--tls-secret",
    ]
