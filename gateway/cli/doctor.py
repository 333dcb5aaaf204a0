"""``admission-gateway doctor``: what registering the policies would make impossible, and what stays possible.

As JSON it is one document, ``apiVersion: admission-gateway.dev/doctor/v1alpha1``, ``kind: LockoutReport``; within a
version, members may be added, but none is removed or changes its meaning:

=============================  ====================================================================================
member                         value
=============================  ====================================================================================
refused                        true: a finding has the severity ``refuse``
findings                       a list of {severity, code, message, remedy, webhook, path, policies, requests}, those
                               that refuse first
…findings[].severity           ``refuse``: the cluster or the gateway may not come back by itself; ``warn``
…findings[].code               lockout, possible-lockout, dependency-cycle, slow, wide-rules, other-webhook; with a
                               cluster also service, certificate, permission, version
…findings[].remedy             {text, flag, patch}: in words; flags of ``render``, or ""; YAML for the policy, or ""
…findings[].webhook, path      KIND/CONFIGURATION/WEBHOOK and its rule, such as ``webhooks[0].rules[1]``; both "" where
                               no rule is the cause
…findings[].policies           the policies behind it, as CONFIGURATION/NAME
…findings[].requests           the requests at stake
promised, blocked              lists of requests that succeed, or may not, while no gateway answers
a request                      {operation, group, version, resource, subResource, namespace, name, user, about}: of
                               ``user``, about a component such as "cluster DNS"; the namespace ``default`` stands for
                               any, if ``about`` is events or a new namespace
notChecked                     what was not checked, and why: a list of texts
=============================  ====================================================================================
"""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from gateway.cli.configuration import counted, report_errors
from gateway.cli.registrar import loaded_registration
from gateway.cli.standard_streams import COULD_NOT, fail, note
from gateway.lockout.examination import Examination
from gateway.lockout.findings import Finding, Severity
from gateway.lockout.probes import Probe
from gateway.lockout.registration import examine_registration
from gateway.policies.model import Configuration
from gateway.registration.webhook_configurations import Registrar, Registration

if TYPE_CHECKING:
    from gateway.cluster.doctor import Findings
    from gateway.lockout.registration import ClusterState

REFUSED: Final = 1
"""The exit code if a finding refuses."""

_API_VERSION: Final = "admission-gateway.dev/doctor/v1alpha1"
_KIND: Final = "LockoutReport"

_COLOURS: Final = {Severity.REFUSE: "red", Severity.WARN: "yellow"}

_OFFLINE: Final = (
    "the cluster: labels of namespaces other than their names, webhooks of others, the Service, its certificate and "
    "permissions; set --kubeconfig, or in a Pod --cluster"
)


def run(paths: tuple[Path, ...], output: str, *, force: bool, **values: Any) -> None:
    """See the command."""
    chosen = loaded_registration(paths, values, flag="--policies", require_sound=_require_sound)
    registrar, registration = chosen.registrar, chosen.registration
    hosts = _redis_hosts(values["redis"])
    if values["cluster"] or values["kubeconfig"]:
        state, found = _cluster(values["kubeconfig"], registrar, registration)
        not_checked = tuple(found.not_checked)
        about_cluster = tuple(found.findings)
    else:
        state, not_checked, about_cluster = None, (_OFFLINE,), ()
    examination = examine_registration(
        chosen.configuration, chosen.entries, registration, registrar, redis_hosts=hosts, cluster=state
    ).with_findings(about_cluster)
    if output == "json":
        click.echo(json.dumps(_document(examination, not_checked), indent=2, ensure_ascii=False))
    else:
        _report(examination, not_checked)
    if examination.refused and not force:
        sys.exit(REFUSED)
    if examination.refused:
        note(
            "FORCED: registering these policies can lock the cluster, and --force says to register them all the same; "
            "way out: docs/break-glass.md",
            fg="red",
        )


