"""A worker that is a shell-operator hook: a process for each ask. How hooks are run is ``gateway.hooks``."""

from gateway.transports.hook.surroundings import hook_limits
from gateway.transports.hook.worker import HookWorker

__all__ = ["HookWorker", "hook_limits"]
