"""What shows that the demo is alive: traffic is judged, Prometheus has what it scrapes, and traces arrive."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import aiohttp

from deploy.demo.processes import NotAliveError, Processes

_POLICIES = 6
"""In deploy/demo/policies, by workers in all five languages."""

_GATEWAYS = 2
_SECONDS = 90


class Alive:
    """Looks at running processes. Each check gives what it has seen, or None if that is not all yet."""

    def __init__(self, running: Processes, session: aiohttp.ClientSession) -> None:
        self._running = running
        self._session = session
        self._prometheus = f"http://{running.machine.addresses['prometheus']}:9090/api/v1"

    async def wait(self) -> list[tuple[str, str]]:
        """All checks and what they have seen; NotAliveError if one of them does not see enough."""
        checks: dict[str, Callable[[], Awaitable[str | None]]] = {
            "traffic": self.traffic,
            "targets of Prometheus": self.targets,
            "gateways": self.gateways,
            "workers": self.policies,
            "alert rules": self.rules,
            "traces": self.traces,
            "from metrics to traces": self.exemplars,
        }
        return [(name, await self._until(name, check)) for name, check in checks.items()]

    async def _until(self, name: str, check: Callable[[], Awaitable[str | None]]) -> str:
        try:
            async with asyncio.timeout(_SECONDS):
                while (seen := await check()) is None:
                    await asyncio.sleep(0.2)
        except TimeoutError:
            folder = self._running.machine.folder
            raise NotAliveError(f"{name}: not seen alive for {_SECONDS} s; see the logs in {folder}") from None
        return seen

    def outcomes(self) -> Counter[str]:
        """How many reviews were sent so far, and what came of them."""
        lines = self._running.log("traffic").read_text().splitlines()
        reports = [line for line in lines if line.startswith("{") and line.endswith("}")]
        # It counts from 0 when it is started again: the sum of what it said last each time.
        total, last = Counter[str](), Counter[str]()
        for text in reports:
            report = Counter[str](json.loads(text))
            total += last if report["sent"] < last["sent"] else Counter()
            last = report
        return total + last

    async def traffic(self) -> str | None:
        """Reviews are allowed and denied."""
        seen = self.outcomes()
        if not (seen["allowed"] and seen["denied"]):
            return None
        return ", ".join(f"{count} {name}" for name, count in seen.items())

    async def targets(self) -> str | None:
        """Prometheus scrapes all that it is configured to."""
        found = (await self._get("targets"))["activeTargets"]
        up = [each["labels"]["instance"] for each in found if each["health"] == "up"]
        return f"{len(up)} of {len(found)} up" if len(up) == len(found) > 0 else None

    async def gateways(self) -> str | None:
        """The balancer gives both of them reviews."""
        judged = await self._by("instance", 'admission_gateway_reviews_total{job="admission-gateway"}')
        return f"{len(judged)} have judged reviews" if len(judged) == _GATEWAYS else None

    async def policies(self) -> str | None:
        """Each policy was answered by its worker."""
        answered = await self._by("policy", "admission_gateway_policy_verdicts_total")
        return f"answers of all {_POLICIES} policies" if len(answered) == _POLICIES else None

    async def rules(self) -> str | None:
        """Prometheus has loaded the rules, and can evaluate them."""
        rules = [rule for group in (await self._get("rules"))["groups"] for rule in group["rules"]]
        return f"{len(rules)} loaded" if rules and not any(rule["health"] == "err" for rule in rules) else None

    async def traces(self) -> str | None:
        """The collector has passed on spans of all that export some."""
        services = Counter(name for name, _ in self._spans())
        named = {service.environment.get("OTEL_SERVICE_NAME") for service in self._running.services} - {None}
        if services.keys() < named:
            return None
        return ", ".join(f"{count} spans of {name}" for name, count in services.items())

    async def exemplars(self) -> str | None:
        """From a metric in Prometheus one comes to a trace that the collector has passed on."""
        metric = "admission_gateway_review_duration_seconds_bucket"
        now = time.time()
        found = await self._get("query_exemplars", query=metric, start=f"{now - 3600}", end=f"{now}")
        named = {exemplar["labels"]["trace_id"] for series in found for exemplar in series["exemplars"]}
        arrived = named & {trace for _, trace in self._spans()}
        return f"{len(arrived)} exemplars of metrics lead to them" if arrived else None

    def _spans(self) -> Iterator[tuple[str, str]]:
        """The spans that the collector has passed on: pairs of a service's name and a trace's id."""
        path = self._running.machine.folder / "traces.jsonl"
        for line in path.read_text().splitlines() if path.exists() else ():
            # The last line may be in the making.
            for each in json.loads(line)["resourceSpans"] if line.endswith("}") else ():
                attributes = {one["key"]: one["value"].get("stringValue") for one in each["resource"]["attributes"]}
                for scope in each["scopeSpans"]:
                    yield from ((attributes["service.name"], span["traceId"]) for span in scope["spans"])

    async def _by(self, label: str, metric: str) -> dict[str, float]:
        """The sums of a counter, by a label's values; those that are above 0."""
        found = (await self._get("query", query=f"sum by ({label}) ({metric}) > 0"))["result"]
        return {each["metric"][label]: float(each["value"][1]) for each in found}

    async def _get(self, path: str, **parameters: str) -> Any:
        async with self._session.get(f"{self._prometheus}/{path}", params=parameters) as response:
            return (await response.json())["data"]
