"""Runs the web application until SIGTERM or Ctrl-C."""

import ipaddress
import signal
import socket
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from functools import partial

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from kcrf.serving.app import build_app
from kcrf.serving.connections import refuse
from kcrf.serving.limits import Limits
from kcrf.serving.models import ServedModel

_CONNECTIONS = 1000  # more are answered 503
_SILENCE = 10.0  # seconds in which the line and the headers of a request must arrive


def open_socket(host: str, port: int) -> socket.socket:
    """A socket bound to an address, which does not listen yet."""
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except socket.gaierror as error:
        raise OSError(f"{host}: {str(error.strerror).lower()}") from None
    family, kind, protocol, _, address = addresses[0]
    bound = socket.socket(family, kind, protocol)  # asyncio sets TCP_NODELAY only where the protocol is named
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as error:
        bound.close()
        raise OSError(f"{host} port {port}: {str(error.strerror).lower()}") from None
    return bound


def address_of(bound):
    """The URL of a bound socket."""
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def is_loopback(bound):
    """Whether only this machine can reach a bound socket."""
    return ipaddress.ip_address(bound.getsockname()[0]).is_loopback


def run_server(
    models: Mapping[str, ServedModel],
    bound: socket.socket,
    limits: Limits | None = None,
    on_ready: Callable[[str], object] | None = None,
) -> None:
    """Answers requests until SIGTERM or Ctrl-C; accepted requests are answered before it returns.

    If only this machine can reach the address, the header `Host` of a request must name the address, so that a web page
    elsewhere cannot reach the server through a host name of its own.
    """
    hosts = ("localhost", "127.0.0.1", "::1", bound.getsockname()[0]) if is_loopback(bound) else None
    app = build_app(models, limits, hosts)
    config = uvicorn.Config(
        app, http=_Protocol, log_level="warning", access_log=False, server_header=False, lifespan="on"
    )
    server = _Server(config, None if on_ready is None else partial(on_ready, address_of(bound)))
    with _without_sigterm():
        server.run(sockets=[bound])


class _Protocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """Closes connections that send no whole request line and headers in time, and answers 503 to too many of them."""

    _timer = None

    def connection_made(self, transport):
        super().connection_made(transport)
        if len(self.connections) > _CONNECTIONS:
            self.app = _refuse_connection
        self._watch()

    def data_received(self, data):
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc):
        super().connection_lost(exc)
        if self._timer:
            self._timer.cancel()

    def _watch(self):
        """Starts the timer while a request is incomplete. Uvicorn's own timer runs between requests."""
        waits = self.cycle is None or self.cycle.response_complete
        if waits and not self._timer:
            self._timer = self.loop.call_later(_SILENCE, self.transport.close)
        elif not waits and self._timer:
            self._timer.cancel()
            self._timer = None


async def _refuse_connection(scope, receive, send):
    await refuse(send, 503, "Too many connections; try again later", [(b"retry-after", b"1")])


class _Server(uvicorn.Server):
    """A server that calls a function when it is ready."""

    def __init__(self, config, on_ready):
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets=None):
        await super().startup(sockets)
        if self._on_ready and self.started:
            self._on_ready()


@contextmanager
def _without_sigterm():
    """Ignores the SIGTERM that Uvicorn sends itself when it has stopped: the exit status would report a failure."""
    before = signal.signal(signal.SIGTERM, lambda *arguments: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
