"""How one gateway serves: what ``serve``'s flags come to."""

from pathlib import Path

from msgspec import Struct, field

from gateway.caching.limits import CacheLimits
from gateway.patching.limits import PatchLimits
from gateway.serving.limits import Limits
from gateway.transports.limits import TransportLimits
from gateway.transports.transport_config import TransportConfig
from gateway.wording import Redacted

Address = tuple[str, int]
"""Host and port."""


class Settings(Redacted, Struct, frozen=True, kw_only=True):
    """How one gateway serves. Either ``tls_cert`` and ``tls_key``, or ``tls_dev_dir``."""

    listen: Address = ("127.0.0.1", 8443)
    admin_listen: Address = ("127.0.0.1", 9443)
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_dev_dir: Path | None = None
    tls_dev_names: tuple[str, ...] = ()
    client_cas: tuple[Path, ...] = ()
    """Whose client certificates are let in; none: nobody has to bring one."""
    hooks: str = ""
    """The name of the configurations that hooks are registered in; with one, what kept asking shell-operator is
    answered at ``/hooks/ID`` and ``/healthz``. Empty: there is no directory of hooks."""
    worker_startup_timeout: float = 3.0
    """How long the start waits for workers to be described. A gateway whose worker is away must start all the same."""
    drain_seconds: float = 25.0
    """How long a stopping gateway goes on serving: less than the 30 s of a pod's terminationGracePeriodSeconds."""
    shutdown_delay_seconds: float = 0.0
    strict: bool = False
    """Whether mistakes, and what workers that are reached say of their policies, refuse the start: for CI."""
    reload_interval_seconds: float = 1.0
    """From look to look at the policy files. A mounted ConfigMap is itself a minute late; an editor's user waits for
    two looks. 0: only when asked to."""
    redis: str = ""
    """The URL of the Redis that all replicas share, perhaps with a password; empty: each has a cache of its own."""
    seal_key_file: Path | None = None
    """The keys with which entries in Redis are sealed; None: a key of this process, so that nothing is shared."""
    prefetch: bool = True
    """Whether mutating policies are asked before their turn."""
    idempotency_sample_ratio: float = 0.0
    """Which share of the mutations is put to its policies again."""
    shadow_sample_ratio: float = 1.0
    """Of which share of the reviews policies are compared with their shadows."""
    transport_config: TransportConfig = field(default_factory=TransportConfig)
    """What workers are reached with: the Redis of their queues, the credentials for webhooks."""
    limits: Limits = field(default_factory=Limits)
    cache_limits: CacheLimits = field(default_factory=CacheLimits)
    transport_limits: TransportLimits = field(default_factory=TransportLimits)
    patch_limits: PatchLimits = field(default_factory=PatchLimits)
