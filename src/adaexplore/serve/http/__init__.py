"""The HTTP side of the service: where it listens, who may ask, bounds, audit and metrics."""
