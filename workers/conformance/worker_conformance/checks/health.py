"""``health.*``: ``grpc.health.v1.Health``, by which gateways and Kubernetes decide whether to send calls."""

import grpc

from worker_conformance.check import Section, grpc_health, proto, readme
from worker_conformance.findings import BrokenRuleError, NotCheckableError, expect
from worker_conformance.subject import Subject

section = Section("health")

SERVICES = ("", "admission.worker.v1.Worker")
SERVING = 1


async def _is_served(worker: Subject) -> None:
    """Skip the check if the worker does not serve health: it "should", but need not.

    Raises:
        NotCheckableError: it has none.
    """
    try:
        await worker.client.health()
    except grpc.aio.AioRpcError as error:
        if error.code() is grpc.StatusCode.UNIMPLEMENTED and not worker.has_policy("probe-answer"):
            raise NotCheckableError("the worker does not serve grpc.health.v1.Health, which is recommended") from None
        raise


@section.check(
    "check",
    "Check reports SERVING for the worker as a whole.",
    proto("with its overall state under the empty service name."),
)
async def check(worker: Subject) -> None:
    """The empty name."""
    await _is_served(worker)
    status = await worker.client.health()
    expect(status == SERVING, "SERVING for ''", f"status {status}")


@section.check(
    "check-service",
    "Check reports SERVING for the contract's service name.",
    readme('`Check` and `Watch`, for `""` and `admission.worker.v1.Worker`'),
)
async def check_service(worker: Subject) -> None:
    """The name of the service."""
    await _is_served(worker)
    status = await worker.client.health(SERVICES[1])
    expect(status == SERVING, f"SERVING for {SERVICES[1]!r}", f"status {status}")


@section.check(
    "check-unknown",
    "Check of an unknown service ends with NOT_FOUND.",
    readme("NOT_FOUND for others (`Watch`: SERVICE_UNKNOWN)"),
)
async def check_unknown(worker: Subject) -> None:
    """Another name."""
    await _is_served(worker)
    try:
        status = await worker.client.health("no.such.Service")
    except grpc.aio.AioRpcError as error:
        expect(error.code() is grpc.StatusCode.NOT_FOUND, "NOT_FOUND", error.code().name)
    else:
        raise BrokenRuleError("NOT_FOUND", f"status {status}")


@section.check(
    "watch",
    "Watch reports SERVING at once and stays open.",
    grpc_health("The server will immediately send back a message indicating the current serving status."),
)
async def watch(worker: Subject) -> None:
    """For both names; it stays open while the worker answers other calls."""
    await _is_served(worker)
    for service in SERVICES:
        watching = worker.client.watch(service)
        status = await watching.status()
        expect(status == "SERVING", f"SERVING for {service!r}", str(status))
        for _ in range(5):
            await worker.client.describe()
        expect(not watching.ended(), f"a Watch of {service!r} that stays open", "it has ended")
        watching.close()


@section.check(
    "watch-unknown",
    "Watch of an unknown service reports SERVICE_UNKNOWN.",
    readme("NOT_FOUND for others (`Watch`: SERVICE_UNKNOWN)"),
)
async def watch_unknown(worker: Subject) -> None:
    """Another name."""
    await _is_served(worker)
    watching = worker.client.watch("no.such.Service")
    status = await watching.status()
    expect(status == "SERVICE_UNKNOWN", "SERVICE_UNKNOWN", str(status))
    watching.close()


@section.check(
    "many-watches",
    "100 concurrent watches each get SERVING, and the worker still answers calls.",
    readme("`Check` and `Watch`"),
)
async def many_watches(worker: Subject) -> None:
    """Each gateway has one for each connection."""
    await _is_served(worker)
    async with worker.connected() as client:
        watches = [client.watch() for _ in range(100)]
        for watching in watches:
            status = await watching.status()
            expect(status == "SERVING", "SERVING", str(status))
        await client.describe()
        for watching in watches:
            watching.close()
