"""Counts and times what a server does, for Prometheus."""

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)  # upper bounds of the histogram


class Metrics:
    """The metrics of one application, each a metric of prometheus_client. Several threads may use them.

    >>> metrics = Metrics()
    >>> metrics.texts.labels("pku").inc(3)
    >>> b'kcrf_texts_total{model="pku"} 3.0' in metrics.content()
    True
    """

    CONTENT_TYPE = CONTENT_TYPE_LATEST

    def __init__(self):
        self._registry = CollectorRegistry()
        metric, of_model = {"namespace": "kcrf", "registry": self._registry}, ["model"]
        self.requests = Counter(
            "requests",
            "Requests by path and status; 499: the client left before its answer.",
            ["path", "status"],
            **metric,
        )
        self.seconds = Histogram(
            "request_seconds", "Time from the first byte of a request to the last of its answer.", ["path"],
            buckets=_SECONDS, **metric,
        )  # fmt: skip
        self.texts = Counter("texts", "Texts that a model computed.", of_model, **metric)
        self.characters = Counter("characters", "Characters that a model computed.", of_model, **metric)
        self.batches = Counter("batches", "Batches that a model computed.", of_model, **metric)
        self.batched_requests = Counter("batched_requests", "Requests in these batches.", of_model, **metric)
        self.refused = Counter("refused", "Requests refused because too many texts waited.", of_model, **metric)
        self.abandoned = Counter("abandoned", "Requests never computed: their clients left.", of_model, **metric)
        self.waiting = Gauge(
            "waiting", "Texts that wait for a model; a text counts once for each 128 characters.", of_model, **metric
        )
        self.computing = Gauge("computing", "Texts that a model computes now, counted like that.", of_model, **metric)

    def content(self):
        """All metrics in the text format of Prometheus, as bytes."""
        return generate_latest(self._registry)
