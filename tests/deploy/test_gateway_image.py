"""The gateway's image, without a container engine: its steps, and the services of docker-compose.yml that it runs."""

import http.client
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

import pytest

from deploy.demo.machine import Machine
from deploy.demo.services import read
from tests.deploy.dockerfile import ROOT, Context, bases, build, exec_form, instructions
from tests.integration.process import WAIT_SECONDS, Lines

DOCKERFILE = (ROOT / "deploy/Dockerfile").read_text()
USER = "65532:65532"


@pytest.fixture(scope="module")
def scratch():
    """A folder that every user may enter."""
    folder = Path(tempfile.mkdtemp(prefix="image-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def image(scratch):
    """``/`` of the image, as far as the gateway's own files go."""
    build(instructions(DOCKERFILE)[0], Context(ROOT), scratch)
    return scratch


@pytest.fixture
def start(image):
    """Start a program as the image's user, who may write nothing of the image: its process, and its lines."""
    started = []

    def run(*words, **env):
        process = subprocess.Popen(
            [*_as_user(), *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd="/",
            env=_environment(image) | env,
        )
        started.append((process, Lines(process.stdout)))
        return started[-1]

    yield run
    for process, lines in started:
        process.kill()
        process.wait()
        lines.all()


def _as_user():
    """The image's user, who may also read the directories of the tests' Python. The image does not need that."""
    if os.getuid() != 0 or shutil.which("setpriv") is None:
        return []
    identity = ["--reuid", "65532", "--regid", "65532", "--clear-groups"]
    return ["setpriv", *identity, "--inh-caps", "+dac_read_search", "--ambient-caps", "+dac_read_search"]


def _environment(image):
    """The image's own variables, and no others."""
    text = dict(instructions(DOCKERFILE)[1])["ENV"].replace("$PATH", os.defpath)
    pairs = dict(word.split("=", 1) for word in text.split())
    return {name: _inside(image, value) for name, value in pairs.items()}


def _inside(image, text):
    return re.sub(r"(?<![\w./])/venv\b", str(image / "venv"), text)


def test_the_requirements_have_hashes():
    """Each of them: the image installs nothing that the lock does not know."""
    text = (ROOT / "requirements/run.txt").read_text()
    pinned = re.findall(r"^[A-Za-z][^\n]*==(?:[^\n]*\\\n)+[^\n]*", text, re.MULTILINE)
    assert len(pinned) == len(re.findall(r"^[A-Za-z]", text, re.MULTILINE))
    assert all("--hash=sha256:" in each for each in pinned)


@pytest.mark.parametrize("file", ["requirements/run.txt", "gateway/cli/projects/python/requirements.txt.tmpl"])
@pytest.mark.parametrize("platform", ["x86_64-manylinux_2_28", "aarch64-manylinux_2_28"])
def test_there_are_wheels_for_both_architectures(platform, file, tmp_path):
    """Of the Python in the images of the gateway and of workers: no requirement is compiled, on amd64 or on arm64."""
    version = re.search(r"python:(\d+\.\d+)-slim", DOCKERFILE)[1]
    wanted = ("--python-version", version, "--python-platform", platform, "--only-binary", ":all:")
    command = [Path(sys.executable).parent / "uv", "pip", "install", "--dry-run", "--target", tmp_path, *wanted]
    done = subprocess.run(
        [*command, "--require-hashes", "-r", ROOT / file],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr


def test_the_image():
    """Two stages on a base with a tag; the last one runs as an unprivileged user, without a shell."""
    build, final = instructions(DOCKERFILE)
    assert all(":" in base and not base.endswith(":latest") for base in bases(DOCKERFILE))
    assert build[0][1].endswith(" AS build")
    last = dict(final)
    assert last["COPY"] == "--from=build /venv /venv"
    assert (last["USER"], last["STOPSIGNAL"], last["HEALTHCHECK"]) == (USER, "SIGTERM", "NONE")
    assert exec_form(final, "ENTRYPOINT") == ["/venv/bin/admission-gateway"]
    assert exec_form(final, "CMD") == ["serve"]


def test_the_image_has_what_runs_and_nothing_that_builds(image):
    """Gateway and SDK with their bytecode; neither pip nor the build's tools."""
    (site,) = image.glob("venv/lib/python*/site-packages")
    names = {path.name for path in site.iterdir()}
    assert {"gateway", "redis", "kubernetes_asyncio", "uvloop"} <= names
    assert not {"pip", "hatchling", "pluggy", "setuptools"} & names
    sources = [path for path in site.rglob("*.py") if "sdks" not in path.parts]
    assert all(list(path.parent.glob(f"__pycache__/{path.stem}.*.pyc")) for path in sources)


def test_the_services_of_its_image(image, start):
    """They start as docker-compose.yml says, as the image's user, and give the sample worker's verdict."""
    services = {service.name: service for service in read()}
    folder = Path(tempfile.mkdtemp(prefix="services-", dir=image))
    machine = Machine(list(services.values()), folder / "machine", venv=image / "venv")

    def run(name):
        machine.mount(services[name])
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o777) if path.is_dir() else None
        return start(*machine.argv(services[name]), **machine.environment(services[name]))

    setup, said = run("setup")
    assert setup.wait(WAIT_SECONDS) == 0, said.all()
    for name in ("redis", "queue"):
        _, said = run(name)
        assert said.find(lambda line: "Ready to accept connections" in line) is not None, said.all()
    _, said = run("worker-python")
    assert said.find(lambda line: " listens on " in line) is not None, said.all()
    gateway, lines = run("gateway-1")
    assert lines.find(lambda line: line.startswith("serving https://")) is not None, lines.all()

    address = machine.addresses["gateway-1"]
    trust = ssl.create_default_context(cafile=machine.folder / "volumes/state/tls/ca.crt")
    trust.check_hostname = False  # it is called by the balancer's name
    client = http.client.HTTPSConnection(address, 8443, context=trust, timeout=WAIT_SECONDS)
    body = (ROOT / "examples/reviews/7-pod-privileged.json").read_bytes()
    client.request("POST", "/validate", body, {"Content-Type": "application/json"})
    response = json.loads(client.getresponse().read())["response"]
    client.close()
    assert not response["allowed"]
    assert "privileged containers are not allowed" in response["status"]["message"]
    with urllib.request.urlopen(f"http://{address}:9443/readyz?verbose", timeout=WAIT_SECONDS) as page:
        assert "[+]cache ok\n" in page.read().decode()
    gateway.terminate()
    assert gateway.wait(WAIT_SECONDS) == 0
