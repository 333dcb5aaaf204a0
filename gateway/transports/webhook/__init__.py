"""Calls an existing admission webhook: an HTTPS POST, as kube-apiserver sends it."""
