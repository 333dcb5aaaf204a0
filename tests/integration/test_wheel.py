"""The wheel works alone: each command runs with nothing installed but it and the requirements in its metadata."""

import importlib.metadata
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import urllib.request
import venv
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from packaging.requirements import Requirement

from gateway import __version__
from gateway.cli.commands.new_worker import LANGUAGES
from gateway.cli.main import main
from tests.hooks.source.test_directory import bash
from tests.integration.process import WAIT_SECONDS, Lines

ROOT = Path(__file__).parents[2]
SITE = Path(sysconfig.get_path("purelib"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (built,) = folder.glob("*.whl")
    return built


def requirements(wheel):
    """The distributions that its metadata requires without extras, and what those require."""
    with zipfile.ZipFile(wheel) as archive:
        metadata = archive.read(f"admission_gateway-{__version__}.dist-info/METADATA").decode()
    wanted = [(Requirement(line), "") for line in re.findall(r"^Requires-Dist: (.*)$", metadata, re.MULTILINE)]
    found = {}
    while wanted:
        requirement, extra = wanted.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        distribution = importlib.metadata.distribution(requirement.name)
        assert requirement.specifier.contains(distribution.version), requirement
        known = found.setdefault(requirement.name.lower(), (distribution, set()))[1]
        new = {"", *requirement.extras} - known
        known |= new
        wanted += [(Requirement(line), extra) for extra in new for line in distribution.requires or ()]
    return [distribution for distribution, _ in found.values()]


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    """The environment: its folder of scripts. What is installed here already is linked, so that no index is called."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for distribution in requirements(wheel):
        for name in {Path(str(path)).parts[0] for path in distribution.files} - {"..", "__pycache__"}:
            if not (site / name).exists():
                (site / name).symlink_to(SITE / name)
    install = ["-m", "pip", "--python", str(folder), "install", "--quiet", "--no-index", "--no-deps", str(wheel)]
    subprocess.run([sys.executable, *install], check=True, capture_output=True, timeout=120)
    return folder / "bin"


@pytest.fixture
def clean(tmp_path):
    """Variables of a process that knows nothing of the environment in which the tests run."""
    return {"PATH": os.defpath, "HOME": str(tmp_path), "LANG": "C.UTF-8"}


@pytest.fixture
def run(environment, clean, tmp_path):
    """Run the command to its end, in an empty folder."""

    def command(*arguments, code=0, env=None):
        done = subprocess.run(
            [environment / "admission-gateway", *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=WAIT_SECONDS,
            text=True,
            cwd=tmp_path,
            env=clean | (env or {}),
        )
        assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stdout + done.stderr
        return SimpleNamespace(out=done.stdout, err=done.stderr)

    return command


@pytest.fixture
def examples(environment):
    """The examples that came with the wheel."""
    (folder,) = environment.parent.glob("lib/python*/site-packages/gateway/cli/examples")
    return folder


@pytest.fixture
def start(environment, clean, tmp_path):
    """Start the command, and go on: its process, and the lines of its output and error output."""
    started = []

    def command(*arguments):
        process = subprocess.Popen(
            [environment / "admission-gateway", *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=tmp_path,
            env=clean,
        )
        started.append((process, Lines(process.stdout)))
        return started[-1]

    yield command
    for process, lines in started:
        process.kill()
        process.wait()
        lines.all()


def test_nothing_comes_from_the_checkout(environment, clean):
    """Gateway and SDK are those of the wheel."""
    code = "import gateway, admission_worker; print(gateway.__file__); print(admission_worker.__file__)"
    done = subprocess.run(
        [environment / "python", "-c", code], capture_output=True, check=True, text=True, cwd=environment, env=clean
    )
    assert all(line.startswith(str(environment.parent)) for line in done.stdout.splitlines())


@pytest.mark.parametrize("name", main.commands)
def test_each_command_has_help(run, name):
    """What a command imports to say what it does is there."""
    assert f"Usage: admission-gateway {name} " in run(name, "--help").out


def test_the_version(run):
    """It is the checkout's."""
    assert run("--version").out == f"admission-gateway, version {__version__}\n"


def test_a_regular_expression_is_accepted(run, tmp_path):
    """In a condition, with a time zone: RE2 and the zones are in the metadata."""
    (tmp_path / "policies.yaml").write_text("""
apiVersion: admission-gateway.dev/v1alpha1
kind: Worker
metadata: {name: w}
spec: {grpc: {target: "unix:w.sock"}}
---
apiVersion: admission-gateway.dev/v1alpha1
kind: ValidatingPolicyConfiguration
metadata: {name: c}
policies:
- name: p.example.com
  worker: w
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]
  sideEffects: None
  matchConditions:
  - {name: regex, expression: "object.metadata.name.matches('^a+$')"}
  - {name: zone, expression: "timestamp('2026-01-01T00:00:00Z').getHours('Europe/Berlin') == 1"}
""")
    assert run("check", tmp_path / "policies.yaml").out.startswith("0 errors, ")


def test_check_and_render_the_examples(run, examples):
    """The packaged examples have no errors, and can be registered."""
    assert run("check", examples / "policies").out.startswith("0 errors, ")
    assert (
        "kind: ValidatingWebhookConfiguration" in run("render", "--url", "https://gateway", examples / "policies").out
    )


def test_review_an_example(run, examples):
    """The sample worker is started from the wheel, and denies."""
    review = examples / "reviews/7-pod-privileged.json"
    assert (
        "privileged containers are not allowed"
        in run(
            "review", "--policies", examples / "policies", "--worker-startup-timeout", WAIT_SECONDS, review, code=1
        ).out
    )


def test_the_demonstration(run):
    """It ends by itself with exit code 0, without a checkout."""
    listen = {"ADMISSION_GATEWAY_LISTEN": "127.0.0.1:0", "ADMISSION_GATEWAY_ADMIN_LISTEN": "127.0.0.1:0"}
    assert "no-privileged" in run("demo", "--once", env=listen).out


def test_serve_the_examples(start, examples, tmp_path):
    """It serves, its dashboard too, and drains at SIGTERM."""
    listen = ("--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--tls-dev-dir", tmp_path / "tls")
    process, lines = start("serve", "--policies", examples / "policies", *listen, "--shutdown-delay", "0")
    serving = lines.find(lambda line: line.startswith("serving https://"))
    assert serving is not None
    admin = re.search(r"http://[\d.:]+", serving).group()
    for file in ("", "main.js", "vendor/uplot/uPlot.esm.js"):
        with urllib.request.urlopen(f"{admin}/ui/{file}", timeout=WAIT_SECONDS) as page:  # noqa: S310 - our own gateway
            assert page.status == 200
    process.send_signal(signal.SIGTERM)
    assert process.wait(WAIT_SECONDS) == 0


def test_hook_worker_serves_a_hook(start, tmp_path):
    """The SDK that it is made with is in the wheel."""
    bash(tmp_path / "hooks/hook")
    process, lines = start("hook-worker", "--hooks-dir", tmp_path / "hooks", "--listen", f"unix:{tmp_path}/w.sock")
    assert lines.find(lambda line: "w.sock" in line) is not None
    process.send_signal(signal.SIGTERM)
    assert process.wait(WAIT_SECONDS) == 0


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_project_can_be_begun(run, tmp_path, language):
    """In each language, with the SDK's sources."""
    run("new-worker", "--lang", language, "replicas")
    assert (tmp_path / "replicas/sdk/README.md").is_file()
    shutil.rmtree(tmp_path / "replicas")


def test_texts_for_shells(run):
    """Completion, and the library that hooks source."""
    assert "_ADMISSION_GATEWAY_COMPLETE" in run("completion", "bash").out
    assert "hook::run" in run("shell-lib").out


def test_what_reaches_for_others_says_that_they_are_not_there(run, tmp_path):
    """``purge`` without a gateway: exit code 2, no traceback."""
    run("purge", "--admin", "http://127.0.0.1:1", "c/p", code=2)


def test_an_extra_that_is_missing_is_named(run, examples, tmp_path):
    """Redis is optional: ``bridge`` and ``serve --redis`` say how it is had."""
    keys = tmp_path / "queue.keys"
    keys.write_text("MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=")
    redis = ("--redis", "redis://127.0.0.1:1")
    target = ("--worker", f"unix:{tmp_path}/w.sock")
    extra = "pip install 'admission-gateway[redis]'"
    assert extra in run("bridge", "--key-file", keys, "--queue", "q", *redis, *target, code=2).err
    serve = ("serve", "--policies", examples / "policies", "--tls-dev-dir", tmp_path / "tls")
    assert extra in run(*serve, *redis, "--seal-key-file", keys, code=2).err
