"""agnhost, the reference webhook of Kubernetes' end-to-end tests, as a worker.

    python -m admission_worker.samples.agnhost --listen unix:agnhost.sock

It has one policy for each route of agnhost (Kubernetes 1.36, test/images/agnhost/webhook), with the route's name and
``-`` for ``/``. Their answers are exactly agnhost's, so a cluster's tests can use the gateway:

* agnhost denies without a code, which kube-apiserver makes 400, and without a reason unless the handler sets one.
* Where agnhost's handler crashes, because it does not know the resource, the policy raises: a failure, and the
  failurePolicy decides, as when a webhook closes the connection.
* Its flag ``--sidecar-image`` is the setting ``image`` of mutating-pods-sidecar, and the five seconds of
  always-allow-delay-5s are the setting ``seconds``.

Do not copy these policies: some are not idempotent, and one replaces a list to which it should add.
"""

from admission_worker.samples.agnhost import always, data, labels, pods
from admission_worker.samples.agnhost.agnhost_worker import worker

__all__ = ["always", "data", "labels", "pods", "worker"]
