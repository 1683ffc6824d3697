"""Latency and throughput of `kcrf serve`, under several numbers of clients, with shared batches and without.

    python benchmarks/serve_speed.py RUN_OR_ONNX_FILE text.txt [--clients 1 8 32] [--seconds 10]

Each client sends a line of the text as one request, waits for the answer and sends the next one, over a connection that
it keeps. The server is a process of its own; the clients are threads of this one, which compute nothing. "One by one"
is the same server with --batch-size 1, which computes each request alone. KERAS_BACKEND chooses the server's backend.
"""

import argparse
import http.client
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parents[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run")
    parser.add_argument("text")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()
    lines = Path(options.text).read_text(encoding="utf-8").splitlines()
    texts = ["".join(line.split())[:500] for line in lines if line.strip()]
    servers = {"one by one": start(options.run, 1), "shared batches": start(options.run, 64)}
    try:
        print("| server | clients | p50 ms | p99 ms | requests/s | characters/s | requests a batch |")
        print("|---|---:|---:|---:|---:|---:|---:|")
        for clients in options.clients:
            for name, (_, address) in servers.items():
                path = json.loads(content(address, "/models"))["models"][0]["path"]
                measured(address, path, texts, clients, options.seconds / 5)  # warms up
                print(f"| {name} | {clients} |", measured(address, path, texts, clients, options.seconds))
    finally:
        for process, _ in servers.values():
            process.send_signal(signal.SIGTERM)
            process.wait()


def start(run, batch_size):
    """A server process and its address."""
    command = [sys.executable, "-m", "kcrf", "serve", f"model={run}", "--port", "0", "--batch-size", str(batch_size)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    for line in process.stderr:
        if line.startswith("kcrf serve: http"):
            return process, urlsplit(line.split()[2]).netloc
    raise RuntimeError("the server did not start")


def measured(address, path, texts, clients, seconds):
    """The cells of a row of the table."""
    times, characters, numbers = [], [], itertools.count()
    before, end = batches(address), time.perf_counter() + seconds

    def client():
        connection = http.client.HTTPConnection(address, timeout=60)
        while time.perf_counter() < end:
            text = texts[next(numbers) % len(texts)]
            body = json.dumps({"texts": [text]})
            start = time.perf_counter()
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200:
                raise RuntimeError(f"status {answer.status}")
            times.append(time.perf_counter() - start)
            characters.append(len(text))

    threads = [threading.Thread(target=client) for _ in range(clients)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took, after = time.perf_counter() - start, batches(address)
    times.sort()
    share = (after[1] - before[1]) / (after[0] - before[0])
    p50, p99 = (1000 * times[int(len(times) * part)] for part in (0.5, 0.99))
    return f"{p50:.1f} | {p99:.1f} | {len(times) / took:.0f} | {sum(characters) / took:.0f} | {share:.1f} |"


def batches(address):
    """How many batches the server has computed, and requests in them."""
    values = dict(line.rsplit(" ", 1) for line in content(address, "/metrics").splitlines() if line)
    return [float(values.get(f'kcrf_{name}_total{{model="model"}}', 0)) for name in ("batches", "batched_requests")]


def content(address, path):
    """What the server has at a path."""
    connection = http.client.HTTPConnection(address)
    connection.request("GET", path)
    return connection.getresponse().read().decode()


if __name__ == "__main__":
    main()