def finding_lines(finding: Finding) -> Iterator[str]:
    """A finding as text: where, what, and what to do."""
    where = f"{finding.webhook} {finding.path}".strip()
    yield f"{finding.code.value}{f': {where}' if where else ''}"
    if finding.policies:
        yield f"    of {', '.join(finding.policies)}"
    yield f"    {finding.message}"
    flag = f": render {finding.remedy.flag}" if finding.remedy.flag else ""
    yield f"    remedy: {finding.remedy.text}{flag}"
    if finding.remedy.patch and not flag:
        yield from (f"        {line}" for line in finding.remedy.patch.splitlines())


def _require_sound(configuration: Configuration) -> None:
    # Warnings are those of ``check``.
    report_errors(configuration.errors)
    if configuration.errors:
        fail(f"the configuration has {counted(len(configuration.errors))}: it would not be registered", COULD_NOT)


def _cluster(
    kubeconfig: Path | None, registrar: Registrar, registration: Registration
) -> "tuple[ClusterState, Findings]":
    import asyncio  # noqa: PLC0415 - with a cluster only

    from gateway.cluster.client import KubernetesClient  # noqa: PLC0415 - see there
    from gateway.cluster.doctor import read_cluster  # noqa: PLC0415 - see there
    from gateway.cluster.errors import ApiError, KubeconfigError  # noqa: PLC0415 - see there

    webhooks = [webhook for each in registration.objects for webhook in each["webhooks"]]
    fails_closed = any(webhook["failurePolicy"] == "Fail" for webhook in webhooks)

    async def read() -> "tuple[ClusterState, Findings]":
        client = KubernetesClient(kubeconfig)
        await client.connect()
        try:
            return await read_cluster(client, registrar, fails_closed=fails_closed, is_inside=kubeconfig is None)
        finally:
            await client.close()

    try:
        return asyncio.run(read())
    except (KubeconfigError, ApiError) as error:
        fail(str(error), COULD_NOT)


def _redis_hosts(url: str | None) -> tuple[str, ...]:
    if not url:
        return ()
    from gateway.redis.addresses import redis_address  # noqa: PLC0415 - only with Redis

    try:
        return tuple(host for host, _ in redis_address(url).hosts)
    except ValueError as error:
        fail(f"--redis: {error}", COULD_NOT)


def _document(examination: Examination, not_checked: Sequence[str]) -> dict[str, Any]:
    return {
        "apiVersion": _API_VERSION,
        "kind": _KIND,
        "refused": examination.refused,
        "findings": [_finding(each) for each in examination.findings],
        "promised": [_request(each) for each in examination.promised],
        "blocked": [_request(each) for each in examination.blocked],
        "notChecked": list(not_checked),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "severity": finding.severity.value,
        "code": finding.code.value,
        "message": finding.message,
        "remedy": {"text": finding.remedy.text, "flag": finding.remedy.flag, "patch": finding.remedy.patch},
        "webhook": finding.webhook,
        "path": finding.path,
        "policies": finding.policies,
        "requests": [_request(each) for each in finding.requests],
    }


def _request(probe: Probe) -> dict[str, Any]:
    return {
        "operation": probe.operation,
        "group": probe.resource.group,
        "version": probe.resource.version,
        "resource": probe.resource.resource,
        "subResource": probe.sub_resource,
        "namespace": probe.namespace if probe.namespace and probe.resource.resource != "namespaces" else "",
        "name": probe.name,
        "user": probe.user.username,
        "about": probe.what,
    }


def _report(examination: Examination, not_checked: Sequence[str]) -> None:
    for finding in examination.findings:
        first, *others = finding_lines(finding)
        click.secho(f"{finding.severity.value}: {first}", fg=_COLOURS[finding.severity], bold=True)
        for line in others:
            click.echo(line)
    blocked = {probe.what for probe in examination.blocked}
    # What is blocked in part is not promised as a whole.
    promised = dict.fromkeys(probe.what for probe in examination.promised if probe.what not in blocked)
    click.secho("While no gateway answers, these stay possible:", bold=True)
    click.echo(f"    {', '.join(promised) or 'none of the requests that a cluster needs'}")
    for each in not_checked:
        click.echo(f"Not checked: {each}")
