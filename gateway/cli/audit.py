"""``admission-gateway audit``: what the validating policies say of the objects that exist.

It lists the objects of all resources that the policies have rules about, page by page (``gateway.audit``), and judges
each by the engine and the workers of ``review``. It never calls a gateway that serves.

Exit codes, for scripts and CronJobs:

    ====  ==========================================================================================================
    0     no violation
    1     at least one object violates a policy, in whatever mode that is
    2     at least one could not be judged, or was not read, or the audit was interrupted: with --state the same command
          goes on from there
    ====  ==========================================================================================================
"""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import click
import msgspec
import uvloop

from gateway.audit.api_reader import ApiReader
from gateway.audit.auditor import Auditor, Pace
from gateway.audit.candidates import AuditPart, ListPart, UnjudgedPart
from gateway.audit.past_admissions import past_findings
from gateway.audit.results import AuditResults
from gateway.audit.state import AuditState, StateError, StateFile, audit_id
from gateway.audit.targets import audit_scope, narrowed, unauditable
from gateway.audit.unjudged_lines import NOT_JUDGED_AGAIN, UnjudgedLines, unjudged_lines
from gateway.cli.audit_document import AuditReport, audit_document
from gateway.cli.audit_text import audit_lines
from gateway.cli.configuration import loaded
from gateway.cli.hook_options import chosen_hooks, require_policies
from gateway.cli.policy_reports import policy_reports
from gateway.cli.standard_streams import COULD_NOT, fail, note
from gateway.cli.transport_options import chosen_transport_config, report_unused_hosts
from gateway.cluster.client import KubernetesClient, object_path
from gateway.cluster.errors import ApiError, KubeconfigError
from gateway.cluster.facts import ClusterFacts
from gateway.cluster.policy_objects import read_policy_objects
from gateway.policies.decoding.texts import SourceText
from gateway.policies.model import Configuration
from gateway.serving.loaded_configuration import LoadedConfiguration
from gateway.sources.files import SourceError
from gateway.sources.watching import Source
from gateway.telemetry.events import NoEvents
from gateway.telemetry.logs import configure_logs
from gateway.transports.transport_config import TransportConfig
from gateway.transports.worker_pool import WorkerPool

VIOLATIONS: Final = 1

_NAMESPACES_SECONDS: Final = 5.0
"""How long the audit waits for the list of namespaces: 10,000 take one second. Without it, they are looked up one by
one."""


def run(policies: tuple[Path, ...], **values: Any) -> None:
    """See the command."""
    transport_config, hooks = chosen_transport_config(values), chosen_hooks(values)
    if not values["cluster_policies"]:
        require_policies(policies, hooks, "--policies")
    stop_logs = configure_logs(level=values["log_level"], form="text")
    try:
        texts = Source(policies, hooks).read() if policies or hooks is not None else ()
        # Before the loop: standard input may block, and a signal must end that.
        unjudged = None if values["unjudged_from"] is None else _read_unjudged(values["unjudged_from"])
        code = uvloop.run(_AuditRun(texts, unjudged, transport_config, values).run())
    except (SourceError, KubeconfigError, ApiError, StateError) as error:
        fail(str(error), COULD_NOT)
    except (KeyboardInterrupt, asyncio.CancelledError):
        kept = "the same command goes on from there" if values["state"] else "with --state it could go on from there"
        fail(f"interrupted; {kept}", COULD_NOT)
    finally:
        stop_logs()
    sys.exit(code)


def _read_unjudged(path: Path) -> UnjudgedLines:
    try:
        if str(path) == "-":
            return unjudged_lines(sys.stdin.buffer)
        with path.open("rb") as lines:
            return unjudged_lines(lines)
    except OSError as error:
        raise SourceError(f"--unjudged-from {path}: {error.strerror}") from None


