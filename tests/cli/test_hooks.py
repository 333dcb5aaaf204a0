"""The options of hooks, and shell-operator's own: their effects and their errors."""

import json
import signal
import subprocess
import time
from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner

from gateway.cli.commands.serve import serve
from tests.hooks.source.test_directory import bash, write
from tests.integration.process import COMMAND, WAIT_SECONDS

pytestmark = pytest.mark.integration

SERVICE = ("--service", "gw/gateway:8443")
CERTIFICATE = ("--tls-cert", "/ours/tls.crt", "--tls-key", "/ours/tls.key")


@pytest.fixture
def folder(tmp_path):
    """A directory with one hook."""
    bash(tmp_path / "hooks" / "hook")
    return tmp_path / "hooks"


@pytest.fixture
def settings(monkeypatch, folder):
    """The settings of ``serve --hooks-dir`` with these arguments and variables; or its error."""

    class Reached(Exception):  # noqa: N818 - no error
        pass

    def keep(configuration, settings, *_arguments, **_more):
        raise Reached(settings)

    def made(*arguments, **env):
        monkeypatch.setattr("gateway.cli.serve.Gateway", keep)
        done = CliRunner().invoke(serve, ["--hooks-dir", str(folder), *map(str, arguments)], env=env)
        if isinstance(done.exception, Reached):
            (settings,) = done.exception.args
            return settings
        raise click.ClickException(done.stderr)

    return made


# ------------------------------------------------------------------------------------------------------ the commands


def test_check_reports_the_policies_of_hooks(run, folder):
    """Like all other policies; a file that is not executable is a warning."""
    write(folder / "forgotten", "", mode=0o644)
    done = run("check", "--hooks-dir", folder, "-o", "json")
    report = json.loads(done.out)
    (entry,) = report["phases"]["validating"]["entries"]
    assert (done.code, entry["path"], entry["isolated"]) == (0, "/validate/a.example.com/a975dbeb", True)
    assert entry["policies"][0]["configuration"] == "shell-operator-hooks-hooks"
    assert "chmod +x" in report["warnings"][0]["message"]


def test_check_reports_all_errors_of_hooks(run, folder):
    """Exit code 1."""
    write(folder / "b", "#!/bin/bash\nexit 1\n")
    write(folder / "c", "#!/bin/bash\necho 'configVersion: v2'\n")
    done = run("check", "--hooks-dir", folder)
    assert done.code == 1
    assert f"{folder}/b:1: exited with status 1" in done.out
    assert f"{folder}/c --config:1: configVersion: Invalid value" in done.out


def test_the_directory_has_two_variables(run, folder):
    """shell-operator's and the gateway's."""
    for variable in ("SHELL_OPERATOR_HOOKS_DIR", "ADMISSION_GATEWAY_HOOKS_DIR"):
        assert run("check", env={variable: str(folder)}).code == 0


@pytest.mark.parametrize("command", [("check",), ("render", *SERVICE), ("review", "review.json"), ("serve",)])
def test_a_command_without_policies_and_hooks(run, command):
    """Is wrong usage that names both options."""
    done = run(*command)
    assert done.code == 2
    assert "--hooks-dir, or both" in done.err


@pytest.mark.parametrize(
    "command", [("check",), ("render", *SERVICE), ("review", "review.json"), ("serve", *CERTIFICATE)]
)
def test_a_directory_that_cannot_be_read(run, tmp_path, command):
    """Exit code 2, with the reason."""
    done = run(*command, "--hooks-dir", tmp_path / "missing")
    assert done.code == 2
    assert "missing: cannot be read: No such file or directory" in done.err


def test_an_error_of_a_hook_prevents_the_start(run, folder):
    """Exit 1: the policies are not known."""
    broken = write(folder / "b", "#!/bin/bash\nexit 1\n")
    done = run("serve", "--hooks-dir", folder, *CERTIFICATE)
    assert done.code == 1
    assert f"error: {broken}:1: exited with status 1" in done.err
    assert "its policies are not known" in done.err


