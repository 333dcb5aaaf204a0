"""The command as an operator runs it."""

import logging
import os
import subprocess
from types import SimpleNamespace

import pytest
import structlog
import uvloop
from click.testing import CliRunner

from gateway.cli.main import main
from tests.integration.fixtures import certificates, pair, serve, trust
from tests.integration.process import COMMAND, WAIT_SECONDS
from tests.integration.running import policy, source

__all__ = ["certificates", "pair", "serve", "trust"]


def pytest_asyncio_loop_factories(config, item):
    """As the tests of the whole gateway."""
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture
def run():
    """Run the command to its end in this process: its exit code, output and error output."""
    root = logging.getLogger()
    before = root.level, root.handlers[:], structlog.get_config()

    def command(*arguments, env=None):
        done = CliRunner().invoke(main, [str(word) for word in arguments], env=env, prog_name="admission-gateway")
        # Anything else would have been a traceback.
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exc_info
        return SimpleNamespace(code=done.exit_code, out=done.stdout, err=done.stderr)

    yield command
    root.level, root.handlers[:] = before[:2]
    structlog.configure(**before[2])


@pytest.fixture
def run_process():
    """The same in a process of its own."""

    def command(*arguments, env=None, cwd=None):
        done = subprocess.run(
            [COMMAND, *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=WAIT_SECONDS,
            text=True,
            env=os.environ | (env or {}),
            cwd=cwd,
        )
        assert "Traceback" not in done.stderr
        return SimpleNamespace(code=done.returncode, out=done.stdout, err=done.stderr)

    return command


@pytest.fixture
def policies(tmp_path):
    """A policy file that can be served; its worker never comes."""
    path = tmp_path / "policies.yaml"
    path.write_text(source(workers={"scripted": f"unix:{tmp_path}/w.sock"}, validating=[policy("judge")]))
    return path
