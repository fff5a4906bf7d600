"""Text models for tests: one that asks a server, and one that is a function with a reply cache."""

from __future__ import annotations

import json
import random
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed

from benchmarks.text_model import TextModel
from benchmarks.vocabulary import Choice, Generation, JSONObject, Request, Text

Reply = Callable[[Request], Generation]


class Interrupted(Exception):
    """Simulated interrupt."""


class CachedModel(TextModel):
    """Scripted model with a reply cache by content, ``kept``; ``asked`` lists the requests that missed it.

    ``most`` requests are answered, then the plug is pulled. Replies come in an order that ``shuffle`` decides.
    """

    def __init__(
        self, reply: Reply, *, replies: dict[str, Generation] | None = None, most: int | None = None, shuffle: int = 0
    ) -> None:
        self.name = "scripted"
        self.kept = {} if replies is None else replies
        self.asked: list[Request] = []
        self._reply = reply
        self._most = most
        self._random = random.Random(shuffle)

    def generate(self, requests: Iterable[Request]) -> Iterator[Generation]:
        waiting = list(requests)
        self._random.shuffle(waiting)
        for request in waiting:
            if request.digest not in self.kept:
                if self._most is not None and len(self.asked) >= self._most:
                    raise Interrupted
                self.asked.append(request)
                self.kept[request.digest] = self._reply(request)
            reply = self.kept[request.digest]
            yield Generation(request.id, reply.text, reply.finish_reason, error=reply.error)


class Remote(TextModel):
    """Asks an OpenAI-compatible server, several requests at once, replies as they come."""

    def __init__(self, url: str) -> None:
        self.name = "scripted"
        self._url = f"{url}/chat/completions"

    def generate(self, requests: Iterable[Request]) -> Iterator[Generation]:
        with ThreadPoolExecutor(4) as pool:
            for future in as_completed([pool.submit(self.answer, request) for request in requests]):
                yield future.result()

    def answer(self, request: Request) -> Generation:
        """The reply to one request."""
        data = urllib.request.Request(
            self._url, json.dumps(_body(request)).encode(), {"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(data, timeout=30) as response:
                choice = json.load(response)["choices"][0]
        except urllib.error.HTTPError as error:
            return Generation(request.id, "", "error", error=f"HTTP {error.code}")
        return Generation(request.id, choice["message"]["content"], choice["finish_reason"])


def _body(request: Request) -> dict[str, object]:
    texts = [
        {"role": m.role, "content": "".join(p.text for p in m.parts if isinstance(p, Text))} for m in request.messages
    ]
    body: dict[str, object] = {
        "model": "scripted",
        "messages": texts,
        "max_tokens": request.decoding.max_tokens,
        "temperature": request.decoding.temperature,
        "seed": request.decoding.seed,
    }
    if isinstance(request.form, JSONObject):
        schema = {"name": "reply", "strict": True, "schema": request.form.schema()}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif isinstance(request.form, Choice):
        raise AssertionError("no construction asks for a choice")
    return body
