"""ASGI middleware: checks hosts and bodies, cancels work for clients that left, and counts and times requests."""

import asyncio
import time
from contextlib import suppress
from urllib.parse import urlsplit

from kcrf.files import json_line

_BODY = "http.request"
_LEFT = 499  # nginx' status for a client that left before its answer


class Connections:
    """Wraps an ASGI application.

    The application sees a request after its whole body has arrived: 413 if the body is too long, 408 if it takes too
    long. When the client closes the connection, the application's task is cancelled. HEAD is answered as GET. A header
    `Host` that is none of `hosts` is answered 400; None allows any.
    """

    def __init__(self, app, limits, metrics, paths, hosts):
        self._app, self._limits, self._metrics, self._paths = app, limits, metrics, frozenset(paths)
        self._hosts = hosts

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        if scope["method"] == "HEAD":
            scope = {**scope, "method": "GET"}  # the server sends no body, for it knows the method
        start, status = time.perf_counter(), _LEFT

        async def counted_send(message):
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        path = scope["path"] if scope["path"] in self._paths else "other"
        try:
            await self._answer(scope, receive, counted_send)
        finally:
            self._metrics.requests.labels(path, status).inc()
            self._metrics.seconds.labels(path).observe(time.perf_counter() - start)

    async def _answer(self, scope, receive, send):
        if self._hosts is not None and _host(scope) not in self._hosts:
            return await refuse(send, 400, "The header Host must name this machine, as in localhost")
        if scope["method"] != "POST":
            return await self._app(scope, receive, send)
        try:
            async with asyncio.timeout(self._limits.seconds):
                body = await self._body(receive)
        except TimeoutError:
            return await refuse(send, 408, f"The body must arrive within {self._limits.seconds:g} seconds.")
        if body is None:
            return
        if len(body) > self._limits.body:
            return await refuse(send, 413, f"The body must have at most {self._limits.body:,} bytes.")
        await self._run(scope, body, receive, send)

    async def _body(self, receive):
        """The body, or its beginning if that is too long; None if the client left."""
        body, has_more = bytearray(), True
        while has_more and len(body) <= self._limits.body:
            message = await receive()
            if message["type"] != _BODY:
                return None
            body += message.get("body", b"")
            has_more = message.get("more_body", False)
        return bytes(body)

    async def _run(self, scope, body, receive, send):
        """Runs the application until it has answered or the client has left."""
        messages = [{"type": _BODY, "body": body, "more_body": False}]

        async def replay():
            return messages.pop() if messages else await receive()

        answer = asyncio.ensure_future(self._app(scope, replay, send))
        left = asyncio.ensure_future(receive())
        try:
            await asyncio.wait({answer, left}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            left.cancel()
            if not answer.done():
                answer.cancel()
            with suppress(asyncio.CancelledError):
                await answer


def _host(scope):
    """The host in the header `Host`, without the port; None if there is none."""
    host = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


async def refuse(send, status, reason, headers=()):
    """Answers with the reason as JSON, and closes the connection."""
    headers = [(b"content-type", b"application/json"), (b"connection", b"close"), *headers]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json_line({"error": reason}).encode()})
