"""The web application: its paths, their checks and their answers."""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import PlainTextResponse, Response
from starlette.exceptions import HTTPException
from starlette.routing import Route

from kcrf.files import json_line
from kcrf.serving.batches import Batcher, QueueFull, Stopped
from kcrf.serving.connections import Connections
from kcrf.serving.limits import Limits
from kcrf.serving.metrics import Metrics
from kcrf.serving.models import LoadedBeforeFork, Options, ServedModel
from kcrf.serving.schemas import RESPONSES, Health, Models, Problem, request_models
from kcrf.version import __version__

_SUMMARIES = {
    "/segment": "Segments texts into words, with their classes if the model has classes.",
    "/tag": "Recognizes named entities in texts.",
    "/pos": "Predicts the class of each token.",
    "/classify": "Classifies texts or pairs of texts: a label, or a number.",
}
_REASONS = {
    400: "The body is not JSON.",
    404: "There is no such model.",
    408: "The body took too long to arrive.",
    413: "The body is too long.",
    422: "The body does not have the form described here.",
    503: "Too many texts wait: try again after the seconds in the header `Retry-After`. Or the model cannot compute.",
}
_UNREADABLE = {
    UnicodeDecodeError: "text that is not UTF-8",
    RecursionError: "JSON that is nested too deeply",
    ValueError: "a number with too many digits",
}
_PAGE = {
    "/": ("page.html", "text/html"),
    "/docs": ("page.html", "text/html"),  # opened at its examples
    "/page.css": ("page.css", "text/css"),
    "/page.js": ("page.js", "text/javascript"),
}
_HIDDEN = {"/docs", "/page.css", "/page.js"}
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


def _json(content, status=200, headers=None):
    """A response of JSON. Its strings may contain lone surrogates."""
    return Response(json_line(content).encode("utf-8"), status, headers, "application/json")


def build_app(
    models: Mapping[str, ServedModel], limits: Limits | None = None, hosts: Iterable[str] | None = None
) -> FastAPI:
    """Builds the ASGI application that serves models.

    The application may be built before its server forks: the process that answers loads models and starts threads.

    Args:
        models: A dict from names to `ServedModel`s, as `load_models` returns it.
        limits: A `Limits`. Defaults to None, `Limits()`.
        hosts: The hosts that the header `Host` may name. Defaults to None: any.

    Returns:
        A FastAPI application. Its lifespan first loads the models, and ends when all accepted requests are answered.
    """
    limits, metrics = limits or Limits(), Metrics()
    batchers = {name: _batcher(model, limits, metrics) for name, model in models.items()}

    @asynccontextmanager
    async def lifespan(app):
        for model in models.values():
            await asyncio.to_thread(model.load)
        for batcher in batchers.values():
            batcher.open()  # an application may be started again
        yield
        await asyncio.gather(*(asyncio.to_thread(batcher.close) for batcher in batchers.values()))

    app = FastAPI(title="kcrf", version=__version__, docs_url=None, redoc_url=None, lifespan=lifespan)
    for path, request_model in request_models(limits).items():
        _add_path(app, path, request_model, [m for m in models.values() if m.path == path], batchers, metrics)
    _add_state(app, models, limits, metrics, batchers)
    for path, (name, media_type) in _PAGE.items():  # the page to type in
        text = Path(__file__).with_name(name).read_text(encoding="utf-8")
        app.get(path, include_in_schema=False)(_file(text, media_type))
    _add_errors(app)
    paths, known = [route.path for route in app.routes if isinstance(route, Route)], hosts and frozenset(hosts)
    app.add_middleware(Connections, limits=limits, metrics=metrics, paths=paths, hosts=known)
    return app


def _batcher(model, limits, metrics):
    """The `Batcher` of a model, with its metrics."""

    def on_batch(texts, requests):
        metrics.batches.labels(model.name).inc()
        metrics.batched_requests.labels(model.name).inc(requests)
        metrics.texts.labels(model.name).inc(len(texts))
        metrics.characters.labels(model.name).inc(sum(len("".join(text)) for text in texts))

    batcher = Batcher(
        model.compute, limits.waiting, limits.batch, on_batch, on_abandoned=metrics.abandoned.labels(model.name).inc
    )
    metrics.waiting.labels(model.name).set_function(batcher.waiting)
    metrics.computing.labels(model.name).set_function(batcher.computing)
    metrics.refused.labels(model.name)  # shown as 0 before the first one
    return batcher


def _add_path(app, path, request_model, models, batchers, metrics):
    """Adds the path of a task."""
    by_name = {model.name: model for model in models}

    async def answer(body: request_model):
        received: Any = body
        model = _select(path, by_name, received.model, getattr(received, "standard", None))
        texts = [_checked(model, text, f"texts[{number}]") for number, text in enumerate(received.texts)]
        words = tuple(getattr(received, "words", ()))  # each path has some of the options
        options = Options(getattr(received, "k_best", 0), words, getattr(received, "min_probability", None))
        try:
            future = batchers[model.name].submit(texts, options)
        except QueueFull:
            metrics.refused.labels(model.name).inc()
            raise HTTPException(503, "Too many texts wait; try again later", {"Retry-After": "1"}) from None
        except Stopped:
            raise HTTPException(503, "The server is stopping", {"Retry-After": "1"}) from None
        return _json({"model": model.name, "results": await asyncio.wrap_future(future)})

    app.add_api_route(
        path,
        answer,
        methods=["POST"],
        summary=_SUMMARIES[path],
        operation_id=path[1:],
        response_model=RESPONSES[path],
        response_model_exclude_none=True,
        responses={status: {"model": Problem, "description": reason} for status, reason in _REASONS.items()},
    )


