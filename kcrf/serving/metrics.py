"""Counts what a server does, in the text format of Prometheus."""

import threading
from collections import defaultdict

__all__ = ["Metrics"]

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)  # upper bounds of the histogram
_HELP = {
    "requests_total": ("counter", "Requests by path and status; 499: the client left before its answer."),
    "request_seconds": ("histogram", "Time from the first byte of a request to the last of its answer."),
    "texts_total": ("counter", "Texts that a model computed."),
    "characters_total": ("counter", "Characters that a model computed."),
    "batches_total": ("counter", "Batches that a model computed."),
    "batched_requests_total": ("counter", "Requests in these batches: divided by the batches, how many share one."),
    "refused_total": ("counter", "Requests refused because too many texts waited."),
    "abandoned_total": ("counter", "Requests never computed because their client left."),
    "waiting": ("gauge", "Texts that wait for a model, long ones counted once for each 128 characters."),
    "computing": ("gauge", "Texts that a model computes now, counted likewise."),
}


class Metrics:
    """Counters, one histogram of times, and gauges. Several threads may use it.

    Example:

        >>> metrics = Metrics()
        >>> metrics.add("texts_total", 3, model="pku")
        >>> 'kcrf_texts_total{model="pku"} 3' in metrics.text()
        True
    """

    def __init__(self):
        self._lock = threading.Lock()
        self._values = defaultdict(lambda: defaultdict(float))  # name: {labels: value}
        self._gauges = {}  # (name, labels): function

    def add(self, name, amount=1, **labels):
        """Adds to a counter."""
        with self._lock:
            self._values[name][_labels(labels)] += amount

    def gauge(self, name, read, **labels):
        """Shows what `read()` returns whenever the metrics are read."""
        self._gauges[name, _labels(labels)] = read

    def observe(self, name, seconds, **labels):
        """Adds a time to a histogram."""
        with self._lock:
            for bound in _SECONDS:
                self._values[f"{name}_bucket"][_labels({**labels, "le": bound})] += seconds <= bound
            self._values[f"{name}_bucket"][_labels({**labels, "le": "+Inf"})] += 1
            self._values[f"{name}_sum"][_labels(labels)] += seconds
            self._values[f"{name}_count"][_labels(labels)] += 1

    def text(self):
        """All of them, as Prometheus reads them."""
        gauges = [(name, labels, read()) for (name, labels), read in self._gauges.items()]
        with self._lock:
            rows = [(name, labels, value) for name, values in self._values.items() for labels, value in values.items()]
        lines = []
        for family, (kind, meaning) in _HELP.items():
            lines += [f"# HELP kcrf_{family} {meaning}", f"# TYPE kcrf_{family} {kind}"]
            names = [f"{family}{end}" for end in ("_bucket", "_sum", "_count")] if kind == "histogram" else [family]
            for name in names:
                lines += [f"kcrf_{name}{labels} {value:.15g}" for n, labels, value in rows + gauges if n == name]
        return "\n".join([line for line in lines if line]) + "\n"


def _labels(labels):
    pairs = ",".join(f'{name}="{_escaped(str(value))}"' for name, value in labels.items())
    return f"{{{pairs}}}" if pairs else ""


def _escaped(text):
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
