"""How the gateway is registered with kube-apiserver: entries, their names, rules and the objects to apply."""
