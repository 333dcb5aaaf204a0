"""A new project of ``new-worker`` builds, passes its own tests and the conformance kit, and answers a gateway.

With the caches that the SDKs' own builds have filled: Cargo's target folder is theirs; Go, npm, Maven have one anyway.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from gateway.cli.commands.new_worker import LANGUAGES
from gateway.cli.main import main
from tests.workers.commands import ROOT

NAME = "team-limits"

BIN = Path(sys.executable).parent

LONGEST = 900
"""Seconds for one step. Rust takes two minutes on two cores without a cache; a loaded machine takes more."""


def make(folder, target):
    """Run a target of the project; return its output, which a failure shows."""
    variables = {
        "PYTHON": sys.executable,
        "GATEWAY": BIN / "admission-gateway",
        "KIT": f"{BIN / 'admission-worker-conformance'} --patience 30",
    }
    done = subprocess.run(
        ["make", target, *(f"{name}={value}" for name, value in variables.items())],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=LONGEST,
        env=os.environ | {"CARGO_TARGET_DIR": str(ROOT / "workers/rust/target")},
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.workers
@pytest.mark.timeout(3 * LONGEST)
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_new_project_works_as_it_is(language, tmp_path):
    """Its tests pass, its probes and its policy pass the kit, and a gateway starts and calls it."""
    folder = tmp_path / NAME
    written = CliRunner().invoke(main, ["new-worker", "--lang", language, NAME, "--directory", str(folder)])
    assert written.exit_code == 0, written.output
    make(folder, "test")
    report = make(folder, "kit")
    assert f"worker {NAME} 0.1.0 at " in report
    assert " 0 failed," in report
    # Two seconds for an answer are right in a cluster; a cold virtual machine on a loaded machine needs more.
    policies = (folder / "policies.yaml").read_text()
    assert "timeoutSeconds: 2" in policies
    (folder / "policies.yaml").write_text(policies.replace("timeoutSeconds: 2", "timeoutSeconds: 30"))
    denied = subprocess.run(
        [
            BIN / "admission-gateway",
            "review",
            "--policies",
            "policies.yaml",
            "--policies",
            "worker-dev.yaml",
            "--worker-startup-timeout",
            "120",
            "review.json",
        ],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST,
    )
    assert denied.returncode == 1, denied.stdout + denied.stderr
    assert "50 replicas exceed the limit of 20; lower spec.replicas" in denied.stdout
