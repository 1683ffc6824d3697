"""Runs `kcrf serve` in a process of its own, and talks to it over HTTP."""

import http.client
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).parents[2]


class Server:
    """A running `kcrf serve`.

    Attributes:
        url: Its address.
        process: Its `subprocess.Popen`.
        errors: The file that its standard error goes to.
    """

    def __init__(self, arguments, folder, program=("-m", "kcrf")):
        self.errors = Path(folder) / "serve.err"
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, *program, "serve", *map(str, arguments), "--port", "0"]
        with open(self.errors, "wb") as errors:
            self.process = subprocess.Popen(command, cwd=folder, env=environment, stdout=errors, stderr=errors)
        while b"answers with" not in self.errors.read_bytes():
            assert self.process.poll() is None, self.errors.read_text()
        self.url = next(word for word in self.errors.read_text().split() if word.startswith("http"))
        self.host, self.port = urlsplit(self.url).hostname, urlsplit(self.url).port

    def connect(self, timeout=60):
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout)

    def ask(self, method, path, body=None, headers=None, timeout=60):
        """`(status, content, headers)`: content is what JSON gives, or text."""
        connection = self.connect(timeout)
        try:
            if isinstance(body, dict):
                body, headers = json.dumps(body).encode(), {"Content-Type": "application/json", **(headers or {})}
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            content = answer.read().decode()
            if answer.headers.get_content_type() == "application/json":
                content = json.loads(content)
            return answer.status, content, answer.headers
        finally:
            connection.close()

    def post(self, path, **body):
        return self.ask("POST", path, body)

    def metric(self, name, **labels):
        """The value of a metric; 0 if there is none."""
        shown = ",".join(f'{key}="{value}"' for key, value in labels.items())
        for line in self.ask("GET", "/metrics")[1].splitlines():
            if line.startswith(f"kcrf_{name}{{{shown}}} "):
                return float(line.split()[-1])
        return 0.0

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
