"""Limits of the calls to workers, and of a bridge that consumes a queue."""

from typing import Final

from gateway.bounds import Bounds, budgeted, of_body, tunable

MOST_STATEMENTS: Final = 1000
"""Warnings, audit annotations and causes of one outcome. kubectl shows 4 KiB of warnings at most; ten million empty
ones fit a message, and would keep the gateway from everything else for seconds."""


class TransportLimits(Bounds):
    """Limits of the calls to workers. Seconds are floats; all other units are in the names."""

    message_bytes: int = of_body(20, extra=1_048_576)
    """The maximum size of a gRPC message to a worker. Twice the largest body, for an object that earlier policies have
    enlarged, and 1 MiB for the other fields. The SDKs accept the same size."""

    answer_message_bytes: int = of_body(10, extra=1_048_576)
    """The maximum size of a gRPC message from a worker: an object has half of that at most, whatever a patch of it
    repeats, and 1 MiB for the other fields. To receive and to parse one takes some 40 ms."""

    answer_characters: int = 65_536
    """The maximum number of characters of an answer's message, reason, details, audit annotations and warnings
    together; a denial stays a denial, with its texts cut. kube-apiserver shows a user 4,096 characters of warnings, and
    a terminal of 100 lines has 10,000. 1,024 reviews in flight with as many take 64 MiB, a sixteenth of the memory
    budget."""

    answer_bytes_in_flight: int = budgeted(8)
    """The maximum number of bytes of the changes above 64 KiB that workers have answered with, and that reviews hold;
    the answer that does not fit is a failure (``OVERLOADED``). An eighth of the memory budget: what is parsed, compared
    and sent of a change takes three times as much. At least one change of the largest size, thirteen by default.
    As many answers of unary calls are received at a time as fit if each has ``answer_message_bytes``, six by default,
    and as many of calls that were made while no more were open. One that waits for longer than half of the time that
    its call has left is a failure as well."""

    describe_seconds: float = tunable(5.0, "Seconds that a worker has to describe itself and to validate settings.")
    """The timeout of Describe and ValidateSettings. No review waits for these calls."""

    message_characters: int = 500
    """The number of characters kept of a worker's error text, which users see on one line."""

    worker_stop_seconds: float = tunable(10.0, "Seconds that a worker started by command has to stop.")
    """The time that a worker started by the gateway has to stop before it is killed: a third of the 30 s that
    Kubernetes gives a pod to terminate."""

    worker_settle_seconds: float = tunable(60.0, "Seconds without caching after a worker answered in two versions.")
    """The time after the last answer in an undescribed version during which the worker's verdicts are not cached. A
    Deployment replaces a quarter of its pods at a time; until the next quarter is ready, no call may reach the new
    version. Pulling an image and passing a probe take some 30 s; this is twice that."""

    worker_in_flight: int = tunable(1000, "Open calls of one worker.")
    """The maximum number of open calls to one worker; further calls wait (``worker_wait_seconds``). By Little's law, a
    process that makes 2,000 calls a second of 100 ms each has 200 open; a worker with five times as many has stopped
    answering. One policy in one namespace may have as many as are free: 500 of 1,000 if it is alone, so that its slow
    objects leave room for other policies and namespaces."""

    worker_wait_seconds: float = 2.0
    """How long a call waits until it may be open (``worker_in_flight``), unless half of its time is less; then it fails
    (``OVERLOADED``). As long as a review waits to begin (``wait_seconds``): a burst is judged, and a worker that has
    stopped answering leaves nothing waiting for long."""

    worker_backlog_bytes: int = budgeted(8, "Bytes of documents held for one worker.")
    """The maximum number of bytes held for one worker on all its connections: data that waits to be written to streams,
    and documents of open unary calls. Further calls fail at once (``OVERLOADED``). An eighth of the memory budget: at
    least one document of the largest size, six by default. A worker that reads has a few KB waiting."""

    worker_batch_bytes: int = 1_048_576
    """The size up to which one stream message gathers calls. Sending it takes a millisecond at 10 Gbit/s, which is the
    longest delay of the next call."""

    worker_stream_bytes: int = 262_144
    """The largest document that is sent over a stream. A larger document is sent in a unary call, so that small
    documents do not wait behind it. At this size the overhead of a unary call is a hundredth of the cost."""

    worker_connections: int = tunable(2, "Connections to a worker; spec.grpc.connections overrides it.")
    """The minimum number of connections to a worker, spread over its addresses. With two, one serves while the other
    is replaced or sends a large document. A Unix socket has one connection. ``spec.grpc.connections`` of a Worker
    overrides this limit."""

    worker_addresses: int = 100
    """The maximum number of addresses used of one worker. If there are more, each process uses a random subset. A
    connection costs some 100 KB and a health watch."""

    worker_connect_seconds: float = tunable(3.0, "Seconds to connect to a worker, TLS included.")
    """The timeout of a connection attempt, including the TLS handshake. TCP retransmits its first packet after one
    second and after three."""

    worker_connection_age_seconds: float = tunable(300.0, "Seconds after which a connection to a worker is replaced.")
    """The age at which a connection is replaced, with 10 % jitter. Behind a virtual address, replacement moves load to
    new replicas: five minutes after an update they have their share."""

    worker_keepalive_seconds: float = 300.0
    """The interval of keepalive pings on an idle connection. gRPC servers refuse pings at shorter intervals by default
    ("too many pings"). On a busy connection, the calls detect a dead peer."""

    worker_keepalive_timeout_seconds: float = 10.0
    """The time after which a connection is closed if a ping or sent data is not acknowledged."""

    worker_resolve_seconds: float = 30.0
    """The interval at which a worker's name is resolved again: the TTL of cluster DNS records."""

    worker_circuit_window_seconds: float = 10.0
    """The period over which a circuit breaker counts calls."""

    worker_circuit_calls: int = 20
    """The minimum number of calls in the window before a circuit can open. With fewer, one restart would open it."""

    worker_circuit_share: float = 0.5
    """The share of failed calls at which a circuit opens. A call has failed if it had the policy's whole timeout and
    the address answered no call of the policy meanwhile; or if it was lost or the worker returned a failure, and
    another address judged the same document."""

    worker_circuit_open_seconds: float = tunable(
        5.0, "Seconds between calls with side effects to an address whose circuit is open."
    )
    """The interval at which one call with side effects is sent to an address whose circuit is open, while others could
    be called. A client of the API server waits 10 s for a review, so its retry reaches another address. Other calls are
    copied: the copy is the probe, and no review waits for it."""

    worker_circuit_in_flight: int = 100
    """The maximum number of calls of one policy that wait for a worker whose circuits are open at all addresses;
    further calls fail at once (``WORKER_UNAVAILABLE``). A tenth of the reviews that may be open
    (``reviews_in_flight``): nine tenths are left for what other workers judge. One namespace may have as many as are
    free."""

    worker_retry_share: float = tunable(0.2, "Retries as a share of all calls to a worker; 0: none.", may_be_zero=True)
    """The retry budget, as a share of all calls to a worker: calls repeated on another replica after the worker
    returned a failure. Up to ten retries are saved; 0 disables retries. Retries after a lost connection do not count. A
    worker that fails all calls gets a fifth more load instead of twice as much."""

    worker_unsolicited: int = 1000
    """The maximum number of unsolicited answers on one stream, beyond a tenth of the solicited ones; one more ends the
    stream (``INVALID_RESPONSE``). Each cancelled call may have one answer under way, hence the number of calls that may
    be open."""

    worker_stream_pause_seconds: float = 60.0
    """The time during which unary calls replace streams, after the worker's streams broke repeatedly."""

    webhook_answer_bytes: int = of_body(16)
    """The maximum size of a webhook's answer after decompression; a larger answer is not read to its end
    (``INVALID_RESPONSE``). A patch that replaces the largest object, 20 MB, has 27 MB in base64; 32 MiB leave room for
    the rest."""

    webhook_answer_values: int = 1_000_000
    """The maximum number of JSON values in a webhook's answer (``INVALID_RESPONSE``). Each takes some 100 bytes of
    memory: 100 MB in all, where 32 MB of empty arrays would take 700 MB. A usual answer has a hundred values; an answer
    that repeats the request has as many as the request."""

    webhook_connections: int = tunable(200, "Connections to one existing webhook.")
    """The maximum number of connections to one webhook; further calls wait for a free connection until their deadline.
    kube-apiserver handles 200 mutating requests at a time (--max-mutating-requests-inflight), each with one open call
    of a webhook."""

    webhook_idle_connections: int = 25
    """The maximum number of idle connections to one webhook, as in kube-apiserver; others are closed at once."""

    webhook_idle_seconds: float = 50.0
    """The time after which an idle connection to a webhook is closed: less than the 60 s of load balancers, so that the
    gateway closes first. (If the server closes first, a call needs a second attempt.) kube-apiserver uses 90 s."""

    webhook_connect_seconds: float = 10.0
    """The timeout of a connection attempt to a webhook, including the TLS handshake: kube-apiserver's handshake
    timeout. The deadline of the call applies too."""

    webhook_attempts: int = 11
    """The maximum number of attempts of one call while the webhook answers 429 or 5xx with ``Retry-After``:
    kube-apiserver's client retries ten times."""

    webhook_reload_seconds: float = 5.0
    """The interval at which the files with credentials and authorities for webhooks are checked for changes. The
    kubelet takes up to a minute to update a mounted Secret. A check costs microseconds."""

    queue_length: int = tunable(10_000, "Calls in one queue, of all gateways together.")
    """The maximum number of calls in a request stream of a queue, from all gateways; further calls fail at once
    (``OVERLOADED``). By Little's law, 2,000 calls a second that wait five seconds each, half of the usual timeout of a
    webhook, fill it."""

    queue_bytes: int = tunable(268_435_456, "Redis memory of one queue.")
    """The maximum Redis memory of a request stream, checked once a second; above it, calls fail at once
    (``OVERLOADED``). It holds sixteen of the largest reviews, or ``queue_length`` calls of 26 KB."""

    queue_open_bytes: int = budgeted(8, "Bytes of documents held for the calls of one queue.")
    """The maximum number of bytes of documents that this process holds for the open calls of one queue; further calls
    fail at once (``OVERLOADED``). Documents are held until they are answered, to send them again if Redis loses its
    data. An eighth of the memory budget: at least one document of the largest size, six by default."""

    queue_redis_seconds: float = tunable(2.0, "Seconds that the Redis of a queue has to connect or to answer.")
    """The timeout of connecting to Redis, of a Redis command, and of adding a call to the queue
    (``WORKER_UNAVAILABLE``). A restart of Redis takes less than a second, and TCP retransmits a lost packet after one
    second."""

    hook_processes: int = tunable(0, "Hook processes at a time; 0: two for each core, and one.", may_be_zero=True)
    """The maximum number of concurrent hook processes of one gateway process, not counting ``--config``. The last one
    is reserved for a hook that has no running process, so a single hook may have all but one, and while fewer hooks
    hang than this, the others continue. 0 means two per core that the gateway may use (while one waits for disk or
    network, another computes), and the reserved one: 5 on two cores. With 1 none is reserved, and a hanging hook delays
    all."""

    hook_waiting: int = tunable(100, "Calls of one hook that wait for a process.")
    """The maximum number of calls of one hook that wait for a process; further calls fail at once (``OVERLOADED``). A
    shell script takes some 20 ms: on two cores, with four running, the hundredth call waits half a second, and a review
    has at least one second."""

    hook_config_seconds: float = tunable(30.0, "Seconds that a hook may take to print its configuration.")
    """The timeout of a hook's ``--config``. A script takes 20 ms; an interpreter that loads a large library on a busy
    machine takes seconds."""

    hook_snapshot_bytes: int = tunable(16_777_216, "Bytes of one snapshot of the cluster, in hook-worker.")
    """The maximum size of the objects that ``hook-worker`` keeps for one ``kubernetes`` binding; beyond it there is no
    snapshot, and calls that need it fail. It is written into a file for each call: 16 MiB are 5,000 Pods of 3 KiB, and
    the limit of the documents of snapshots from files."""

    hook_output_bytes: int = 16_777_216
    """The maximum size of what one run of a hook writes to both outputs together; a hook that writes more is stopped. A
    shell with tracing (``set -x``) writes some KB; an endless loop exceeds the limit in a tenth of a second."""

    hook_response_bytes: int = of_body(16)
    """The maximum size of a hook's response file (``INVALID_RESPONSE``). A patch that replaces the largest object has
    four thirds of its size in base64; a quarter of the limit remains for the rest."""


class ConsumerLimits(Bounds):
    """Limits of a bridge, the consumer of a queue."""

    in_flight: int = 100
    """The maximum number of calls that are processed concurrently. At 10 ms each, that is 10,000 a second, more than
    one process can forward; slower workers rarely process more at a time."""

    in_flight_bytes: int = 134_217_728
    """The size of calls and answers in memory above which the bridge reads no more calls: six documents of the largest
    size, 20 MB each. One read may exceed it by as much as the request stream holds."""

    answer_seconds: float = 3.0
    """The timeout of connecting to Redis and of a Redis command. A Redis that takes longer
    counts as lost."""


class Backlog:
    """Counts the bytes held for one worker.

    Args:
        limit: in bytes.
    """

    __slots__ = ("bytes", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.bytes = 0

    def has_room(self, size: int) -> bool:
        """Whether ``size`` more bytes may be held. One document always may, whatever its size."""
        return not self.bytes or self.bytes + size <= self.limit
