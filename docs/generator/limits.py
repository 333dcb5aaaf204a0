"""limits.md: every bound, with the arithmetic that gave it."""

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from docs.generator.markdown import code, prose
from docs.generator.source import documented
from gateway.bounds import Limit
from gateway.cli.commands.serve import serve

_HEAD: Final = prose("""
    # Limits

    Every limit of the gateway, how to change it, and the arithmetic behind it. At a limit the gateway does not stall:
    it answers at once, or closes one connection.

    A limit with a flag is set on ``serve``, by the flag or by its environment variable; it must be greater than zero
    and finite. Some limits in bytes are a share of ``--memory-budget`` unless their own flag is set; some
    follow ``--limit-body-bytes``. The others are constants.
""")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Settable:
    """A class of limits. Those that are flags of ``serve`` are called ``--limit-``, ``prefix`` and the name."""

    title: str
    module: str
    owner: str
    prefix: str = ""
    text: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Fixed:
    """Constants of a module."""

    title: str
    module: str
    names: tuple[str, ...]


_SETTABLE: Final = (
    _Settable(title="The HTTP server", module="gateway.serving.limits", owner="Limits"),
    _Settable(title="Calls to workers", module="gateway.transports.limits", owner="TransportLimits"),
    _Settable(
        title="Patches of workers",
        module="gateway.patching.limits",
        owner="PatchLimits",
        prefix="patch_",
        text="A patch that passes one of these is a failure `INVALID_PATCH` of its policy.",
    ),
    _Settable(
        title="The cache between reviews",
        module="gateway.caching.limits",
        owner="CacheLimits",
        prefix="cache_",
        text="Passing one of these costs calls to workers, never a review.",
    ),
)
_FIXED: Final = (
    _Fixed(
        title="What other limits follow",
        module="gateway.bounds",
        names=("MEMORY_BUDGET", "LARGEST_BODIES", "BODY_BYTES", "DEEPEST"),
    ),
    _Fixed(
        title="Started workers",
        module="gateway.transports.supervisor",
        names=("RESTART_SECONDS", "HEALTHY_SECONDS", "LAST_OUTPUT_SECONDS"),
    ),
    _Fixed(
        title="Sockets of started workers",
        module="gateway.transports.socket_directory",
        names=("LEFT_OVER_SECONDS", "MOST_REMOVED"),
    ),
    _Fixed(
        title="Output of started workers", module="gateway.transports.output", names=("LINE_BYTES", "LINES_A_SECOND")
    ),
    _Fixed(title="Processes of hooks", module="gateway.hooks.execution.process", names=("GRACE_SECONDS",)),
    _Fixed(
        title="Configurations of hooks",
        module="gateway.hooks.execution.config_run",
        names=("CONFIG_RUNS", "CONFIG_BYTES"),
    ),
    _Fixed(title="Answers of hooks", module="gateway.hooks.protocol.answers", names=("VALUES",)),
    _Fixed(title="Metrics of hooks", module="gateway.hooks.execution.run_files", names=("METRICS_BYTES",)),
    _Fixed(title="Output of hooks", module="gateway.hooks.execution.output", names=("LINE_BYTES", "LINES_PER_SECOND")),
    _Fixed(
        title="Files of hooks",
        module="gateway.hooks.transport.description_watch",
        names=("POLL_SECONDS", "RETRY_SECONDS"),
    ),
    _Fixed(
        title="Channels to workers",
        module="gateway.transports.grpc.dialer",
        names=("RECONNECT_MS", "RECONNECT_LOCALLY_MS"),
    ),
    _Fixed(title="A lost worker", module="gateway.transports.grpc.worker", names=("RESTART_WAIT_SECONDS",)),
    _Fixed(
        title="Connections to workers",
        module="gateway.transports.grpc.connection",
        names=(
            "RETRY_SECONDS",
            "SHORT_SECONDS",
            "RECONNECT_SECONDS",
            "DESCRIBE_INTERVAL_SECONDS",
            "STREAM_SECONDS",
            "MAX_STREAM_BREAKS",
        ),
    ),
    _Fixed(
        title="Addresses of workers",
        module="gateway.transports.grpc.endpoint_set",
        names=("CHECK_SECONDS", "RESOLVE_SECONDS"),
    ),
    _Fixed(
        title="Replicas of workers",
        module="gateway.transports.grpc.endpoint",
        names=("ROTATION_SECONDS", "MOST_BREAKERS", "SUCCESSOR_TIMEOUT_FACTOR"),
    ),
    _Fixed(
        title="Streams to workers",
        module="gateway.transports.grpc.stream",
        names=("GATHER_TURNS", "BEHIND_SECONDS", "SWEEP_SECONDS"),
    ),
    _Fixed(
        title="Attempts of calls",
        module="gateway.transports.grpc.retries",
        names=("MAX_SENT", "MAX_UNSENT", "SAME_CONNECTION_SECONDS", "WHOLE_SHARE"),
    ),
    _Fixed(title="Circuit breakers", module="gateway.transports.grpc.breaker", names=("PROBES", "PROBE_SECONDS")),
    _Fixed(
        title="The event loop's lag",
        module="gateway.transports.loop_lag",
        names=("LAG_INTERVAL_SECONDS", "LAG_MINIMUM_SECONDS"),
    ),
    _Fixed(title="Retries", module="gateway.transports.grpc.retry_budget", names=("RESERVE",)),
    _Fixed(title="Names of queues", module="gateway.policies.workers.queue_target", names=("MAX_STREAM",)),
    _Fixed(
        title="Queues, as gateways and bridges share them",
        module="gateway.transports.queue.codec",
        names=("EXPIRED_MS", "GONE_MS", "FORGOTTEN_MS", "DEAD_SECONDS"),
    ),
    _Fixed(
        title="Queues, seen from a gateway",
        module="gateway.transports.queue.request_exchange",
        names=("HEARTBEAT_SECONDS", "BLOCK_SECONDS", "READ", "GATHER", "SWEEP_SECONDS", "UNREADABLE_LOG_SECONDS"),
    ),
    _Fixed(
        title="What a gateway keeps in Redis",
        module="gateway.transports.queue.queue_monitor",
        names=("REPLIES_MS", "LANE_MS", "MOST_BRIDGES"),
    ),
    _Fixed(title="Links to Redis", module="gateway.redis.link", names=("PAUSE_SECONDS", "SETTLED_SECONDS")),
    _Fixed(
        title="Abandoned lanes",
        module="gateway.transports.queue.abandoned_streams",
        names=("GRACE_SECONDS", "MOST"),
    ),
    _Fixed(title="Calls written to Redis again", module="gateway.transports.queue.outbox", names=("ANOTHER_CLOCK_MS",)),
    _Fixed(title="The rate of a lane", module="gateway.transports.queue.request_stream", names=("SECONDS",)),
    _Fixed(
        title="Settings sent to workers",
        module="gateway.transports.worker_descriptions",
        names=("RETRY_SECONDS", "KEPT"),
    ),
    _Fixed(
        title="Bridges",
        module="gateway.transports.queue.heartbeat",
        names=("HEARTBEAT_SECONDS", "TIDY_SECONDS", "GONE_SECONDS"),
    ),
    _Fixed(
        title="Calls from bridges to their workers",
        module="gateway.transports.queue.delivery_dispatcher",
        names=("DELIVERIES",),
    ),
    _Fixed(
        title="Answers of bridges",
        module="gateway.transports.queue.reply_writer",
        names=("WRITE_BYTES", "REPLIES_BYTES", "GATHER", "FULL_SECONDS"),
    ),
    _Fixed(
        title="Answers that bridges remember",
        module="gateway.transports.queue.pending_deliveries",
        names=("REMEMBERED", "REMEMBERED_BYTES", "LONGEST_REMEMBERED"),
    ),
    _Fixed(
        title="Redis of bridges",
        module="gateway.transports.queue.commands",
        names=("BLOCK_SECONDS", "FORGOTTEN_SECONDS"),
    ),
    _Fixed(title="Seal keys", module="gateway.redis.key_files", names=("KEYS",)),
    _Fixed(
        title="Calls of existing webhooks",
        module="gateway.transports.webhook.call",
        names=("REDIRECTS", "LARGE_ANSWER"),
    ),
    _Fixed(
        title="Timeouts sent to existing webhooks",
        module="gateway.transports.webhook.endpoint",
        names=("LONGEST_TIMEOUT",),
    ),
    _Fixed(title="Kubeconfigs", module="gateway.transports.webhook.kubeconfig", names=("MAX_FILE_BYTES",)),
    _Fixed(title="Redis", module="gateway.caching.redis", names=("WATCHED",)),
    _Fixed(title="Deletions from Redis", module="gateway.caching.deletions", names=("SCAN_COUNT", "SCAN_STEPS")),
    _Fixed(
        title="Durations of `cache`", module="gateway.policies.fields.cache", names=("MAX_TTL", "MAX_STALE_IF_ERROR")
    ),
    _Fixed(
        title="`inputs` and `writes`", module="gateway.policies.fields.pointers", names=("MAX_POINTERS", "MAX_TOKENS")
    ),
    _Fixed(
        title="The idempotency check, and comparisons with shadows",
        module="gateway.serving.replay",
        names=("AFTER_SECONDS", "REPLAY_SECONDS", "REPLAYS_OF_ONE", "REPLAYS", "HELD_BYTES"),
    ),
    _Fixed(title="Failing shadows", module="gateway.serving.shadow_comparison", names=("FAILING_KEPT",)),
    _Fixed(
        title="Log lines of the idempotency check and of shadows",
        module="gateway.serving.patch_lines",
        names=("LOGGED_OPERATIONS", "LOGGED_CHARACTERS"),
    ),
    _Fixed(title="Conflicts", module="gateway.engine.conflicts", names=("CONFLICTS_KEPT", "PLACES_LISTED")),
    _Fixed(title="Files", module="gateway.sources.files", names=("MAX_FILE_BYTES", "MAX_ATTEMPTS")),
    _Fixed(
        title="Texts in files", module="gateway.policies.decoding.nodes", names=("MAX_DEPTH", "MAX_COST", "MAX_NUMBER")
    ),
    _Fixed(title="Policies", module="gateway.policies.fields.webhook", names=("MAX_TIMEOUT",)),
    _Fixed(
        title="Match conditions",
        module="gateway.policies.fields.match_conditions",
        names=("MAX_CONDITIONS", "MAX_COMPILED"),
    ),
    _Fixed(title="Errors in messages", module="gateway.policies.errors", names=("MAX_SUMMARIZED", "MAX_ERROR")),
    _Fixed(title="Values in messages", module="gateway.policies.field_errors", names=("MAX_QUOTED",)),
    _Fixed(
        title="Errors in a Service's path",
        module="gateway.policies.workers.client_config",
        names=("MAX_SEGMENT_ERRORS",),
    ),
    _Fixed(
        title="Metadata of a native configuration",
        module="gateway.policies.metadata",
        names=("MAX_ANNOTATIONS", "MAX_REPEATED"),
    ),
    _Fixed(title="Entries", module="gateway.registration.entries", names=("MAX_TIMEOUT_SECONDS",)),
    _Fixed(
        title="Former entries",
        module="gateway.serving.outdated_calls",
        names=("KEPT_SECONDS", "KEPT_POLICIES"),
    ),
    _Fixed(
        title="Registered entries",
        module="gateway.registration.registered_entries",
        names=("MAX_ANNOTATION_BYTES",),
    ),
    _Fixed(
        title="Registration objects", module="gateway.registration.webhook_configurations", names=("MAX_OBJECT_BYTES",)
    ),
    _Fixed(
        title="Changes in an audit annotation",
        module="gateway.engine.response_builder",
        names=("CHANGES_LISTED", "CHANGED_BYTES"),
    ),
    _Fixed(title="Files of `review`", module="gateway.cli.review_files", names=("MAX_FILE_BYTES",)),
    _Fixed(
        title="Reading for an audit",
        module="gateway.audit.api_reader",
        names=("PAGE", "PAGE_SECONDS", "ATTEMPTS", "MAX_DELAY_SECONDS", "EXPIRATIONS"),
    ),
    _Fixed(title="Judging for an audit", module="gateway.audit.auditor", names=("CONCURRENT", "OBJECT_SECONDS")),
    _Fixed(
        title="Findings of an audit",
        module="gateway.audit.results",
        names=("FINDINGS_OF_ONE", "FINDINGS_KEPT", "MESSAGE_CHARACTERS", "INCOMPLETE_KEPT"),
    ),
    _Fixed(title="Unjudged admissions of a log", module="gateway.audit.unjudged_lines", names=("OBJECTS_KEPT",)),
    _Fixed(title="PolicyReports", module="gateway.cli.policy_reports", names=("RESULTS", "MESSAGE")),
    _Fixed(
        title="Warnings about ignored failures",
        module="gateway.engine.open_warnings",
        names=("WARNING_SECONDS", "POLICIES_KEPT"),
    ),
    _Fixed(title="Log lines", module="gateway.telemetry.logs", names=("QUEUE_LINES",)),
    _Fixed(
        title="Decisions that wait to be written",
        module="gateway.telemetry.background_writer",
        names=("WAITING_RECORDS", "WAITING_BYTES", "RESERVE", "BATCH_BYTES", "STOP_SECONDS", "QUIET_SECONDS"),
    ),
    _Fixed(title="The decision log", module="gateway.telemetry.line_sinks", names=("FILE_BYTES", "FILES")),
    _Fixed(title="Recorded reviews", module="gateway.telemetry.recordings", names=("REVIEW_BYTES",)),
    _Fixed(
        title="Recordings",
        module="gateway.serving.recording_segments",
        names=("SEGMENT_BYTES", "SEGMENT_RECORDS", "SEGMENTS", "RECORD_BYTES"),
    ),
)