def test_the_limit_of_config_is_that_of_the_option(settings, folder):
    """A hook that hangs is killed after ``--limit-hook-config-seconds``."""
    write(folder / "hanging", "#!/bin/bash\nexec sleep 1e6\n")
    with pytest.raises(click.ClickException, match=r"did not print its configuration within 0\.5 s"):
        settings(*CERTIFICATE, "--limit-hook-config-seconds", 0.5)


def test_render_registers_as_shell_operator_does(run, folder, certificates):
    """Its options name Service and CA; the port is the default one."""
    theirs = ("--namespace", "hooks", "--validating-webhook-service-name", "svc")
    done = run("render", "--hooks-dir", folder, *theirs, "--validating-webhook-ca", certificates.ca_file)
    _, validating = yaml.safe_load_all(done.out)
    (webhook,) = validating["webhooks"]
    assert (done.code, "--ca-bundle" in done.err) == (0, False)
    service = {"namespace": "hooks", "name": "svc", "path": "/validate/a.example.com/a975dbeb", "port": 443}
    assert webhook["clientConfig"]["service"] == service
    assert webhook["clientConfig"]["caBundle"]


def test_render_prefers_our_options(run, folder):
    """Where both are given."""
    done = run("render", "--hooks-dir", folder, *SERVICE, "--namespace", "hooks")
    _, validating = yaml.safe_load_all(done.out)
    assert validating["webhooks"][0]["clientConfig"]["service"]["name"] == "gateway"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--validating-webhook-service-name", "svc"), "set --namespace"),
        (("--namespace", "A"), "RFC 1123 label"),
        (("--namespace", "a", "--validating-webhook-service-name", "a.b"), "must not contain dots"),
        (("--validating-webhook-configuration-name", "A", *SERVICE), "RFC 1123 subdomain"),
    ],
)
def test_invalid_options_of_render_are_rejected(run, folder, options, expected):
    """With the reason."""
    done = run("render", "--hooks-dir", folder, *options)
    assert done.code == 2
    assert expected in " ".join(done.err.split())


@pytest.mark.parametrize("command", [("check",), ("render", *SERVICE), ("serve", *CERTIFICATE)])
def test_a_closed_terminal_leaves_no_process(tmp_path, command):
    """SIGHUP while a hook prints its configuration: exit code 2, and no process is left."""
    own = tmp_path / "own"
    write(tmp_path / "hooks" / "hook", f"#!/bin/bash\necho $$ > {own}\nexec sleep 1e6\n")
    process = subprocess.Popen(
        [COMMAND, *command, "--hooks-dir", tmp_path / "hooks"], stderr=subprocess.PIPE, text=True
    )
    wait_until(lambda: own.exists() and own.read_text().strip())
    process.send_signal(signal.SIGHUP)
    _, printed = process.communicate(timeout=WAIT_SECONDS)
    assert (process.returncode, "stopped while" in printed) == (2, True)
    wait_until(lambda: not Path(f"/proc/{own.read_text().strip()}").exists())


def wait_until(condition):
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


# ------------------------------------------------------------------------------------------------- shell-operator's


def test_without_its_options_no_default_of_shell_operator_applies(settings):
    """The gateway's own defaults do."""
    made = settings(*CERTIFICATE)
    assert made.listen == ("127.0.0.1", 8443)
    assert made.client_cas == ()
    assert made.hooks == "shell-operator-hooks-hooks"


def test_any_option_of_its_server_brings_its_defaults(settings):
    """As a Deployment that sets one of them expects."""
    made = settings(VALIDATING_WEBHOOK_SERVICE_NAME="svc")
    assert made.listen == ("0.0.0.0", 9680)  # noqa: S104 - as they are there
    assert (str(made.tls_cert), str(made.tls_key)) == ("/validating-certs/tls.crt", "/validating-certs/tls.key")


