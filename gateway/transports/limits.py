"""What the gateway allows a worker to cost."""

from dataclasses import dataclass

from gateway.bounds import check_bounds


@dataclass(frozen=True, kw_only=True, slots=True)
class TransportLimits:
    """Bounds of the calls to workers. Seconds are floats, everything else counts what its name says."""

    message_bytes: int = 41_048_576
    """The largest message to or from a worker. A document is at most the body (20 MB) without its uid, and a policy
    earlier in the chain may have made the object larger; a whole object that comes back may be larger again. Twice the
    body, and 1 MiB for what stands around it."""

    describe_seconds: float = 5.0
    """How long Describe and ValidateSettings may take. They are off the path of reviews; a worker that needs more is
    not well."""

    message_characters: int = 500
    """How much of a worker's error text is kept. It is shown to users, on one line."""

    worker_stop_seconds: float = 10.0
    """How long a worker that the gateway started may take to stop before it is killed: a third of the 30 s that
    Kubernetes gives a pod to terminate."""

    worker_settle_seconds: float = 60.0
    """How long after its last answers in two versions a worker is taken to be in a rolling update, in which its
    verdicts are not cached. A Deployment replaces a quarter of its pods at a time, and until the next quarter is ready
    nobody may meet the new version: pulling an image and passing a probe take some 30 s; twice that."""

    def __post_init__(self) -> None:
        """Refuse what cannot work: a ValueError that names the limit."""
        check_bounds(self)
