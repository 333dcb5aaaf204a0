"""Workers that are existing webhooks: nobody can ask them yet, and nobody waits for them."""

from gateway.deciding import Failure
from gateway.policies import Configuration, Phase, WebhookTarget, Worker
from gateway.reasons import Reason
from gateway.transports import Workers
from tests.world import policy


async def test_a_webhook_cannot_be_asked_yet():
    """Its policies stand as failures that say so, and the start waits for nothing, however long it may wait."""
    name = "ValidatingWebhookConfiguration/hooks/judge.test.example.com"
    judge = policy("judge", phase=Phase.VALIDATING, worker=name)
    worker = Worker(name=name, webhook=WebhookTarget(url="https://hooks.example.com"))
    workers = Workers(Configuration(workers={name: worker}, validating=(judge,)))
    try:
        await workers.start(wait_seconds=1e9)
        standing = workers.standings(Phase.VALIDATING)[judge.qualified_name]
    finally:
        await workers.close()
    assert isinstance(standing, Failure)
    assert standing.reason is Reason.CONFIGURATION
    assert "is a webhook, which this version cannot ask; write its policy as a worker, or keep" in standing.message
