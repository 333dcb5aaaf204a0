"""The configuration files that docker-compose.yml mounts, each checked by the program that reads it."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from deploy.demo.machine import Machine
from deploy.demo.services import ROOT, read

SERVICES = {service.name: service for service in read()}
COLLECTOR = re.search(r"collector-contrib:(\S+)", (ROOT / "docker-compose.yml").read_text())[1]


def run(*words):
    """The output of a program that succeeds."""
    done = subprocess.run([str(word) for word in words], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    """What is mounted, in place, with names and paths of this machine."""
    machine = Machine(list(SERVICES.values()), tmp_path_factory.mktemp("demo") / "machine")
    for service in SERVICES.values():
        machine.mount(service)
    return machine


def test_haproxy_accepts_its_configuration(machine):
    """`haproxy -c`."""
    program = shutil.which("haproxy")
    assert program, "there is no haproxy: apt-get install haproxy"
    assert (
        "warning"
        not in run(program, "-c", "-f", machine.root(SERVICES["balancer"]) / "etc/haproxy/haproxy.cfg").lower()
    )


def test_the_collector_accepts_its_configuration(machine):
    """`validate`, with Jaeger and with files, of the release that the image has."""
    program, config, files = machine.argv(SERVICES["collector"])
    assert COLLECTOR in run(program, "--version")
    run(program, "validate", config)
    run("env", f"TRACES={machine.folder}/traces", program, "validate", config, files)


def test_promtool_accepts_the_configuration(machine):
    """Scrape configuration, rule files and their expressions."""
    folder = machine.root(SERVICES["prometheus"]) / "etc/prometheus"
    assert "SUCCESS" in run(ROOT / "deploy/demo/prometheus/bin/promtool", "check", "config", folder / "prometheus.yml")


def test_the_gateway_accepts_its_policies(machine):
    """`check`, without errors."""
    folder = machine.root(SERVICES["gateway-1"]) / "etc/admission-gateway"
    run(Path(machine.argv(SERVICES["gateway-1"])[0]), "check", folder)
