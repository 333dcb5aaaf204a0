"""The limits of hooks, as the room that runs them knows them."""

from gateway.hooks.limits import HookLimits
from gateway.transports.limits import TransportLimits


def hook_limits(limits: TransportLimits) -> HookLimits:
    """Those of ``TransportLimits`` that hooks have."""
    return HookLimits(
        processes=limits.hook_processes,
        waiting=limits.hook_waiting,
        config_seconds=limits.hook_config_seconds,
        output_bytes=limits.hook_output_bytes,
        response_bytes=limits.hook_response_bytes,
        message_characters=limits.message_characters,
    )
