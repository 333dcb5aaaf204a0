"""What the gateway allows a worker to cost."""

from gateway.bounds import Bounds, budgeted, of_body, tunable


class TransportLimits(Bounds):
    """Bounds of the calls to workers. Seconds are floats, everything else counts what its name says."""

    message_bytes: int = of_body(20, extra=1_048_576)
    """The largest message to or from a worker. A document is at most the body without its uid, and a policy earlier in
    the chain may have made the object larger; a whole object that comes back may be larger again. Twice the largest
    body, and 1 MiB for what stands around it. The SDKs receive as much."""

    describe_seconds: float = tunable(5.0, "Seconds that a worker has to describe itself and to validate settings.")
    """How long Describe and ValidateSettings may take. They are off the path of reviews; a worker that needs more is
    not well."""

    message_characters: int = 500
    """How much of a worker's error text is kept. It is shown to users, on one line."""

    worker_stop_seconds: float = tunable(10.0, "Seconds that a worker started by command has to stop.")
    """How long a worker that the gateway started may take to stop before it is killed: a third of the 30 s that
    Kubernetes gives a pod to terminate."""

    worker_settle_seconds: float = tunable(60.0, "Seconds without caching after a worker answered in two versions.")
    """How long after its last answers in two versions a worker is taken to be in a rolling update, in which its
    verdicts are not cached. A Deployment replaces a quarter of its pods at a time, and until the next quarter is ready
    nobody may meet the new version: pulling an image and passing a probe take some 30 s; twice that."""

    worker_in_flight: int = tunable(1000, "Open calls of one worker.")
    """How many calls may be open at one worker; one more is refused at once (``OVERLOADED``). By Little's law a process
    that calls 2,000 times a second has 200 open at 100 ms each; five times that is a worker that has stopped."""

    worker_backlog_bytes: int = budgeted(8, "Bytes of documents held for one worker.")
    """How much may be held for one worker, all connections together: what waits to be written to streams, and the
    documents of open calls of their own; more is refused at once (``OVERLOADED``). An eighth of the memory budget: at
    least one document of the largest size, six by default; a worker that reads has a few KB waiting."""

    worker_batch_bytes: int = 1_048_576
    """The size up to which one message of a stream gathers calls. At 10 Gbit/s it takes a millisecond on the wire;
    a call behind it waits no longer."""

    worker_stream_bytes: int = 262_144
    """The largest document that goes over a stream. A larger one has a call of its own, so that small ones do not wait
    behind it; at that size the call is a hundredth of the cost."""

    worker_connections: int = tunable(2, "Connections to a worker; spec.grpc.connections overrides it.")
    """Connections to a worker, at least: where its name has fewer addresses, several to each. Two are enough for one
    to be replaced, or to be behind a large document, while the other one serves. A Unix socket has one. A Worker's
    ``grpc.connections`` goes before it."""

    worker_addresses: int = 100
    """Addresses of one worker that are used; of more, a random choice, another one in each process. A connection costs
    some 100 KB and a health watch."""

    worker_connect_seconds: float = tunable(3.0, "Seconds to connect to a worker, TLS included.")
    """How long connecting may take, the TLS handshake included: TCP sends its first packet again after one second, and
    once more after three."""

    worker_connection_age_seconds: float = tunable(300.0, "Seconds after which a connection to a worker is replaced.")
    """How long a connection is used before another one takes its place, a tenth more or less. Behind a virtual address
    this is what brings new replicas their share: five minutes after an update they have it."""

    worker_keepalive_seconds: float = 300.0
    """How often an idle connection is pinged. Five minutes is the least that gRPC servers allow by default ("too many
    pings"); a dead peer that is being called is noticed by the calls."""

    worker_keepalive_timeout_seconds: float = 10.0
    """How long a ping, or what was sent, may go unanswered before the connection is given up."""

    worker_resolve_seconds: float = 30.0
    """How often a worker's name is resolved anew: as long as cluster DNS lets records be kept."""

    worker_circuit_window_seconds: float = 10.0
    """The calls that a circuit breaker looks at are those of the last so many seconds."""

    worker_circuit_calls: int = 20
    """It judges no fewer calls than these: with fewer, a single restart would look like a rule."""

    worker_circuit_share: float = 0.5
    """It opens when this share of them failed: was lost or late, or answered that it failed while another address could
    be called."""

    worker_circuit_open_seconds: float = tunable(5.0, "Seconds that a circuit stays open before a probe.")
    """How long it stays open before one call is let through to see: an HTTP client waits 10 s for a review, so
    whoever tries again meets the worker."""

    worker_retry_share: float = tunable(0.2, "Retries as a share of all calls to a worker; 0: none.", may_be_zero=True)
    """How many calls may be put to another replica after a worker said that it failed, as a share of all; ten are saved
    up, and 0 is never. (A lost connection does not count.) A worker that fails everything gets a fifth more work, not
    twice as much."""

    worker_unsolicited: int = 1000
    """Answers on one stream that nobody asked for, in excess of a tenth of those that were; one more ends the stream
    (``INVALID_RESPONSE``). Each cancelled call may have one under way, so many calls may be open."""

    worker_stream_pause_seconds: float = 60.0
    """How long a worker whose streams break again and again is called by calls instead."""

    webhook_answer_bytes: int = of_body(16)
    """The largest answer of an existing webhook, unpacked; a larger one is broken off (``INVALID_RESPONSE``). A patch
    that writes the largest object anew, 20 MB, has 27 MB in base64; 32 MiB leave room for the rest."""

    webhook_answer_values: int = 1_000_000
    """How many values of JSON it may have (``INVALID_RESPONSE``). Each takes some 100 bytes when it is read, so 100 MB;
    32 MB of empty arrays would take 700. An answer has a hundred; one that repeats the request, as many as that has."""

    webhook_connections: int = tunable(200, "Connections to one existing webhook.")
    """Connections to a webhook; a call that finds none waits for one until its deadline. kube-apiserver judges 200
    changing requests at a time (--max-mutating-requests-inflight), each with one call open at a webhook."""

    webhook_idle_connections: int = 25
    """How many of them are kept while they are idle: as many as kube-apiserver keeps. The others are closed at once."""

    webhook_idle_seconds: float = 50.0
    """How long they are kept: less than the 60 s after which load balancers close, so that the gateway is the first. (A
    server that closes earlier costs a second attempt.) kube-apiserver keeps them for 90 s."""

    webhook_connect_seconds: float = 10.0
    """How long connecting to a webhook may take, the TLS handshake included: as long as kube-apiserver waits for a
    handshake. The call's own deadline ends it too."""

    webhook_attempts: int = 11
    """Calls of one call at most, where the webhook answers 429 or 5xx with ``Retry-After``: kube-apiserver's client
    tries again ten times."""

    webhook_reload_seconds: float = 5.0
    """How often the files with credentials and authorities for webhooks are looked at. The kubelet takes up to a minute
    to show a changed Secret; five seconds more are little, and a look costs microseconds."""

    queue_length: int = tunable(10_000, "Calls in one queue, of all gateways together.")
    """How many calls may be in a lane of a queue, of all gateways together; one more is refused at once
    (``OVERLOADED``). By Little's law 2,000 a second are in it when each waits five seconds, half of what webhooks
    usually wait."""

    queue_bytes: int = tunable(268_435_456, "Redis memory of one queue.")
    """How much of Redis' memory a lane may take; further calls fail at once (``OVERLOADED``). It is looked at
    once a second. Sixteen of the largest reviews, or ``queue_length`` of 26 KB each."""

    queue_open_bytes: int = budgeted(8, "Bytes of documents held for the calls of one queue.")
    """How many bytes of documents this process may have open at one queue: it keeps them until they are answered, to
    put them again if Redis loses its data; more is refused at once (``OVERLOADED``). An eighth of the memory budget:
    at least one document of the largest size, six by default."""

    queue_redis_seconds: float = tunable(2.0, "Seconds that the Redis of a queue has to connect or to answer.")
    """How long Redis may take to connect or to answer, and a call to be taken by it, before that is a failure
    (``WORKER_UNAVAILABLE``). A restart takes less than a second, and a lost packet is sent again after one."""

    hook_processes: int = tunable(0, "Hook processes at a time; 0: two for each core, and one.", may_be_zero=True)
    """Hooks that run at the same time in one process of the gateway, in addition to ``--config``. The last one is
    reserved for a hook that has no running process, so a single hook may have all but one, and as long as fewer hooks
    hang than this, the others continue. 0 is two per core that the gateway may use (while one waits for the disk or the
    network, another one computes), and the reserved one: 5 on two cores. With 1 none is reserved, and a hanging hook
    delays all."""

    hook_waiting: int = tunable(100, "Calls of one hook that wait for a process.")
    """How many calls of one hook may wait for a process; one more is rejected at once (``OVERLOADED``). A shell script
    takes some 20 ms: on two cores, with four running, the hundredth call waits half a second, and a review has at least
    one second."""

    hook_config_seconds: float = tunable(30.0, "Seconds that a hook may take to print its configuration.")
    """How long a hook may take to print its configuration (``--config``). A script takes 20 ms; an interpreter that
    loads a large library on a busy machine takes seconds."""

    hook_output_bytes: int = 16_777_216
    """How much one run of a hook may write to both outputs together; a hook that writes more is stopped. A shell with
    tracing (``set -x``) writes some KB; an endless loop exceeds the limit in a tenth of a second."""

    hook_response_bytes: int = of_body(16)
    """The largest answer file of a hook that is read; a larger one is ``INVALID_RESPONSE``. A patch that replaces the
    largest object has four thirds of its size in base64; a quarter of the limit remains for the rest."""


class ConsumerLimits(Bounds):
    """Bounds of a consumer."""

    in_flight: int = 100
    """Questions that are in hand at once. At 10 ms each that is 10,000 a second, more than one process passes on; and
    a worker that takes longer seldom works on more at a time."""

    in_flight_bytes: int = 134_217_728
    """Bytes of questions and answers in hand beyond which no more are taken: six documents of the largest size, 20 MB
    each. What one read brings may come on top; it is bounded by what a lane may hold."""

    answer_seconds: float = 3.0
    """How long Redis may take to connect, or to answer: whoever has not been heard of for so long is taken for dead."""


class Backlog:
    """Counts it.

    Args:
        limit: in bytes.
    """

    __slots__ = ("bytes", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.bytes = 0

    def has_room(self, size: int) -> bool:
        """Whether so much more may wait. One document always may, whatever its size."""
        return not self.bytes or self.bytes + size <= self.limit
