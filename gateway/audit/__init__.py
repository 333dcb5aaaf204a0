"""The audit of existing objects: what the validating policies say of what is already in the cluster."""