def _select(path, models, name, standard):
    """The model with a name, and with a standard if it has several; the first one if the name is None."""
    if not models:
        raise HTTPException(404, f"This server has no model for {path}")
    if name is None:
        chosen = (model for model in models.values() if standard in (None, model.standard))
        name = next(chosen, next(iter(models.values()))).run
    of_run = [model for model in models.values() if name in (model.run, model.name)]
    if not of_run:
        raise HTTPException(404, f"`model` must be one of {', '.join(models)} for {path}. Received: {name[:64]}")
    chosen = [model for model in of_run if standard == model.standard or standard is None and name == model.name]
    if not chosen:
        standards = ", ".join(model.standard for model in of_run if model.standard) or "omitted"
        received = "none" if standard is None else standard[:64]
        raise HTTPException(422, f"`standard` must be {standards} for the model {name}. Received: {received}")
    return chosen[0]


def _checked(model, text, where):
    """A text, or a tuple of two for a model of pairs."""
    if isinstance(text, list) != model.pairs:
        needed = "a list of two strings" if model.pairs else "a string"
        raise HTTPException(422, f"{where}: the model {model.name} needs {needed}")
    return tuple(text) if model.pairs else text


def _add_state(app, models, limits, metrics, batchers):
    """Adds the paths that describe the state of the server."""

    @app.get("/models", summary="Lists the models and the limits.", response_model=Models)
    async def list_models():
        return _json({"models": list(map(_described, models.values())), "limits": vars(limits)})

    dead = {503: {"model": Health, "description": "A model cannot compute: restart the server."}}

    @app.get("/health", summary="Says whether the models can compute.", response_model=Health, responses=dead)
    async def health():
        is_alive = all(batchers[name].is_alive() and model.is_usable() for name, model in models.items())
        return _json({"status": "ok" if is_alive else "stopped", "version": __version__}, 200 if is_alive else 503)

    @app.get("/metrics", summary="Counts and times, for Prometheus.", response_class=PlainTextResponse)
    async def read_metrics():
        return Response(metrics.content(), media_type=metrics.CONTENT_TYPE)


def _described(model):
    """The members of a model that has a standard if its run has several."""
    members = ("name", "task", "path", "labels", "pairs", "units", *(["standard"] if model.standard else []))
    return {member: getattr(model, member) for member in members}


def _file(text, media_type):
    async def send_file():
        return Response(text, media_type=media_type, headers=_HEADERS)

    return send_file


def _add_errors(app):
    """Makes every error a JSON object with the reason. It repeats nothing of the request but names of members."""
    paths = ", ".join(f"{' '.join(route.methods)} {route.path}" for route in app.routes if route.path not in _HIDDEN)

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException):
        reason = str(error.detail)
        if reason == HTTPStatus.NOT_FOUND.phrase:
            reason = f"There is no such path. This server has {paths}"
        elif error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            reason = f"{request.url.path} needs {(error.headers or {})['Allow']}. Received: {request.method}"
        elif error.status_code == HTTPStatus.BAD_REQUEST:
            received = _UNREADABLE.get(type(error.__cause__), "a body that cannot be read")
            reason = f"body: needs JSON in UTF-8, not nested deeply. Received: {received}"
        return _json({"error": reason}, error.status_code, error.headers)

    @app.exception_handler(LoadedBeforeFork)
    async def unusable(request: Request, error: LoadedBeforeFork):
        return _json({"error": str(error)}, 503)

    @app.exception_handler(RequestValidationError)
    async def malformed(request: Request, error: RequestValidationError):
        errors = error.errors()  # if both a text and a pair are possible, there is one for each: not of what was sent
        first = next((e for e in errors if e["type"] != "string_type" or not isinstance(e["input"], list)), errors[0])
        if first["type"] == "json_invalid":
            return _json({"error": f"body: needs JSON. Received: an error at character {first['loc'][-1]}"}, 400)
        if first["loc"] == ("body",) and "json" not in request.headers.get("content-type", ""):
            return _json({"error": "body: needs the header Content-Type: application/json"}, 422)
        return _json({"error": f"{_place(first['loc'])}: {first['msg']}"[:300]}, 422)

    @app.exception_handler(Exception)
    async def failed(request: Request, error: Exception):
        return _json({"error": "The server failed to compute this request"}, 500)


def _place(location):
    """The place of an error in the body, as texts[3]. Pydantic's names of types, after a number, are omitted."""
    name, *parts = list(location[1:]) + [""]
    return (name or "body") + "".join(f"[{part}]" for part in parts if isinstance(part, int))
