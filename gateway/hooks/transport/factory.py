"""Makes the workers of hooks for the pool of transports. The code that runs hooks is loaded with the first one."""

from typing import TYPE_CHECKING

from gateway.policies.workers.targets import HookTarget
from gateway.telemetry.events import Events
from gateway.transports.limits import TransportLimits

if TYPE_CHECKING:
    from gateway.hooks.execution.runner import HookRunner
    from gateway.hooks.transport.worker import HookWorker


class HookWorkerFactory:
    """Makes workers whose hooks share the limits of one process: a ``HookWorkers`` of ``transports.means``."""

    def __init__(self) -> None:
        self._runner: HookRunner | None = None

    def __call__(self, name: str, target: HookTarget, limits: TransportLimits, events: Events) -> "HookWorker":
        """A new worker, which describes its hook at once. The limits of the first call apply to all hooks."""
        from gateway.hooks.execution.runner import HookRunner  # noqa: PLC0415 - loaded with the first hook
        from gateway.hooks.transport.worker import HookWorker  # noqa: PLC0415 - see above

        self._runner = self._runner or HookRunner(limits)
        return HookWorker(name, target, limits, events=events, runner=self._runner)
