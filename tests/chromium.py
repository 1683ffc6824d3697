"""A page in headless Chromium, driven over a pipe with the DevTools protocol."""

import base64
import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

EVENTS = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


class Page:
    """A page of a browser that runs.

    Args:
        folder: Where the browser keeps its files.

    Attributes:
        errors: Exceptions of the page's script, messages of its console and requests that failed.
    """

    def __init__(self, folder):
        program = next(filter(None, map(shutil.which, NAMES)), None)
        if program is None:
            pytest.skip("needs Chromium, which is not here")
        (self._in, ours), (theirs, self._out) = os.pipe(), os.pipe()
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run"]
        # The browser reads commands from file 3 and writes to file 4.
        shell = 'in=$1 out=$2; shift 2; exec 3<&$in 4>&$out "$@"'
        pipes = [str(theirs), str(ours)]
        self._process = subprocess.Popen(
            ["bash", "-c", shell, "bash", *pipes, program, *options, f"--user-data-dir={folder}", "about:blank"],
            pass_fds=(theirs, ours),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(theirs), os.close(ours)
        self._number, self._rest, self._session, self.errors = 0, b"", None, []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._call(f"{domain}.enable")

    def close(self):
        """Ends the browser."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._in), os.close(self._out)

    def seconds(self):
        """The processor time of the browser's processes so far, in seconds; on Linux alone."""
        ticks = 0
        for file in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):  # a process that has ended
                fields = file.read_text().rpartition(")")[2].split()
                ticks += int(fields[11]) + int(fields[12]) if int(fields[2]) == self._process.pid else 0
        return ticks / os.sysconf("SC_CLK_TCK")

    def open(self, url, width, height=900):
        """Shows a URL in a window of this size, in pixels."""
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self._call("Emulation.setScrollbarsHidden", hidden=True)
        self._call("Page.navigate", url=url)
        self.wait(f"location.href == {json.dumps(url)} && document.readyState == 'complete'")

    def dark(self, is_dark):
        """Prefers dark colors, or light ones."""
        features = [{"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}]
        self._call("Emulation.setEmulatedMedia", features=features)

    def language(self, code):
        """Prefers a language, such as zh-CN, in pages that are opened from now on."""
        self._call("Emulation.setUserAgentOverride", userAgent=self.value("navigator.userAgent"), acceptLanguage=code)

    def type(self, text):
        """Types where the cursor is, a character after the other."""
        for character in text:
            self._call("Input.insertText", text=character)

    def paste(self, text):
        """Puts text where the cursor is, all at once."""
        self._call("Input.insertText", text=text)

    def value(self, script):
        """What a script of JavaScript gives."""
        found = self._call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def wait(self, script, seconds=20):
        """Waits until a script gives true."""
        end = time.monotonic() + seconds
        while not self.value(f"Boolean({script})"):
            assert time.monotonic() < end, (script, self.value("document.body.innerText"), self.errors)
            time.sleep(0.02)

    def picture(self, path):
        """Writes what the page shows, its whole length, as PNG."""
        found = self._call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(found["data"]))

    def _call(self, method, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
            is_notice = answer.get("params", {}).get("entry", {}).get("level") == "info"
            if answer.get("method") in EVENTS and not is_notice:
                self.errors.append(answer["params"])

    def _read(self):
        while b"\0" not in self._rest:
            more = os.read(self._in, 1 << 20)
            assert more, "the browser has ended"
            self._rest += more
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)
