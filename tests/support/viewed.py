"""The page of `rashomon view`: its columns decoded, and a real server with a client that has the session."""

from __future__ import annotations

import base64
import http.client
import json
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.view.contents.page_contents import Contents
from app.view.contents.page_types import LACKING, OUTCOMES
from tests.support.command import Rashomon

ADDRESSES = (
    "/",
    "/main.js",
    "/page.css",
    "/api/head",
    "/api/index",
    "/api/overview",
    "/api/rows?numbers=0,1",
    "/api/instance?number=0",
    "/api/search?words=trams",
    "/api/answer?number=0&run=0&from=0",
    "/api/changes?since=0",
)
"""Addresses that the page requests, of a run in which a text is searched for."""


class Column(NamedTuple):
    """The outcome, label and flags of a run's answer on the page; None for an instance that the run lacks."""

    outcome: str | None
    label: str | None
    flags: int


def decoded(text: str, kind: str) -> NDArray[Any]:
    """Return the array of a column."""
    return np.frombuffer(base64.b64decode(text), f"<{kind}")


def listed(contents: Contents, run: int = 0) -> dict[str, Column]:
    """Return what the page's index says of a run's answers, by instance."""
    columns, head = contents.index().runs[run], contents.head()
    codes = zip(*(decoded(text, "u1") for text in (columns.outcome, columns.label, columns.flags)), strict=True)
    return {
        id_: Column(
            None if outcome == LACKING else OUTCOMES[outcome],
            None if label == LACKING else head.labels[label],
            int(flags),
        )
        for id_, (outcome, label, flags) in zip(contents.instances.ids, codes, strict=True)
    }


class Reply(NamedTuple):
    """A response."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Viewer:
    """A browser as far as a server can tell: it opens the link, and keeps the cookie."""

    def __init__(self, link: str) -> None:
        self.link = link
        self.port = int(link.split(":")[2].partition("/")[0])
        self.origin = f"http://127.0.0.1:{self.port}"
        self.cookie = ""

    def open(self) -> Reply:
        """Open the link once."""
        reply = self.get("/" + self.link.partition("/?")[2].partition("#")[0].join(("?", "")))
        self.cookie = reply.headers.get("set-cookie", "").partition(";")[0]
        return reply

    def get(self, path: str, method: str = "GET", body: str | None = None, **headers: str) -> Reply:
        """Send a request with the cookie; names of headers have ``_`` for ``-``, and an empty one is left out."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        sent = {"Cookie": self.cookie, **{name.replace("_", "-"): value for name, value in headers.items()}}
        try:
            connection.request(method, path, body, {name: value for name, value in sent.items() if value})
            response = connection.getresponse()
            return Reply(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    def json(self, path: str) -> Any:
        """Return the JSON at an address, which must be there."""
        reply = self.get(path)
        assert reply.status == 200, reply
        return reply.json


@contextmanager
def viewing(home: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], Viewer]]:
    """A real server of the workspace in ``home``, and a viewer that has not opened the link yet."""
    process = Rashomon(home).start("view", *arguments, "--no-browser")
    try:
        assert process.stdout is not None
        link = process.stdout.readline().strip()
        if not link.startswith("http://127.0.0.1:"):
            raise AssertionError(process.communicate(timeout=30))
        yield process, Viewer(link)
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
