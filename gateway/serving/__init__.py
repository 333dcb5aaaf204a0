"""The way in from the API server: TLS, HTTP, limits, drain; and the driver that runs the engine with a real clock."""
