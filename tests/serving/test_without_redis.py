"""Without Redis nothing of it is loaded; with Redis but without its client the error says what to install."""

import json
import subprocess
import sys
import textwrap

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gateway.telemetry.labels import GRPC_EVENTS, LIMIT_OF, QUEUE_EVENTS
from gateway.telemetry.table import PREFIX

pytestmark = pytest.mark.integration

SCRIPT = textwrap.dedent("""
    import asyncio, json, sys
    from pathlib import Path

    # As if they were not installed.
    sys.modules["redis"] = sys.modules["hiredis"] = None

    import gateway.cli.check, gateway.cli.main, gateway.cli.review, gateway.cli.serve
    from gateway.policies.configuration import load
    from gateway.policies.decoding.texts import SourceText
    from gateway.policies.model import Phase
    from gateway.serving.app import Gateway
    from gateway.serving.settings import Settings

    CONTENT = b'''
    apiVersion: admission-gateway.dev/v1alpha1
    kind: Worker
    metadata: {name: labels}
    spec: %s
    ---
    apiVersion: admission-gateway.dev/v1alpha1
    kind: ValidatingPolicyConfiguration
    metadata: {name: guard}
    policies:
    - name: judge.example.com
      worker: labels
      rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
      sideEffects: None
    '''

    async def main(directory, spec):
        configuration = load([SourceText(name="p.yaml", content=CONTENT % spec.encode(), directory=directory)])
        assert not configuration.errors, configuration.errors
        here = ("127.0.0.1", 0)
        settings = Settings(listen=here, admin_listen=here, tls_dev_dir=Path(directory), worker_startup_timeout=0.0)
        gateway = Gateway(configuration, settings)
        await gateway.start()
        (standing,) = gateway.workers.availabilities(Phase.VALIDATING).values()
        _, text = gateway.metrics.exposition()
        await gateway.stop(drain=False)
        loaded = [name for name, module in sys.modules.items() if module is not None]
        print(json.dumps({"modules": loaded, "standing": standing.message, "metrics": text.decode()}))

    asyncio.run(main(*sys.argv[1:]))
""")


@pytest.fixture
def served(tmp_path):
    """Makes gateways whose one worker has this ``spec``: their modules, metrics, and why the policy has no answer."""

    def serve(spec):
        arguments = [sys.executable, "-c", SCRIPT, str(tmp_path), spec]
        ended = subprocess.run(arguments, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        return json.loads(ended.stdout.splitlines()[-1])

    return serve


@pytest.mark.parametrize(
    ("arguments", "who"),
    [
        (["bridge", "--queue", "q", "--key-file", "k", "--redis", "redis://h", "--worker", "w:1"], "bridge"),
        (["serve", "--policies", "p", "--redis", "redis://h"], "--redis"),
        (["serve", "--policies", "p", "--queue-redis", "redis://h"], "--queue-redis"),
    ],
)
def test_a_command_without_the_extra(arguments, who):
    """It refuses the start, and says what to install."""
    script = "import sys; sys.modules['redis'] = None; from gateway.cli.main import main; main()"
    ended = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert f"{who} needs the extra: pip install 'admission-gateway[redis]'" in ended.stderr


def test_nothing_of_redis_is_imported(served):
    """Neither the library, nor our code that uses it, nor the queue's protobuf; and no metric has a series of it."""
    found = served("{grpc: {target: 'unix:none.sock'}}")
    packages = (
        "redis",
        "hiredis",
        "gateway.redis",
        "gateway.transports.queue",
        "gateway.transports.proto.admission.queue",
    )
    assert [name for name in found["modules"] if name.startswith(packages)] == []
    families = list(text_string_to_metric_families(found["metrics"]))
    samples = [sample for family in families for sample in family.samples]
    of_redis = tuple(f"{PREFIX}{name}" for name in ("queue_", "cache_redis_", "cache_seal_"))
    assert [sample for sample in samples if sample.name.startswith(of_redis)] == []
    values = {sample.labels.get(label) for sample in samples for label in ("event", "limit")}
    of_queues = {*QUEUE_EVENTS} - {*GRPC_EVENTS}
    assert values.isdisjoint(of_queues | {LIMIT_OF[event] for event in of_queues & LIMIT_OF.keys()})


def test_a_queue_without_the_extra(served):
    """Its policies fail, and say what to install."""
    found = served("{queue: {stream: s, keyFile: k}}")
    assert found["standing"] == (
        "worker 'labels' cannot be called: spec.queue needs the extra: pip install 'admission-gateway[redis]'"
    )
