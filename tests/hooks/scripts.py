"""Real hooks for tests: executable files, and checks of the processes that they start."""

import asyncio
import json
import shutil
import sys
from pathlib import Path

import pytest

from gateway.transports.limits import TransportLimits

WAIT_SECONDS = 30.0

RULES = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["pods"]}]

VALIDATING = "judge.test.example.com"
MUTATING = "change.test.example.com"

CONFIG = {
    "configVersion": "v1",
    "kubernetesValidating": [{"name": VALIDATING, "rules": RULES}],
    "kubernetesMutating": [{"name": MUTATING, "rules": RULES}],
}

needs_jq = pytest.mark.skipif(shutil.which("jq") is None, reason="shell hooks need jq, which is not installed")


def bash_hook(directory, body, *, name="hook.sh", config=CONFIG):
    """A hook in bash that prints a configuration for --config, and else runs this body."""
    text = config if isinstance(config, str) else json.dumps(config)
    return executable(
        Path(directory, name),
        f"#!/bin/bash\nif [[ \"${{1:-}}\" == --config ]]; then cat <<'END'\n{text}\nEND\nexit 0; fi\n{body}\n",
    )


def python_hook(directory, body, *, name="hook.py", config=CONFIG):
    """The same in Python."""
    head = f"#!{sys.executable}\nimport json, os, sys\nif sys.argv[1:] == ['--config']:\n"
    return executable(Path(directory, name), f"{head}    sys.exit(print(json.dumps({config!r})))\n{body}\n")


def executable(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def answering(answer):
    """The body of a hook in bash that writes this answer."""
    text = answer if isinstance(answer, str) else json.dumps(answer)
    return f"cat > \"$VALIDATING_RESPONSE_PATH\" <<'END'\n{text}\nEND"


def limits(**fields):
    """The limits of hooks in a test."""
    chosen = {
        "processes": 4,
        "waiting": 100,
        "config_seconds": WAIT_SECONDS,
        "output_bytes": 16_000_000,
        "response_bytes": 30_000_000,
    }
    chosen = {f"hook_{name}": value for name, value in (chosen | fields).items()}
    return TransportLimits(**chosen)


LIMITS = (1.0, 4.0, 16.0)
"""Time limits of a program that hangs; the next one if it had not even started within the one before."""


async def until(condition):
    """Wait until the condition is true, and return its value."""
    async with asyncio.timeout(WAIT_SECONDS):
        while not (found := condition()):  # noqa: ASYNC110 - what is waited for is outside of this process
            await asyncio.sleep(0.005)
    return found


async def pid_in(path):
    """The process id that a program writes to a file."""
    return int(await until(lambda: path.exists() and path.read_text().strip()))


async def gone(pid):
    """Wait until a process is gone and reaped."""
    await until(lambda: not Path(f"/proc/{pid}").exists())
