"""The fields of a policy and of a native webhook, each read and validated as Kubernetes does."""
