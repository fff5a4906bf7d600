"""A saved page, read as its own script reads it."""

from __future__ import annotations

import hashlib
import io
import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from PIL import Image

from app.store.run_store import RunStore
from app.store.run_titles import set_title
from app.store.workspace import Workspace
from benchmarks.vocabulary import Generation, Instance, Media, Text
from tests.support.hostile_texts import HOSTILE
from tests.support.runs import instances, make_run, says

_ELEMENT = re.compile(
    r'<script type="(application/json|text/plain)" id="([a-z]+)(?:-(\d+))?">(.*?)</script>', re.DOTALL
)


@dataclass(frozen=True)
class SavedContents:
    """The contents of a saved page. ``media`` are ``data:`` URIs by their ids."""

    head: dict[str, Any]
    index: dict[str, Any]
    overview: dict[str, Any]
    rows: list[dict[str, Any]]
    instances: list[dict[str, Any]]
    media: dict[str, str]


def read_saved_page(text: str) -> SavedContents:
    """Return the contents of a saved page, whose instances are checked to be in order."""
    lists: dict[str, list[dict[str, Any]]] = {"rows": [], "instances": []}
    first: dict[str, Any] = {}
    media: dict[str, str] = {}
    for _, name, place, content in _ELEMENT.findall(text):
        if name == "media":
            media[f"media-{place}"] = content
        elif name == "contents":
            first = json.loads(content)
        else:
            assert int(place) * first["block"] == len(lists[name])
            lists[name] += json.loads(content)
    for name in lists:
        assert [item["number"] for item in lists[name]] == list(range(first["head"]["instances"]))
    return SavedContents(first["head"], first["index"], first["overview"], media=media, **lists)


def add_picture(build: Path) -> Media:
    """Return a picture that was added to a folder of media."""
    out = io.BytesIO()
    Image.new("RGB", (900, 600), "#c1440e").save(out, "PNG")
    picture = Media(hashlib.sha256(out.getvalue()).hexdigest(), ".png")
    (build / "media").mkdir(parents=True, exist_ok=True)
    (build / "media" / picture.name).write_bytes(out.getvalue())
    return picture


def make_hostile_runs(home: Path) -> Workspace:
    """Return a workspace with two runs in whose every text is something hostile; their pictures can be displayed."""
    workspace = Workspace(home / "workspace")
    picture = add_picture(home / "build")
    items = [
        replace(
            item,
            question=text,
            parts=(Text(text), picture, Text(text)),
            references={**item.references, f"says {text}": (text, "12")},
            strata={**item.strata, "kind": text, f"key {text}": "value"},
        )
        for number, text in enumerate(HOSTILE)
        for item in instances(len(HOSTILE))[6 * number : 6 * number + 2]
    ]

    def answers(instance: Instance) -> Generation:
        text = HOSTILE[int(instance.group[-4:])]
        if instance.condition == "aligned":
            return says(f"<think>{text}\n</think>\n{text} 12")(instance)
        return replace(says("")(instance), finish_reason="error", error=text)

    for number, model in enumerate(("policy:always-image", "policy:always-text")):
        name = HOSTILE[5 * number].replace("/", "_")
        folder = make_run(workspace, f"run-{number}", items, answers, model=model, data=home / "build")
        folder = folder.rename(folder.with_name(name))
        set_title(folder, HOSTILE[number + 1])
        with RunStore.open(folder) as store:
            store.set_meta("state", {"state": "planned", "note": HOSTILE[number]})
    return workspace