def page(root: Path) -> str:
    """The page's text."""
    parts = [
        _HEAD,
        *(part for group in _SETTABLE for part in _settable(group, root)),
        "## Fixed limits",
        *(part for group in _FIXED for part in _fixed(group, root)),
    ]
    return "\n\n".join(parts) + "\n"


def _settable(group: _Settable, root: Path) -> Iterator[str]:
    texts = documented(root / _path(group.module), group.owner)
    yield f"## {group.title}"
    yield f"From {_link(group.module)}. {group.text}".rstrip()
    for own_name, limit in getattr(importlib.import_module(group.module), group.owner).limits.items():
        name = group.prefix + own_name
        yield f"### {name}"
        yield f"{_value(limit)}{_flag(name) if limit.help else '.'}"
        yield prose(texts[own_name])


def _value(limit: Limit) -> str:
    if limit.budget_divisor:
        return f"Default {_number(limit.default)}, 1/{limit.budget_divisor} of {code('--memory-budget')}"
    if limit.body_tenths:
        times = f"{limit.body_tenths / 10:g} times {code('--limit-body-bytes')}"
        extra = f" and {limit.body_extra:,}" if limit.body_extra else ""
        return f"Default {_number(limit.default)}, {times}{extra}"
    return f"{'Default' if limit.help else 'Fixed at'} {_number(limit.default)}"


def _flag(name: str) -> str:
    flag = f"--limit-{name}".replace("_", "-")
    option = next(option for option in serve.params if flag in option.opts)
    return f"; flag {code(flag)}, variable {code(option.envvar)}."


def _fixed(group: _Fixed, root: Path) -> Iterator[str]:
    texts = documented(root / _path(group.module))
    module = importlib.import_module(group.module)
    yield f"### {group.title}"
    yield f"From {_link(group.module)}."
    for name in group.names:
        yield f"{code(name)}, {_number(getattr(module, name))}: {prose(texts[name])}"


def _path(module: str) -> Path:
    return Path(*module.split(".")).with_suffix(".py")


def _link(module: str) -> str:
    return f"[{_path(module)}](../../{_path(module)})"


def _number(value: Any) -> str:
    if isinstance(value, tuple):
        return " and ".join(map(_number, value))
    return f"**{value:,}**" if isinstance(value, int) else f"**{value:g}**"
