"""Workers that are existing webhooks: they have no description, and the start does not wait for them."""

from gateway.documents.identity import verdict_identity
from gateway.engine.plan import Described
from gateway.policies.model import Configuration, Phase
from gateway.policies.workers.targets import WebhookTarget, Worker
from gateway.transports.workers import Workers
from tests.world import policy


async def test_a_webhook_can_be_called_at_once():
    """Its policies stand from the first moment, with all that is granted, and the start waits for nothing."""
    name = "ValidatingWebhookConfiguration/hooks/judge.test.example.com"
    judge = policy("judge", phase=Phase.VALIDATING, worker=name)
    worker = Worker(name=name, webhook=WebhookTarget(url="https://hooks.example.com"))
    reported = []
    workers = Workers(
        Configuration(workers={name: worker}, validating=(judge,)), changed=lambda: reported.append(len(reported))
    )
    try:
        await workers.start(wait_seconds=1e9)
        availability = workers.availabilities(Phase.VALIDATING)[judge.qualified_name]
    finally:
        await workers.close()
    assert availability == Described(
        version="webhook", identity=verdict_identity(judge, worker), timeout_failure=availability.timeout_failure
    )
    assert availability.timeout_failure.message == (
        'failed calling webhook "judge.test.example.com": failed to call webhook: '
        'Post "https://hooks.example.com/?timeout=5s": context deadline exceeded'
    )
    assert reported
