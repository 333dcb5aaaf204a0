"""How hooks are run: processes, signals, outputs, files, concurrency."""
