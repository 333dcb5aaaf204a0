"""A worker that is a shell-operator hook: a process for each ask. How hooks are run is ``gateway.hooks``."""
