"""shell-operator's hooks, as far as they are configuration: the output of ``--config``, and the policies it becomes."""

from gateway.policies.hooks.model import AdmissionBinding, FieldRequirement, HookConfiguration, ObjectBinding
from gateway.policies.hooks.names import ID_PATHS, webhook_id, worker_name
from gateway.policies.hooks.objects import snapshot_kinds
from gateway.policies.hooks.reading import HookReading, read_hook_configuration
from gateway.policies.hooks.registration import Hook, hooks_text

__all__ = [
    "ID_PATHS",
    "AdmissionBinding",
    "FieldRequirement",
    "Hook",
    "HookConfiguration",
    "HookReading",
    "ObjectBinding",
    "hooks_text",
    "read_hook_configuration",
    "snapshot_kinds",
    "webhook_id",
    "worker_name",
]
