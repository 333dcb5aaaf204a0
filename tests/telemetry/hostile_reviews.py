"""Reviews and answers full of names that their senders choose, and what becomes of the metrics.

All of the gateway is real but the network: the handler of reviews, engine, driver, cache, meters, observers. The
workers are called in this process, and answer with whatever a worker may write.

``make cardinality`` decides a million such reviews, and fails if /metrics exceeds ``MOST_BYTES`` or has a label value
that is neither in the table nor a name of the configuration. tests/telemetry/test_cardinality.py decides fewer.
"""

import argparse
import asyncio
import json
import logging
import random
import sys
from time import monotonic
from types import SimpleNamespace

import click
import structlog
import uvloop
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from gateway.caching.cache import VerdictCache
from gateway.caching.caller import CachingCaller
from gateway.caching.limits import CacheLimits
from gateway.engine.trace_context import TraceContext
from gateway.engine.verdicts import Allow, Change, ChangeKind, Deny, Failure
from gateway.policies.configuration import load
from gateway.policies.decoding.texts import SourceText
from gateway.reasons import Reason
from gateway.serving.flow_control import OVERLOADED
from gateway.serving.loaded_configuration import LoadedConfiguration
from gateway.serving.reload_report import Report
from gateway.serving.review_handler import ReviewHandler
from gateway.telemetry.events import CONFIGURED
from gateway.telemetry.labels import WEBHOOK_EVENTS, WorkerEvent
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.process import observe_process
from gateway.telemetry.table import CLUSTER, GATEWAY, PREFIX, REDIS, WEBHOOK_PROBE
from gateway.transports.worker_channel import count_worker_event
from gateway.transports.worker_pool import WorkerPool

MOST_BYTES = 1_000_000
"""What /metrics may have after any number of reviews, with the ten policies of this configuration."""

TOGETHER = 50
"""Reviews in flight at a time."""

EVERYTHING = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"], "scope": "*"}

KNOWN = (
    *("apiVersion", "kind", "name", "namespace", "uid", "resource", "operation", "group", "version"),
    *("username", "groups", "object", "metadata", "labels", "annotations", "spec"),
)
"""Names of members: the words of senders may begin like them."""


def configuration():
    """Five policies of each phase, of two workers, with all that adds series: cache, modes, conflicts, entries."""
    api = {"apiVersion": "admission-gateway.dev/v1alpha1"}
    workers = [
        api
        | {"kind": "Worker", "metadata": {"name": name}, "spec": {"webhook": {"url": f"https://{name}.example.com/"}}}
        for name in ("first", "second")
    ]
    fields = (
        {"cache": {"ttl": "1m", "staleIfError": "1m"}},
        {"failurePolicy": "Ignore"},
        {"mode": "warn"},
        {"mode": "audit", "failurePolicy": "Ignore"},
        {"isolate": True},
    )
    policies = [
        {
            "name": f"p{number}.test.example.com",
            "worker": ("first", "second")[number % 2],
            "rules": [EVERYTHING],
            "sideEffects": "None",
        }
        | chosen
        for number, chosen in enumerate(fields)
    ]
    kinds = [
        api | {"kind": f"{kind}PolicyConfiguration", "metadata": {"name": "test"}, "policies": policies}
        for kind in ("Mutating", "Validating")
    ]
    text = "---\n".join(json.dumps(document) + "\n" for document in (*workers, *kinds))
    known = load([SourceText(name="test.yaml", content=text.encode())])
    assert not known.errors, known.errors
    return known


