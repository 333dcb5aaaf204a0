"""``admission-gateway check``: report the errors of a configuration, and explain it.

The report, including all errors, goes to the standard output. As JSON it is one document, ``apiVersion:
admission-gateway.dev/check/v1alpha1``, ``kind: ConfigurationCheck``; within a version, members may be added, but none
is removed or changes its meaning:

=============================  ====================================================================================
member                         value
=============================  ====================================================================================
valid                          true: no errors
fatal                          true: the policies are not known; such a configuration is never served, and
                               ``phases`` is null
errors, warnings               lists of {file, line, path, message, hint}: line from 1, Kubernetes' field path ("" for
                               the file as a whole) and Kubernetes' message; hint is what was probably meant, or
                               the place of the first of two duplicates, else ""
phases.mutating,               {calls, worstSeconds, waitSeconds, entries}: how many webhooks are registered; how
phases.validating              long their policies may take by their own timeouts, and how long the API server
                               waits, for one request and each entry called once (mutating: the sum, validating: the
                               largest). An entry under IfNeeded may be called a second time.
…entries[]                     {name, path, isolated, policies, failurePolicy, matchPolicy, reinvocationPolicy,
                               sideEffects, enforcing, rules, worstSeconds, timeoutSeconds, apart}: as registered,
                               before exclusions; reinvocationPolicy is null in the validating phase
…entries[].policies[]          {configuration, index, name, worker, policy, mode, timeoutSeconds, inputs, writes,
                               cache, onConflict, shadow, fault}: inputs and writes are sorted lists of JSON
                               Pointers, null where the policy names none; cache is null or {ttlSeconds,
                               staleIfErrorSeconds}; writes and onConflict are null in the validating phase; shadow is
                               null or {worker, policy}, and null if it has an error; fault is null, or the error of
                               the policy, with which each call fails
…entries[].apart               null, or why it is not one entry with an earlier one: {policy, other, field, value,
                               otherValue, resource, operation}: policies as CONFIGURATION/NAME; resource and
                               operation are "" unless field is "rules"
idle                           the policies without rules, which are never called: CONFIGURATION/NAME
workers                        null without --with-workers; else {name, reached, why, versions, policies, unused} of
                               each worker that describes itself (all but webhooks, and those whose command does not
                               exist, which is an error): why it was not reached, else ""; the policies that it has,
                               and those that the configuration does not use
=============================  ====================================================================================
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from msgspec.structs import replace

from gateway.cli.hook_options import chosen_hooks, require_policies
from gateway.cli.named_files import command_errors, file_warnings
from gateway.cli.standard_streams import COULD_NOT, WRONG_CONFIGURATION, fail
from gateway.gotypes.meta import group_version
from gateway.policies.errors import ConfigurationError
from gateway.policies.field_errors import few, one_line
from gateway.policies.model import Cache, Configuration, Phase, Policy, Rule, Scope
from gateway.registration.entries import Entries, Entry, make_entries
from gateway.registration.grouping import Difference
from gateway.scopes.pointer import format_pointer
from gateway.scopes.pointer_set import PointerSet
from gateway.sources.files import SourceError
from gateway.sources.loading import load_configuration

if TYPE_CHECKING:
    from gateway.transports.verification import WorkerReport

_API_VERSION: Final = "admission-gateway.dev/check/v1alpha1"
_KIND: Final = "ConfigurationCheck"

_HOW: Final = {Phase.MUTATING: "one after another", Phase.VALIDATING: "in parallel"}


def run(paths: tuple[Path, ...], output: str, *, with_workers: bool, **values: Any) -> None:
    """See the command."""
    hooks = chosen_hooks(values)
    require_policies(paths, hooks, "PATH")
    try:
        configuration = load_configuration(paths, stdin=sys.stdin.buffer, hooks=hooks)
    except SourceError as error:
        fail(str(error), COULD_NOT)
    commands = command_errors(configuration)
    workers: tuple[WorkerReport, ...] | None = None
    if with_workers and not configuration.fatal:
        # Imported here: ``check`` alone does not call workers.
        from gateway.cli.worker_checks import refusals, verify  # noqa: PLC0415 - heavy, and needed here only

        verification = verify(configuration, commands, values)
        workers = verification.workers
        # With --with-workers a missing command is an error, although another machine may have it.
        errors = (*configuration.errors, *commands.values(), *refusals(verification))
        configuration = replace(configuration, errors=errors)
    else:
        configuration = replace(configuration, warnings=(*configuration.warnings, *commands.values()))
    configuration = replace(configuration, warnings=configuration.warnings + file_warnings(configuration))
    entries = make_entries(configuration)
    if output == "json":
        click.echo(json.dumps(_document(configuration, entries, workers), indent=2, ensure_ascii=False))
    else:
        _report(configuration, entries, workers or ())
    if configuration.errors:
        sys.exit(WRONG_CONFIGURATION)
    sys.exit(COULD_NOT if any(worker.why for worker in workers or ()) else 0)


def _document(
    configuration: Configuration, entries: Entries, workers: "tuple[WorkerReport, ...] | None"
) -> dict[str, Any]:
    return {
        "apiVersion": _API_VERSION,
        "kind": _KIND,
        "valid": not configuration.errors,
        "fatal": configuration.fatal,
        "errors": [_finding(error) for error in configuration.errors],
        "warnings": [_finding(warning) for warning in configuration.warnings],
        "phases": None if configuration.fatal else {phase.value: _phase(entries, phase) for phase in Phase},
        "idle": [policy.qualified_name for policy in entries.idle],
        "workers": None if workers is None else [_worker(worker) for worker in workers],
    }


def _worker(report: "WorkerReport") -> dict[str, Any]:
    return {
        "name": report.worker.name,
        "reached": not report.why,
        "why": report.why,
        "versions": report.versions,
        "policies": report.policies,
        "unused": report.unused,
    }


def _finding(finding: ConfigurationError) -> dict[str, Any]:
    place = finding.place
    return {
        "file": place.file,
        "line": place.line,
        "path": place.path,
        "message": finding.message,
        "hint": finding.hint,
    }


def _phase(entries: Entries, phase: Phase) -> dict[str, Any]:
    return {
        "calls": len(entries.of(phase)),
        "worstSeconds": entries.worst_seconds(phase),
        "waitSeconds": entries.wait_seconds(phase),
        "entries": [_entry(entry) for entry in entries.of(phase)],
    }


def _entry(entry: Entry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "path": entry.path,
        "isolated": entry.isolated,
        "policies": [_policy(policy) for policy in entry.policies],
        "failurePolicy": entry.failure_policy.value,
        "matchPolicy": entry.match_policy.value,
        "reinvocationPolicy": entry.reinvocation_policy.value if entry.phase is Phase.MUTATING else None,
        "sideEffects": entry.side_effects.value,
        "enforcing": entry.enforcing,
        "rules": [_rule(rule) for rule in entry.rules],
        "worstSeconds": entry.worst_seconds,
        "timeoutSeconds": entry.timeout_seconds,
        "apart": None if entry.split is None else _apart(entry.split),
    }


def _policy(policy: Policy) -> dict[str, Any]:
    is_mutating = policy.phase is Phase.MUTATING
    return {
        "configuration": policy.configuration,
        "index": policy.index,
        "name": policy.name,
        "worker": policy.worker,
        "policy": policy.policy,
        "mode": policy.mode.value,
        "timeoutSeconds": policy.timeout,
        "inputs": _pointers(policy.inputs.places),
        "writes": _pointers(policy.writes.granted) if is_mutating else None,
        "cache": None if policy.cache is None else _cache(policy.cache),
        "onConflict": policy.on_conflict.value if is_mutating else None,
        "shadow": None if policy.shadow is None else {"worker": policy.shadow.worker, "policy": policy.shadow.policy},
        "fault": policy.fault,
    }


def _pointers(places: PointerSet | None) -> list[str] | None:
    return None if places is None else [format_pointer(pointer) for pointer in places.pointers]


def _cache(cache: Cache) -> dict[str, float]:
    return {"ttlSeconds": cache.ttl, "staleIfErrorSeconds": cache.stale_if_error}


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "operations": rule.operations,
        "apiGroups": rule.api_groups,
        "apiVersions": rule.api_versions,
        "resources": rule.resources,
        "scope": rule.scope.value,
    }


def _apart(split: Difference) -> dict[str, str]:
    return {
        "policy": split.policy.qualified_name,
        "other": split.other.qualified_name,
        "field": split.field,
        "value": split.value,
        "otherValue": split.other_value,
        "resource": split.resource,
        "operation": split.operation,
    }


def _report(configuration: Configuration, entries: Entries, workers: "tuple[WorkerReport, ...]") -> None:
    for error in configuration.errors:
        click.secho(_finding_report(error), fg="red")
    for warning in configuration.warnings:
        click.secho(f"warning: {_finding_report(warning)}", fg="yellow")
    if configuration.fatal:
        click.secho(f"{_count(configuration)}; the policies are not known, so the gateway would not start", bold=True)
        return
    click.secho(_count(configuration), bold=True)
    for phase in Phase:
        for line in _reported(entries, phase):
            click.echo(line)
    for policy in entries.idle:
        click.echo(f"\nNever called, because it has no rules: {policy.qualified_name}")
    if workers:
        click.secho(f"\nWorkers: {_number(len(workers), 'worker')}", bold=True)
    for worker in workers:
        click.echo(f"  {click.style(one_line(worker.worker.name), fg='cyan')}  {_worker_report(worker)}")


def _worker_report(report: "WorkerReport") -> str:
    if report.why:
        return click.style(f"not reached: {one_line(report.why)} ({report.worker.place})", fg="red")
    versions = f"version {', '.join(report.versions)}; " if any(report.versions) else ""
    unused = f"; unused: {', '.join(report.unused)}" if report.unused else ""
    return f"{versions}{_number(len(report.policies), 'policy', 'policies')}{unused}"


def _finding_report(finding: ConfigurationError) -> str:
    """On as many lines as it has: the CEL compiler prints the position in the expression on lines of its own."""
    return "\n    ".join(finding.lines)


def _count(configuration: Configuration) -> str:
    errors, warnings = len(configuration.errors), len(configuration.warnings)
    return f"{_number(errors, 'error')}, {_number(warnings, 'warning')}"


def _number(count: int, noun: str, plural: str = "") -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {plural or noun + 's'}"


def _reported(entries: Entries, phase: Phase) -> Iterator[str]:
    calls = entries.of(phase)
    order = f", {_HOW[phase]}" if len(calls) > 1 else ""
    yield ""
    yield click.style(f"{phase.value.capitalize()}: {_number(len(calls), 'call')}{order}", bold=True)
    for entry in calls:
        yield from _entry_report(entry)
    if calls:
        worst, wait = entries.worst_seconds(phase), entries.wait_seconds(phase)
        yield f"  worst case {worst:g} s; kube-apiserver waits up to {wait} s"


def _entry_report(entry: Entry) -> Iterator[str]:
    words = [entry.failure_policy.value, entry.match_policy.value]
    if entry.phase is Phase.MUTATING:
        words.append(f"reinvocation {entry.reinvocation_policy.value}")
    words += ["isolated"] * entry.isolated + ["not enforced"] * (not entry.enforcing)
    name = click.style(entry.name, fg="cyan")
    yield f"  {name}  {', '.join(words)}; timeoutSeconds {entry.timeout_seconds} for {entry.worst_seconds:g} s"
    for label, rule in zip(_labels("rules"), map(_rule_report, entry.rules), strict=False):
        yield f"      {label}{rule}"
    for label, policy in zip(_labels("policies"), entry.policies, strict=False):
        fault = click.style("  has errors, so each call fails", fg="red") if policy.fault else ""
        yield f"      {label}{policy.qualified_name}{fault}"
        scope = "" if policy.fault else "; ".join(_scope_report(policy))
        if scope:
            yield f"                  {scope}"
    if entry.split is not None:
        yield f"      apart     {entry.split}"


def _scope_report(policy: Policy) -> Iterator[str]:
    """The policy's inputs, writes, cache and shadow, if they are not the defaults."""
    if policy.inputs.places is not None:
        yield f"sees {_named(policy.inputs.places)}"
    if policy.writes.granted is not None:
        yield f"writes {_named(policy.writes.granted)}"
    if policy.cache is not None:
        stale = f", {policy.cache.stale_if_error:g} s more if its worker fails" if policy.cache.stale_if_error else ""
        yield f"cached {policy.cache.ttl:g} s{stale}"
    if policy.shadow is not None:
        name = f", policy {policy.shadow.policy}" if policy.shadow.policy not in ("", policy.policy) else ""
        yield f"compared with worker {policy.shadow.worker}{name}"


def _named(places: PointerSet) -> str:
    return few([format_pointer(pointer) for pointer in places.pointers]) or "nothing"


def _labels(first: str) -> Iterator[str]:
    yield f"{first:<10}"
    while True:
        yield " " * 10


def _rule_report(rule: Rule) -> str:
    versions = [group_version(group, version) for group in rule.api_groups for version in rule.api_versions]
    scope = "" if rule.scope is Scope.ALL else f", {rule.scope.value}"
    return f"{' '.join(rule.operations)} of {' '.join(rule.resources)} ({' '.join(versions)}{scope})"
