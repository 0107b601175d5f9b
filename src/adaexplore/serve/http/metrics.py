"""Metrics of the service in Prometheus' form."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from adaexplore.serve.jobs import Jobs


class Metrics:
    """Counters of requests, and gauges of the jobs as the database has them."""

    def __init__(self, jobs: Jobs) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_JobCounts(jobs))
        self._requests = Counter(
            "adaexplore_requests",
            "Requests by route and status",
            ["route", "status"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "adaexplore_request_seconds",
            "Time to the first byte of an answer",
            ["route"],
            registry=self._registry,
        )

    def count(self, route: str, status: int, seconds: float) -> None:
        """Count a request. `route` is a pattern, so that paths make no series of their own."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """Return all metrics."""
        return generate_latest(self._registry)


class _JobCounts(Collector):
    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs

    def collect(self) -> Iterator[Metric]:
        """See `Collector`."""
        gauge = GaugeMetricFamily("adaexplore_jobs", "Jobs", labels=["kind", "state"])
        for (kind, state), count in self._jobs.counts().items():
            gauge.add_metric([kind, state], count)
        yield gauge
