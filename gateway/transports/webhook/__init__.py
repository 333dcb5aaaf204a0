"""How an existing admission webhook is asked: an HTTPS POST, as kube-apiserver sends it."""

from gateway.transports.webhook.access import AccessError, Credentials, Users, WebhookAccess
from gateway.transports.webhook.admission_configuration import read_admission_configuration
from gateway.transports.webhook.endpoint import Endpoint
from gateway.transports.webhook.kubeconfig import read_kubeconfig
from gateway.transports.webhook.places import read_places
from gateway.transports.webhook.worker import WebhookWorker

__all__ = [
    "AccessError",
    "Credentials",
    "Endpoint",
    "Users",
    "WebhookAccess",
    "WebhookWorker",
    "read_admission_configuration",
    "read_kubeconfig",
    "read_places",
]
