"""Prometheus and promtool, of the distribution's package ``prometheus``: `make deploy-checks` installs it."""

import os
import shutil
import subprocess

import pytest


def program(name):
    """The path of a program of the package. Without it the test is skipped, but in CI it fails."""
    found = shutil.which(name)
    if found is None:
        reason = f"there is no {name}: apt-get install prometheus"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    return found


def promtool(*arguments):
    """What promtool prints; the test fails with it if that is an error."""
    done = subprocess.run([program("promtool"), *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
