"""Small MMKC-Bench sources that the tests write, and the reconstructed rows with pictures."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.data.small import write_picture

ROOT = Path(__file__).resolve().parents[3]
SHARED = ROOT.parent / "shared"
MMKC_DATA = SHARED / "data" / "mmkc"
PAPER = SHARED / "papers" / "mmkc-bench.txt"

FACTS = {
    "people_knowledge": {"temporal": "Temporal_error", "location": "location_error", "Career": "Career_error"},
    "logo_knowledge": {"time": "time_error", "creator": "creator_error", "content": "content_error"},
}


def options(own: str, first: str, second: str, other: str) -> str:
    return f"What is it?\nAnswers:\nA. {own}\nB. {first}\nC. {second}\nD. {other}\n"


def images(name: str) -> list[str]:
    return [f"image/{name}/{name}_{number}.jpg" for number in (1, 2, 3)]


def er_row(number: int = 1, **more: Any) -> dict[str, Any]:
    """A row of ER.json; its own answer is A, the wrong texts agree with B and C."""
    name = f"Tower {number}"
    return {
        "ID": number,
        "instance": name,
        "image_path": images(f"tower{number}"),
        "description": f"This image is the {name}. {name} is a landmark.",
        "mis_description": {
            "incorrect_description_1": f"This image is the Bridge {number}. Bridge {number} is a landmark.",
            "incorrect_description_2": f"This image is the Palace {number}. Palace {number} is a landmark.",
        },
        "open_query": "What is the building in the image?",
        "mcq_query": options(name, f"Bridge {number}", f"Palace {number}", f"Garden {number}"),
        "mcq_disanswer1": "B",
        "mcq_disanswer2": "C",
        **more,
    }


def knowledge_row(number: int, file: str = "people_knowledge", **more: Any) -> dict[str, Any]:
    """A row of people_knowledge.json or logo_knowledge.json, with options for its three facts; own is A, wrong B and C."""
    year, place, work = 1900 + number, f"Land{number}", f"trade{number}"
    facts = FACTS[file]
    name = f"{'Person' if file.startswith('people') else 'Brand'} {number}"

    def text(first: object, second: str, third: str) -> str:
        return f"{name} began in {first}. {name} is of {second}. {name} does {third}."

    right = (year, place, work)
    wrong = ((year + 100, year + 200), (f"Else{number}", f"Other{number}"), (f"craft{number}", f"game{number}"))
    row: dict[str, Any] = {
        "ID": number,
        "instance": name,
        "image_path": images(f"{file[:4]}{number}"),
        "knowledge": text(*right),
        "mis_knowledge": {},
    }
    for place_, (fact, error) in enumerate(facts.items()):
        edits = {}
        for k in (0, 1):
            changed = [str(value) for value in right]
            changed[place_] = str(wrong[place_][k])
            edits[f"mis_knowledge{k + 1}"] = text(*changed)
        row["mis_knowledge"][error] = edits
        row[f"open_query_{fact}"] = f"What is the {fact} of it?"
        row[f"mcq_query_{fact}"] = options(
            str(right[place_]), str(wrong[place_][0]), str(wrong[place_][1]), f"nothing{number}"
        )
        row[f"mcq_disanswer_{fact}_1"], row[f"mcq_disanswer_{fact}_2"] = "B", "C"
    return row | more


def folder(place: Path, **files: Sequence[Any]) -> Path:
    """A published folder with ``files`` (name without .json to rows) and the pictures that its rows name.

    Those in ``image/none/`` are not there.
    """
    (place / "image").mkdir(parents=True, exist_ok=True)
    count = 0
    for name, rows in files.items():
        (place / f"{name}.json").write_text(json.dumps(list(rows)), "utf-8")
        for row in rows:
            for path in (row.get("image_path") or []) if isinstance(row, dict) else []:
                if isinstance(path, str) and path.startswith("image/") and "/none/" not in path:
                    count += 1
                    write_picture(place / path, count, "JPEG")
    return place


def whole_folder(place: Path, per_type: int = 2) -> Path:
    """``each`` rows of all four files."""
    numbers = range(1, per_type + 1)
    signs = [
        er_row(
            100 + n,
            description=f"This is a happy{n} expression.",
            mis_description={
                "incorrect_description_1": f"This is a sad{n} expression.",
                "incorrect_description_2": f"This is a nervous{n} expression.",
            },
            mcq_query=options(f"happy{n}", f"sad{n}", f"nervous{n}", f"angry{n}"),
        )
        for n in numbers
    ]
    return folder(
        place,
        ER=[er_row(n) for n in numbers],
        IS=signs,
        people_knowledge=[knowledge_row(n) for n in numbers],
        logo_knowledge=[knowledge_row(n, "logo_knowledge") for n in numbers],
    )


def reconstructed_folder(place: Path, people: int | None = None, logos: int | None = None) -> Path:
    """The reconstructed rows with three pictures each: real logos where there are some, else drawn ones."""
    count = 0
    for name, most in (("people_knowledge", people), ("logo_knowledge", logos)):
        rows: list[Mapping[str, Any]] = json.loads((MMKC_DATA / f"{name}.reconstructed.json").read_text("utf-8"))
        chosen = rows if most is None else _with_real_logos_first(rows)[:most]
        (place / "image").mkdir(parents=True, exist_ok=True)
        (place / f"{name}.json").write_text(json.dumps(chosen), "utf-8")
        for row in chosen:
            first = place / row["image_path_first"]
            real = [path.read_bytes() for path in _logos(row["instance"])]
            for number, path in enumerate((first, *(first.with_name(f"{first.stem}_{n}.png") for n in ("x", "y")))):
                count += 1
                if number < len(real):
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(real[number])
                else:
                    write_picture(path, count)
    return place


def _logos(instance: str) -> list[Path]:
    name = instance.casefold().replace(" ", "-")
    return [path for size in ("optimized", "thumb") if (path := MMKC_DATA / "logos" / f"{name}_{size}.png").is_file()]


def _with_real_logos_first(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return sorted(rows, key=lambda row: not _logos(row["instance"]))
