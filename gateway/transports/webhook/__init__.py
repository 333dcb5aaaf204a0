"""How an existing admission webhook is asked: an HTTPS POST, as kube-apiserver sends it."""
