"""``kill -9`` of the gateway, and its next start: nothing that it left is in the way."""

import asyncio
import os
import signal

from tests.integration.client import AsyncClient
from tests.integration.process import runs
from tests.integration.running import PODS, policy, source, until
from tests.integration.test_killed_worker import VALIDATE, WITNESS, judged_by


async def test_a_killed_gateway_starts_again_beside_what_it_left(serving, trust, tmp_path):
    """Its worker ends with it, although nobody stops it; the next one listens at the same socket, and judges."""
    about = policy("attest", worker="witness", rules=[PODS], timeoutSeconds=28)
    text = source(
        workers={"witness": {"target": "unix:witness.sock", "command": ["python", str(WITNESS)]}}, validating=[about]
    )
    (tmp_path / "policies.yaml").write_text(text)
    judges = []
    for _ in range(2):
        arguments = ("--policies", tmp_path / "policies.yaml", "--worker-startup-timeout", 30)
        process = await asyncio.to_thread(lambda given=arguments: serving(*given).ready())
        client = await AsyncClient.connect(process.port, trust)
        judges.append(judged_by(await client.send(VALIDATE)))
        await client.close()
        assert process.children() == judges[-1:]
        os.kill(process.process.pid, signal.SIGKILL)
        await until(lambda: not runs(judges[-1]))
    assert len(set(judges)) == 2