class HostileGateway:
    """A gateway without a network, its senders and its workers."""

    def __init__(self, seed=0):
        self.random = random.Random(seed)
        self.metrics = Metrics((*GATEWAY, *CLUSTER, *WEBHOOK_PROBE, *REDIS))
        pool = HostilePool(self)
        cache = VerdictCache(CacheLimits(), self.metrics)
        self.loaded = LoadedConfiguration(configuration(), pool, caching=lambda workers: CachingCaller(workers, cache))
        self._handler = ReviewHandler(
            SimpleNamespace(current=self.loaded), events=self.metrics, consumers=[self.metrics]
        )
        self._targets = list(self.loaded.targets.values())

    async def start(self):
        await self.loaded.start(wait_seconds=0)
        Report(self.metrics).loaded(self.loaded)

    def word(self):
        """A text that has not been seen before."""
        return f"{self.random.choice(WORDS)}{self.random.getrandbits(64):x}"

    async def review(self):
        """One review at one of the paths that there are."""
        now = monotonic()
        trace_id, span_id = self.random.getrandbits(128), self.random.getrandbits(64)
        await self._handler(
            self.random.choice(self._targets),
            self._body(),
            now,
            now + self.random.choice((10.0, 10.0, 10.0, -1.0)),
            overloaded=None if self.random.random() > 0.01 else OVERLOADED,
            trace=TraceContext(traceparent=f"00-{trace_id:032x}-{span_id:016x}-01"),
        )

    async def decide(self, reviews):
        """So many reviews, some at a time."""
        for start in range(0, reviews, TOGETHER):
            await asyncio.gather(*(self.review() for _ in range(min(TOGETHER, reviews - start))))

    def _body(self):
        word = self.word
        kind = {"group": word(), "version": word(), "kind": word()}
        resource = {"group": word(), "version": word(), "resource": word()}
        metadata = {"name": word(), "labels": {word(): word()}, "annotations": {word(): word()}}
        request = {
            "uid": word(),
            "kind": kind,
            "resource": resource,
            "subResource": word(),
            "requestKind": kind,
            "requestResource": resource,
            "name": word(),
            "namespace": word(),
            "operation": self.random.choice(("CREATE", "UPDATE", "DELETE", "CONNECT", "CREATE", word())),
            "userInfo": {"username": word(), "uid": word(), "groups": [word()], "extra": {word(): [word()]}},
            "object": {"apiVersion": word(), "kind": word(), "metadata": metadata, word(): word()},
            "dryRun": self.random.random() < 0.1,
            word(): word(),
        }
        version = self.random.choice(("v1", "v1", "v1", word()))
        review = {"apiVersion": f"admission.k8s.io/{version}", "kind": "AdmissionReview", "request": request}
        return json.dumps(review).encode()

    def answer(self, call):
        """What a worker may answer, well or badly."""
        word, reasons = self.word, tuple(Reason)
        said = {"warnings": (word(),), "audit_annotations": {word(): word()}}
        choice = self.random.randrange(6)
        if choice == 0:
            return Deny(code=self.random.randrange(1000), message=word(), reason=word(), version=word(), **said)
        if choice == 1:
            return Failure(reason=self.random.choice(reasons), message=word(), **said)
        if choice == 2 and call.policy.phase.value == "mutating":
            path = f"/metadata/labels/{word().encode().hex()}" if self.random.random() < 0.5 else f"/{word()}/{word()}"
            patch = json.dumps([{"op": "add", "path": path, "value": word()}]).encode()
            return Allow(change=Change(kind=ChangeKind.JSON_PATCH, content=patch), **said)
        return Allow(version=word() if choice == 3 else "", **said)


WORDS = ("", 'a"} 1\nx{b="', "\\", "ü", "\U0001f600", "a/b", "x" * 60, *KNOWN)
"""How names begin: some would end a label, a line or a number if they were written as they are."""


class HostilePool(WorkerPool):
    """Workers in this process."""

    def __init__(self, gateway):
        super().__init__(events=gateway.metrics)
        self._gateway = gateway

    def _create_channel(self, worker):
        return HostileWorker(worker.name, self._gateway)


class HostileWorker:
    """A webhook that answers at once, later, or not before its call is cancelled."""

    target = "https://example.com/"

    def __init__(self, name, gateway):
        self.name = name
        self._gateway = gateway
        gateway.metrics.worker_added(name, WEBHOOK_EVENTS)

    def call(self, call, answered, fits=None):
        del fits
        gateway = self._gateway
        if gateway.random.random() < 0.05:
            count_worker_event(gateway.metrics, self.name, gateway.random.choice(tuple(WorkerEvent)))
        return asyncio.get_running_loop().call_soon(answered, call, gateway.answer(call)).cancel


def strangers(metrics, loaded):
    """The label values in /metrics that are neither in the table nor names of the configuration."""
    observe_process(metrics)
    names = {
        "policy": {policy.qualified_name for policy in loaded.policies()},
        "entry": {entry or "" for _, entry in loaded.entry_names()},
        "worker": set(loaded.configuration.workers),
    }
    table = {metric.name.removesuffix("_total"): metric for metric in (*GATEWAY, *CLUSTER, *WEBHOOK_PROBE, *REDIS)}
    found = []
    for family in text_string_to_metric_families(metrics.exposition(openmetrics=True)[1].decode()):
        labels = table[family.name.removeprefix(PREFIX)].labels
        for sample in family.samples:
            for label, value in sample.labels.items():
                known = labels.get(label, ())
                allowed = names.get(label, {value}) if known is CONFIGURED else {*known, "other"}
                if label != "le" and value not in allowed:
                    found.append((sample.name, label, value))
    return found


async def main(reviews):
    """Decide, show the size after each tenth, and fail as the module's docstring says."""
    gateway = HostileGateway()
    await gateway.start()
    for tenth in range(1, 11):
        await gateway.decide(reviews // 10)
        size = {form: len(gateway.metrics.exposition(openmetrics=form)[1]) for form in (False, True)}
        series = gateway.metrics.exposition()[1].count(b"\n")
        click.echo(
            f"{reviews // 10 * tenth:>9} reviews: {size[False]} bytes, {size[True]} as OpenMetrics, {series} lines"
        )
    found = strangers(gateway.metrics, gateway.loaded)
    click.echo("\n".join(map(str, found[:20])))
    return bool(found) or max(size.values()) > MOST_BYTES


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reviews", type=int, default=1_000_000)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    sys.exit(uvloop.run(main(parser.parse_args().reviews)))
