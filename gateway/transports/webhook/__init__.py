"""How an existing admission webhook is called: an HTTPS POST, as kube-apiserver sends it."""
