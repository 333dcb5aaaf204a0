"""The conformance kit checks ``hook-worker`` with real hooks."""

import asyncio
from pathlib import Path

import pytest

from tests.hooks.scripts import answering, bash_hook, python_hook
from tests.integration.process import COMMAND

pytestmark = pytest.mark.workers

KIT = Path(COMMAND).parent / "admission-worker-conformance"


async def test_it_keeps_the_contract(tmp_path):
    """``hook-worker`` fails none of the kit's checks, those of its command included."""
    config = {"configVersion": "v1", "kubernetesMutating": [{"name": "other.test.example.com"}]}
    bash_hook(tmp_path, answering({"allowed": False, "message": "no"}))
    python_hook(
        tmp_path, "json.dump({'allowed': True}, open(os.environ['ADMISSION_RESPONSE_PATH'], 'w'))", config=config
    )
    process = await asyncio.create_subprocess_exec(
        *(KIT, "--probes", "--", COMMAND, "hook-worker", "--hooks-dir", tmp_path), stdout=asyncio.subprocess.PIPE
    )
    report, _ = await process.communicate()
    assert process.returncode == 0, report.decode()
    assert " 0 failed," in report.decode()
