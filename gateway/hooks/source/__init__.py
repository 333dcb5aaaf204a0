"""A directory of hooks as a source of configuration."""
