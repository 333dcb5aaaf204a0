"""The settings of one gateway: the result of ``serve``'s flags."""

from pathlib import Path
from typing import TYPE_CHECKING, Optional

from msgspec import Struct, field

from gateway.caching.limits import CacheLimits
from gateway.patching.limits import PatchLimits
from gateway.policies.workers.targets import ServiceReference
from gateway.quoting import Redacted
from gateway.serving.limits import DRAIN_SECONDS, MAX_CONNECTION_AGE_SECONDS, SHUTDOWN_DELAY_SECONDS, Limits
from gateway.telemetry.log_level import LogLevel
from gateway.transports.limits import TransportLimits
from gateway.transports.transport_config import TransportConfig

if TYPE_CHECKING:
    from gateway.telemetry.traces.settings import TraceSettings

Address = tuple[str, int]
"""Host and port."""


class RegistrationSettings(Struct, frozen=True, kw_only=True):
    """How a gateway registers itself.

    ``service``: by which the API server calls it, in whose namespace its Leases are. ``ca_bundle``: a file; None: the
    system's roots, or what a controller puts into the objects.
    """

    service: ServiceReference
    ca_bundle: Path | None = None
    excluded_namespaces: tuple[str, ...] = ()
    despite_findings: bool = False
    """Whether it registers what could lock the cluster, too."""


class Settings(Redacted, Struct, frozen=True, kw_only=True):
    """The settings of one gateway. Either ``tls_cert`` and ``tls_key``, or ``tls_dev_dir``, or ``tls_secret``."""

    listen: Address = ("127.0.0.1", 8443)
    admin_listen: Address = ("127.0.0.1", 9443)
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_dev_dir: Path | None = None
    tls_dev_names: tuple[str, ...] = ()
    tls_secret: tuple[str, str] | None = None
    """Namespace and name of the Secret with the certificate; it needs ``cluster`` and ``service``."""
    client_cas: tuple[Path, ...] = ()
    """The CAs of client certificates; none: clients need no certificate."""
    client_allowed_names: tuple[str, ...] = ()
    """The names of which a client certificate must have one; none: any certificate of the CAs will do."""
    bearer_token_file: Path | None = None
    basic_auth_file: Path | None = None
    path_secret_file: Path | None = None
    """Files of other credentials: see ``credential_files``. Of all that a client may have, one is enough."""
    admin_token_file: Path | None = None
    """The tokens for the guarded pages of the admin listener; None: programs on this machine may call them."""
    hooks: str = ""
    """The name of the configurations that hooks are registered in; with one, the gateway serves shell-operator's paths
    ``/hooks/ID`` and ``/healthz``. Empty: there is no directory of hooks."""
    worker_startup_timeout: float = 3.0
    """How long the start waits for workers to be described. A gateway starts even if a worker is unavailable."""
    drain_seconds: float = DRAIN_SECONDS
    shutdown_delay_seconds: float = SHUTDOWN_DELAY_SECONDS
    max_connection_age_seconds: float = MAX_CONNECTION_AGE_SECONDS
    """0: connections have no maximum age."""
    strict: bool = False
    """Whether errors, in files and those that reached workers report of their policies, refuse the start: for CI."""
    reload_interval_seconds: float = 1.0
    """Seconds between polls of the policy files. A mounted ConfigMap is updated within a minute; after a local change,
    a reload takes two polls. 0: reload only on a signal."""
    cluster: bool = False
    """Whether the Kubernetes API is used."""
    kubeconfig: Path | None = None
    """Where it is, and the credentials; None: the pod's service account."""
    cluster_policies: bool = False
    """Whether the objects of the gateway's kinds there are loaded, besides the files."""
    service: ServiceReference | None = None
    """The gateway's Service, which is probed."""
    registration_name: str = "admission-gateway"
    """The name of both webhook configurations in the cluster, which the gateway or an operator keeps."""
    registration: RegistrationSettings | None = None
    """How the gateway registers itself; None: it does not."""
    redis: str = ""
    """The URL of the Redis that all replicas share, perhaps with a password; empty: each replica has its own cache."""
    seal_key_file: Path | None = None
    """The keys that seal entries in Redis; None: a key of this process, so that no replicas share verdicts."""
    processes: int = 1
    """How many processes the gateway has, of which this is one."""
    process: int = 0
    """The number of this one, from 1; 0: there are no others."""
    decision_log: str = "none"
    """``stdout``, ``otlp``, ``none``, or the path of a file."""
    decision_log_level: LogLevel = LogLevel.DENIED
    recording_dir: Path | None = None
    """Where reviews are recorded; None: nowhere. It needs ``recording_key_file``."""
    recording_key_file: Path | None = None
    recording_sample_ratio: float = 0.01
    """The share of the reviews that are recorded."""
    prefetch: bool = True
    """Whether mutating policies are called before their turn."""
    idempotency_sample_ratio: float = 0.0
    """The share of the mutations that the idempotency check replays."""
    shadow_sample_ratio: float = 1.0
    """The share of the reviews for which policies are compared with their shadows."""
    traces: Optional["TraceSettings"] = None
    """Where spans are exported; None: nowhere."""
    transport_config: TransportConfig = field(default_factory=TransportConfig)
    """The settings for connections to workers: the Redis of their queues, the credentials for webhooks."""
    limits: Limits = field(default_factory=Limits)
    cache_limits: CacheLimits = field(default_factory=CacheLimits)
    transport_limits: TransportLimits = field(default_factory=TransportLimits)
    patch_limits: PatchLimits = field(default_factory=PatchLimits)
