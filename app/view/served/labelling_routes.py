"""Routes by which the page labels and overrides; JSON in and out, and the message of an error as plain text."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from app.annotation.default_annotator import default_annotator
from app.text.text_escaping import clean
from app.view.contents.page_labelling import Labelling, ReadOnlyError
from benchmarks.errors import NoAccessError, RashomonError, SpecError, StoreError

_LARGEST = 64 << 10
"""The bytes of a request's body that are read."""
_T = TypeVar("_T")


class _Body:
    """The fields of a request. Raises SpecError for a field that is missing or of another type."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields
        self.run = self.get("run", int)
        self.name = self.get("name", str).strip()

    def get(self, key: str, kind: type[_T]) -> _T:
        value = self._fields.get(key)
        if type(value) is not kind:
            raise SpecError(f"the request needs {key!r}, of the type {kind.__name__}.")
        return value

    @property
    def confirmed(self) -> bool:
        return self._fields.get("confirmed") is True


def routes(labelling: Labelling) -> list[Route]:
    """Return the routes of the page's labels and overrides."""

    def end(body: _Body) -> dict[str, str]:
        labelling.end(body.run, body.name)
        return {}

    actions: dict[str, Callable[[_Body], Any]] = {
        "labelling/begin": lambda b: labelling.begin(b.run, b.name),
        "labelling/give": lambda b: labelling.give(b.run, b.name, b.get("item", str), b.get("label", str)),
        "labelling/skip": lambda b: labelling.give(b.run, b.name, b.get("item", str), None),
        "labelling/sample": lambda b: labelling.skip_undecided(b.run, b.name, b.get("item", str)),
        "labelling/undo": lambda b: labelling.undo(b.run, b.name, b.get("item", str), confirmed=b.confirmed),
        "labelling/end": end,
        "override": lambda b: labelling.override(
            b.run, b.get("number", int), b.get("answer", str), b.get("label", str), b.get("reason", str), b.name
        ),
        "override/undo": lambda b: labelling.undo_override(b.run, b.get("number", int), b.name, confirmed=b.confirmed),
    }
    posts = [Route(f"/api/{path}", _endpoint(action), methods=["POST"]) for path, action in actions.items()]
    return [Route("/api/labelling", _annotator, methods=["GET"]), *posts]


async def _annotator(request: Request) -> Response:
    return JSONResponse({"annotator": default_annotator()})


def _endpoint(action: Callable[[_Body], Any]) -> Callable[[Request], Any]:
    async def respond(request: Request) -> Response:
        try:
            body = _Body(await _fields(request))
            reply = await run_in_threadpool(action, body)
        except RashomonError as error:
            return PlainTextResponse(clean(str(error), newlines=True), _status(error))
        return JSONResponse(reply if isinstance(reply, dict) else asdict(reply))

    return respond


async def _fields(request: Request) -> Mapping[str, Any]:
    """Return the JSON object of a request. Raises SpecError."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise SpecError("the request is not JSON.")
    data = bytearray()
    try:
        async for chunk in request.stream():
            data += chunk
            if len(data) > _LARGEST:
                raise SpecError(f"the request has more than {_LARGEST >> 10} KiB; shorten the reason.")
    except ClientDisconnect as error:
        raise SpecError("the request ended early.") from error
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise SpecError("the request is not JSON.") from error
    if not isinstance(fields, dict):
        raise SpecError("the request is not a JSON object.")
    return fields


def _status(error: RashomonError) -> int:
    if isinstance(error, ReadOnlyError | NoAccessError):
        return 403
    return 409 if isinstance(error, StoreError) else 400
