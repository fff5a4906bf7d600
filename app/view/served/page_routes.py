"""Addresses of the page: its files, its contents as JSON, and media."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Route

import app.view
from app.text.text_escaping import clean
from app.view.contents.page_contents import Contents
from app.view.contents.page_json import to_json
from app.view.contents.page_labelling import Labelling
from app.view.contents.page_media import TYPES
from app.view.served.labelling_routes import routes as labelling_routes
from app.view.served.page_watcher import Watcher
from app.view.served.server_threads import in_thread
from benchmarks.errors import MediaError, SpecError

_DRAWN = Path(app.view.__file__).parent / "drawn"
_FILE_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
_MOST_ROWS = 500
_LONGEST_WORDS = 1_000
_NUMBER = re.compile(r"[0-9]{1,9}")
_NO_STORE = {"Cache-Control": "no-store"}
_CACHED = {"Cache-Control": "private, max-age=3600"}
"""The headers of media, whose names are those of their contents."""

Handler = Callable[[Request], Awaitable[Response]]


def routes(contents: Contents, watcher: Watcher) -> list[Route]:
    """Return the routes of the page."""

    def reading(read: Callable[[Mapping[str, str]], Any]) -> Handler:
        async def respond(request: Request) -> Response:
            query = dict(request.query_params)
            return json_response(await in_thread(lambda: read(query)))

        return respond

    async def changes(request: Request) -> Response:
        since = _number(request.query_params, "since")
        await watcher.wait(since, request.is_disconnected)
        return json_response(await in_thread(lambda: contents.changes(since)))

    async def medium(request: Request) -> Response:
        name = request.path_params["name"]
        return await in_thread(lambda: _original(contents, name) or _preview(contents, name))

    def answer(query: Mapping[str, str]) -> dict[str, Any]:
        number, run, start = (_number(query, name) for name in ("number", "run", "from"))
        text, length = contents.answer_text(number, run, start)
        return {"text": text, "length": length}

    def number(query: Mapping[str, str]) -> dict[str, int]:
        if len(instance := query.get("id", "")) > _LONGEST_WORDS:
            raise SpecError(f"an id to open must be at most {_LONGEST_WORDS} characters.")
        return {"number": contents.number(instance)}

    readers: dict[str, Callable[[Mapping[str, str]], Any]] = {
        "head": lambda query: contents.head(),
        "index": lambda query: contents.index(),
        "overview": lambda query: contents.overview(whole=query.get("part") != "first"),
        "rows": lambda query: contents.rows(_numbers(query, "numbers")),
        "number": number,
        "instance": lambda query: contents.instance(_number(query, "number")),
        "search": lambda query: contents.search(_words(query)),
        "answer": answer,
    }
    return [
        *(Route(f"/api/{name}", reading(read)) for name, read in readers.items()),
        Route("/api/changes", changes),
        Route("/media/{name}", medium),
        *labelling_routes(Labelling(contents.folders, contents.instance_id)),
        *(Route(address, respond) for address, respond in _page_files()),
    ]


def json_response(value: Any) -> Response:
    """Return a response with a value of the page's data types."""
    return Response(to_json(value), media_type="application/json", headers=_NO_STORE)


def _page_files() -> list[tuple[str, Handler]]:
    """Return the addresses of the page's files, which are listed once; no other file is served."""
    pages = []
    for path in sorted(_DRAWN.iterdir()):
        if (media_type := _FILE_TYPES.get(path.suffix)) is not None:
            pages.append((f"/{path.name}", _file_handler(path, media_type)))
    return [("/", _file_handler(_DRAWN / "index.html", "text/html")), *pages]


def _file_handler(path: Path, media_type: str) -> Handler:
    async def respond(_: Request) -> Response:
        return Response(path.read_bytes(), media_type=media_type, headers=_NO_STORE)

    return respond


def _original(contents: Contents, name: str) -> Response | None:
    file = contents.media.original(name)
    if file is None:
        return None
    if (path := file.intact_path()) is None or path.suffix not in TYPES:
        return PlainTextResponse("the file of this medium is not there, or is another one now", 404)
    headers = {**_CACHED, "Content-Disposition": f'inline; filename="{path.name}"'}
    return FileResponse(path, media_type=TYPES[path.suffix], headers=headers, stat_result=path.stat())


def _preview(contents: Contents, name: str) -> Response:
    try:
        picture = contents.media.preview(name)
    except MediaError as error:
        return PlainTextResponse(clean(str(error)), 404)
    if picture is None:
        return PlainTextResponse("the page displays no such medium", 404)
    return Response(picture, media_type="image/webp", headers=_CACHED)


def _number(query: Mapping[str, str], name: str) -> int:
    text = query.get(name, "")
    if not _NUMBER.fullmatch(text):
        raise SpecError(f"{name} must be a number.")
    return int(text)


def _numbers(query: Mapping[str, str], name: str) -> list[int]:
    texts = query.get(name, "").split(",")
    if len(texts) > _MOST_ROWS or not all(map(_NUMBER.fullmatch, texts)):
        raise SpecError(f"{name} must be at most {_MOST_ROWS} numbers, separated by commas.")
    return list(dict.fromkeys(map(int, texts)))


def _words(query: Mapping[str, str]) -> str:
    words = query.get("words", "")
    if len(words) > _LONGEST_WORDS:
        raise SpecError(f"the words to search for must be at most {_LONGEST_WORDS} characters.")
    return words
