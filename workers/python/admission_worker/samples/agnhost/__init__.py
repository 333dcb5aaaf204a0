"""What Kubernetes' own end-to-end tests expect of a webhook: its reference webhook, agnhost, as a worker.

    python -m admission_worker.samples.agnhost --listen unix:agnhost.sock

One policy for each route of agnhost's (Kubernetes 1.36, test/images/agnhost/webhook), named as the route with ``-``
for ``/``. They answer to the letter what it answers, so a cluster's tests can be pointed at the gateway:

* agnhost denies without a code, of which kube-apiserver makes 400, and with no reason unless the handler gives one.
* Where agnhost's handler crashes, because it does not know the resource, the policy raises: a failure,
  and the failurePolicy decides, as with a webhook that hangs up.
* Its flag ``--sidecar-image`` is the setting ``image`` of mutating-pods-sidecar, and the five seconds of
  always-allow-delay-5s are the setting ``seconds``.

As policies they are no models: some are not idempotent, and one replaces what it should add to.
"""

from admission_worker.samples.agnhost import always, data, labels, pods
from admission_worker.samples.agnhost.agnhost_worker import worker

__all__ = ["always", "data", "labels", "pods", "worker"]