class _AuditRun:
    """One run of the command."""

    def __init__(
        self,
        texts: Sequence[SourceText],
        unjudged: UnjudgedLines | None,
        transport_config: TransportConfig,
        values: dict[str, Any],
    ) -> None:
        self._texts = tuple(texts)
        self._unjudged = unjudged
        self._transport_config = transport_config
        self._values = values
        self._state_file = StateFile(values["state"])

    async def run(self) -> int:
        """Audit, and print the report; returns the exit code."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine of a loop that runs
        for number in (signal.SIGTERM, signal.SIGHUP):
            # A closed terminal sends SIGHUP: without this, workers and hooks that were started here would continue.
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        client = KubernetesClient(self._values["kubeconfig"])
        await client.connect()
        try:
            return await self._audit(client)
        finally:
            await client.close()

    async def _audit(self, client: KubernetesClient) -> int:
        reader = ApiReader(client)
        if self._values["cluster_policies"]:
            self._texts += await read_policy_objects(client)
        configuration = self._narrowed(loaded(self._texts, unknown=COULD_NOT))
        report_unused_hosts(configuration, self._transport_config)
        served, problems = await reader.served_resources()
        scope = audit_scope(configuration.validating, served)
        parts: list[AuditPart] = []
        if self._unjudged is None:
            excluded = frozenset(self._values["exclude_namespace"])
            places = self._values["namespace"] or ("",)
            targets = [each for each in scope.targets if places == ("",) or each.resource.namespaced]
            parts += [ListPart(target=each, namespace=name, excluded=excluded) for each in targets for name in places]
        else:
            audited = {each.qualified_name: each for each in configuration.validating if not unauditable(each)}
            chosen = set(self._values["namespace"])
            objects = [each for each in self._unjudged.objects if not chosen or each.namespace in chosen]
            resources = {each.resource: each for each in served}
            unjudged = UnjudgedPart(objects=objects, served=resources, policies=audited, targets=scope.targets)
            parts.append(unjudged)
        state = await self._begin(reader, configuration)
        progress = _Progress(state, len(parts))
        async with self._configuration(client, configuration) as started:
            auditor = Auditor(
                started,
                reader=reader,
                pace=Pace(self._values["rate"]),
                state=state,
                save=self._state_file.write,
                progress=progress,
            )
            results = await auditor.run(parts)
            progress.end()
        for problem in problems:
            results.not_audited(problem)
        if self._unjudged is not None:
            self._add_past(configuration, results)
        kept = configuration.validating
        unjudged_by = {each.qualified_name: why for each in kept if (why := unauditable(each))}
        report = AuditReport(
            results=results,
            policies=kept,
            excluded=scope.excluded if self._unjudged is None else unjudged_by,
            started=state.started,
            ended=_now(),
            narrowed=any(self._values[name] for name in ("policy", "namespace", "unjudged_from")),
        )
        self._print(report)
        self._state_file.remove()
        return COULD_NOT if not report.complete else VIOLATIONS if report.results.totals().violations else 0

    def _add_past(self, configuration: Configuration, results: AuditResults) -> None:
        """What the log has besides objects."""
        assert self._unjudged is not None  # noqa: S101 - the caller has looked
        for why, number in self._unjudged.skipped.items():
            results.skip(why, number)
            if why in NOT_JUDGED_AGAIN:
                results.not_audited(f"{number} lines of the log: {why}")
        chosen = set(self._values["namespace"])
        past = [each for each in self._unjudged.past if not chosen or each.namespace in chosen]
        for finding in past_findings(past, {each.qualified_name for each in configuration.validating}):
            results.found(finding)

    def _narrowed(self, configuration: Configuration) -> Configuration:
        try:
            return narrowed(configuration, self._values["policy"])
        except ValueError as error:
            raise click.UsageError(f"--policy {error}; check prints them") from None

    async def _begin(self, reader: ApiReader, configuration: Configuration) -> AuditState:
        """The state to go on from: what is kept of this audit, else a new one."""
        uid = await _cluster_uid(reader)
        flags = [*self._values["policy"], "", *self._values["namespace"], "", *self._values["exclude_namespace"]]
        objects = () if self._unjudged is None else (msgspec.json.encode(each) for each in self._unjudged.objects)
        audit = audit_id(
            (each.content for each in self._texts),
            (each.qualified_name.encode() for each in configuration.validating),
            (each.encode() for each in (uid, *flags)),
            objects,
        )
        kept = self._state_file.read()
        if kept is not None and kept.audit == audit:
            note(f"going on with the audit of {kept.started}: {len(kept.done)} parts are done")
            return kept
        if kept is not None:
            note(f"the audit in {self._values['state']} is of other policies, flags or cluster: beginning anew")
        return AuditState(audit=audit, started=_now())

    @asynccontextmanager
    async def _configuration(
        self, client: KubernetesClient, configuration: Configuration
    ) -> AsyncIterator[LoadedConfiguration]:
        """The loaded configuration, with the cluster's namespaces; at the end, its workers are closed."""
        facts = ClusterFacts(client, NoEvents())
        watching = asyncio.create_task(facts.run())
        pool = WorkerPool(config=self._transport_config)
        started = LoadedConfiguration(configuration, pool, facts=facts)
        try:
            try:
                async with asyncio.timeout(_NAMESPACES_SECONDS):
                    await facts.synced()
            except TimeoutError:
                note(f"the labels of namespaces are not known at once: {facts.note}", fg="yellow")
            await started.start(wait_seconds=self._values["worker_startup_timeout"])
            yield started
        finally:
            await started.close()
            await pool.close()
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    def _print(self, report: AuditReport) -> None:
        output = self._values["output"]
        if output == "json":
            click.echo(audit_document(report))
        elif output == "policyreport":
            click.echo(policy_reports(report), nl=False)
        else:
            for line in audit_lines(report):
                click.echo(line)
        if output != "text":
            for why in report.results.incomplete:
                note(f"error: not audited: {why}", fg="red")


async def _cluster_uid(reader: ApiReader) -> str:
    """The uid of kube-system, by which clusters are told apart; "" if it may not be read."""
    try:
        found = await reader.object(object_path("", "v1", "namespaces", "kube-system"))
    except ApiError:
        return ""
    return "" if found is None else str(found["metadata"].get("uid", ""))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


class _Progress:
    """A line on a terminal that is written again; nothing elsewhere."""

    def __init__(self, state: AuditState, parts: int) -> None:
        self._state = state
        self._parts = parts
        self._shown = sys.stderr.isatty()

    def __call__(self, part: str) -> None:
        if self._shown:
            objects = self._state.results.objects + self._state.current.objects
            done = f"{len(self._state.done)} of {self._parts} resources, {objects} objects; now {part}"
            click.echo(f"\r\x1b[2K{done[:110]}", nl=False, err=True)

    def end(self) -> None:
        """Remove the line."""
        if self._shown:
            click.echo("\r\x1b[2K", nl=False, err=True)
