"""What a command imports: a shell that completes a word starts it once for each TAB."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.cli.main import main
from tests.authorities import Authority

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
CODE = """
import sys
before = set(sys.modules)
sys.argv[0] = "admission-gateway"
from gateway.cli.main import main
try:
    main()
except SystemExit:
    pass
print(*set(sys.modules) - before, file=sys.stderr)
"""

SLOW = {"asyncio", "concurrent", "email", "http", "json", "logging", "multiprocessing", "socket", "ssl", "unittest"}
"""Packages of the standard library that take as long to import as click does, or bring others that do."""


def imported(*arguments, env=None):
    """The modules that the command has imported when it ends, in an interpreter of its own."""
    done = subprocess.run(
        [sys.executable, "-c", CODE, *map(str, arguments)],
        capture_output=True,
        check=True,
        text=True,
        env=os.environ | (env or {}),
    )
    return set(done.stderr.splitlines()[-1].split())


def packages(modules):
    """Those of these modules that cost time: packages that have to be installed, and slow ones of Python's own."""
    tops = {name.partition(".")[0] for name in modules if not name.startswith("_")}
    return (tops - sys.stdlib_module_names) | tops & SLOW


def completion(words):
    """The variables by which bash requests completions of these words."""
    return {
        "_ADMISSION_GATEWAY_COMPLETE": "bash_complete",
        "COMP_WORDS": f"admission-gateway {words}",
        "COMP_CWORD": str(len(words.split(" "))),
    }


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["serve", "--help"]])
def test_words_about_the_command_need_click_alone(arguments):
    """--version and --help import nothing that has to be installed, click excepted."""
    assert packages(imported(*arguments)) == {"click", "gateway"}


@pytest.mark.parametrize("command", [["check"], ["render", "--url", "https://gateway"]])
def test_reading_policies_needs_yaml_besides(command):
    """No CEL without a condition, no cryptography without a caBundle, no client or server of anything."""
    modules = imported(*command, ROOT / "examples/policies")
    assert packages(modules) <= {"click", "cython_runtime", "gateway", "json", "msgspec", "typing_extensions", "yaml"}
    assert not any(name.startswith(("gateway.cel.parser", "gateway.cel.libraries")) for name in modules)


@pytest.mark.parametrize("words", ["", *(f"{name} --" for name in main.commands)])
def test_completion_needs_click_alone(words):
    """The names of commands, and the options of each, are completed without anything else that has to be installed."""
    assert packages(imported(env=completion(words))) == {"click", "gateway"}


def test_serve_loads_what_a_configuration_needs():
    """Hooks, webhooks, queues and conditions are loaded with the first that a configuration has."""
    code = "import sys, gateway.cli.serve; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout.split()
    late = ("gateway.cel.parser", "gateway.cel.libraries", "gateway.hooks.execution", "gateway.hooks.source")
    late += ("gateway.hooks.transport.worker",)
    late += ("gateway.transports.queue.worker", "redis", "re2", "aiohttp.web_app", "zoneinfo")
    assert [name for name in modules if name.startswith(late)] == []
    # Of webhooks no more than what the options may hold.
    webhook = {name for name in modules if name.startswith("gateway.transports.webhook.")}
    assert webhook == {"gateway.transports.webhook.client_credentials"}


def test_serve_does_not_read_the_systems_authorities_for_clients_that_it_has_not(tmp_path):
    """aiohttp's default contexts trust no certificate: a call that names no context fails; other contexts read them."""
    authority = Authority("the system's").pem
    file = tmp_path / "authorities.pem"
    file.write_bytes(authority)
    code = """
import ssl
import gateway.cli.serve
from aiohttp import connector
default = connector._SSL_CONTEXT_VERIFIED
print(len(default.get_ca_certs()), default.verify_mode.name, len(ssl.create_default_context().get_ca_certs()))
"""
    environment = os.environ | {"SSL_CERT_FILE": str(file)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True, env=environment)
    assert done.stdout.split() == ["0", "CERT_REQUIRED", "1"]


def test_serve_formats_no_rich_text(tmp_path):
    """structlog imports rich where it is installed, for tracebacks that the log does not have."""
    modules = imported("serve", "--policies", tmp_path / "missing", "--tls-dev-dir", tmp_path)
    assert "structlog" in modules
    assert packages(modules) & {"rich", "pygments"} == set()


def test_no_garbage_is_looked_for_while_serve_is_imported(tmp_path):
    """Modules stay. A start that fails leaves the collector as it was."""
    code = """
import gc, traceback
from gateway.cli.main import main
importing = []
gc.callbacks.append(lambda *_: importing.extend(each for each in traceback.extract_stack() if "importlib" in each[0]))
try:
    main(["serve", "--policies", "missing", "--tls-dev-dir", "."])
except SystemExit as error:
    print(error.code, len(importing), gc.get_threshold() == (700, 10, 10))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True, cwd=tmp_path)
    assert done.stdout.split() == ["2", "0", "True"]