def test_its_options_and_variables_mean_the_same_here(settings):
    """Address, port, certificate, key, clients' authorities, the name of the configuration."""
    made = settings(
        "--validating-webhook-listen-port=1234",
        "--validating-webhook-server-key=/theirs/key",
        VALIDATING_WEBHOOK_LISTEN_ADDRESS="::1",
        VALIDATING_WEBHOOK_SERVER_CERT="/theirs/cert",
        VALIDATING_WEBHOOK_CLIENT_CA="/theirs/one\n/theirs/two",
        VALIDATING_WEBHOOK_CONFIGURATION_NAME="mine",
        SHELL_OPERATOR_NAMESPACE="hooks",
    )
    assert made.listen == ("::1", 1234)
    assert (str(made.tls_cert), str(made.tls_key)) == ("/theirs/cert", "/theirs/key")
    assert [str(path) for path in made.client_cas] == ["/theirs/one", "/theirs/two"]
    assert made.hooks == "mine-hooks"


def test_credentials_join_the_cas_of_shell_operator(settings, tmp_path):
    """--client-allowed-name selects among certificates of its CAs too, and other credentials are as good."""
    flags = ("--validating-webhook-client-ca=/theirs/ca", "--client-allowed-name", "a", "--client-allowed-name", "b")
    made = settings(*flags, "--bearer-token-file", tmp_path / "tokens")
    assert [str(path) for path in made.client_cas] == ["/theirs/ca"]
    assert (made.client_allowed_names, made.bearer_token_file) == (("a", "b"), tmp_path / "tokens")


def test_the_gateways_options_take_precedence(settings):
    """On the command line and in the environment."""
    made = settings(
        *CERTIFICATE,
        "--client-ca=/ours/ca",
        "--validating-webhook-listen-port=1234",
        "--validating-webhook-server-cert=/theirs/cert",
        "--validating-webhook-client-ca=/theirs/ca",
        ADMISSION_GATEWAY_LISTEN="127.0.0.1:1",
    )
    assert made.listen == ("127.0.0.1", 1)
    assert (str(made.tls_cert), str(made.tls_key)) == ("/ours/tls.crt", "/ours/tls.key")
    assert [str(path) for path in made.client_cas] == ["/ours/ca"]


def test_development_certificates_stand_in_for_the_default_ones(settings, tmp_path):
    """But not for certificates that are given."""
    assert settings("--tls-dev-dir", tmp_path / "dev", VALIDATING_WEBHOOK_LISTEN_PORT="1").tls_cert is None
    with pytest.raises(click.ClickException, match="cannot be combined with --validating-webhook-server-cert"):
        settings("--tls-dev-dir", tmp_path / "dev", VALIDATING_WEBHOOK_SERVER_CERT="/theirs/cert")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("listen-port", "65536", "65536"),
        ("listen-port", "port", "'port'"),
        ("listen-address", "a host", "'a host' is neither a host name"),
        ("failure-policy", "Maybe", "'Maybe'"),
        ("configuration-name", "-", "RFC 1123 subdomain"),
    ],
)
def test_invalid_options_are_rejected(settings, name, value, expected):
    """Whether it is an option or a variable."""
    with pytest.raises(click.ClickException, match=expected):
        settings(f"--validating-webhook-{name}={value}", *CERTIFICATE)
    with pytest.raises(click.ClickException, match=expected):
        settings(*CERTIFICATE, **{f"VALIDATING_WEBHOOK_{name.upper().replace('-', '_')}": value})


def test_a_failure_policy_without_effect_is_a_warning(run, folder):
    """As in shell-operator, hooks have Fail."""
    done = run("serve", "--hooks-dir", folder, "--validating-webhook-failure-policy", "Ignore")
    assert "failure-policy Ignore has no effect" in done.err
