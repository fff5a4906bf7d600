"""Facts that a model reads off products: what it is asked, its error rate, what is used of it, and people's corrections."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks.build import Build, BuildOptions
from benchmarks.crosscheck_bench.construction.fact_corrections import FILE, NOTHING
from benchmarks.errors import ModelError, SourceError, SpecError
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Generation, JSONObject, Media, Request, Text
from tests.benchmarks.crosscheck_bench.test_products import kettle
from tests.support.data.small import write_lines, write_picture
from tests.support.text_models import CachedModel

FIELDS = ("brand", "colour", "volume", "price")
Readings = Mapping[str, Mapping[str, Any] | str | None]

KETTLE = kettle()
JUG = kettle(
    id="jug",
    title="Kestra jug, blue, 1 L",
    description="A jug.",
    brand="Kestra",
    category="jug",
    price={"amount": 12, "currency": "EUR"},
    attributes={"colour": "blue", "volume": "1 L"},
    images=[{"file": "jug.png", "view": "front"}, {"file": "logo.png", "view": "logo", "kind": "logo"}],
)

QUESTION = {
    "id": "bc-1",
    "task": "BC",
    "product": "kettle",
    "images": ["front"],
    "facts": ["kettle/front/brand", "kettle/title/brand"],
    "answer": "No",
}
"""A question that such a folder allows whatever is read off it, so that there is a build."""


def products(folder: Path, *rows: Mapping[str, Any]) -> Path:
    """A folder of the kettle, whose first picture has boxes, and the jug, without any; or of ``rows``."""
    for number, name in enumerate(("a", "b", "jug", "logo")):
        write_picture(folder / f"{name}.png", number)
    write_lines(folder / "products.jsonl", rows or (KETTLE, JUG))
    write_lines(folder / "authored.jsonl", [QUESTION])
    return folder


class Reader(CachedModel):
    """A model that reads by place, such as "kettle/front"; it states nothing of what ``readings`` lack."""

    def __init__(self, source: Path, readings: Readings) -> None:
        super().__init__(self._read)
        self._readings = readings
        self._places: dict[str, str] = {}
        self.texts: dict[str, str] = {}
        for line in (source / "products.jsonl").read_text("utf-8").splitlines():
            row = json.loads(line)
            for image in row["images"]:
                sha256 = hashlib.sha256((source / image["file"]).read_bytes()).hexdigest()
                self._places[sha256] = f"{row['id']}/{image['view']}"
            for name in ("title", "description"):
                self._places[f"{name.capitalize()}: {json.dumps(row[name], ensure_ascii=False)}"] = (
                    f"{row['id']}/{name}"
                )

    def _read(self, request: Request) -> Generation:
        *media, text = request.messages[0].parts
        assert isinstance(text, Text)
        assert isinstance(request.form, JSONObject)
        assert tuple(sorted(request.form.properties)) == tuple(sorted(FIELDS))
        shown = [part.sha256 for part in media if isinstance(part, Media)]
        place = self._places[shown[0] if shown else text.text.splitlines()[-1]]
        self.texts[place] = text.text
        reading = self._readings.get(place, {})
        if reading is None:
            return Generation(request.id, "", "error", error="it broke")
        reply = reading if isinstance(reading, str) else json.dumps(dict.fromkeys(FIELDS, "") | dict(reading))
        return Generation(request.id, reply, "stop")


def build(source: Path, readings: Readings | None) -> tuple[Build, list[dict[str, str]], Reader | None]:
    """Build with a reader, if there are ``readings``; return the build, its sheet and the reader."""
    reader = None if readings is None else Reader(source, readings)
    options = BuildOptions(per_stratum=5, extractor=reader, replace=True)
    built = get_benchmark("crosscheck-bench").build([("products", str(source))], source.parent / "out", options)
    sheet = built.path / FILE
    rows = list(csv.DictReader(sheet.read_text("utf-8").splitlines())) if sheet.exists() else []
    return built, rows, reader


def outcomes(rows: list[dict[str, str]]) -> dict[str, str]:
    return {f"{row['product']}/{row['place']}/{row['attribute']}": row["outcome"] for row in rows}


def facts(built: Build) -> dict[str, str]:
    """The facts of pictures and texts by id."""
    graphs = [json.loads(line) for line in (built.path / "graphs.jsonl").read_text("utf-8").splitlines()]
    return {fact["id"]: fact["value"] for graph in graphs for fact in graph["facts"] if fact["modality"] != "listing"}


def fill(built: Build, source: Path, values: Mapping[str, str]) -> None:
    """Write people's values into a copy of the sheet in the product folder, as a spreadsheet would."""
    lines = list(csv.reader((built.path / FILE).read_text("utf-8").splitlines()))
    for line in lines[1:]:
        line[-1] = values.get("/".join(line[:3]), line[-1])
    with (source / FILE).open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows(lines)


def test_stated_values_measure_the_model_and_stay_as_they_are(tmp_path: Path) -> None:
    source = products(tmp_path / "source")
    readings: Readings = {
        "kettle/front": {"brand": "nordbrew", "colour": "blue", "price": "", "volume": "3 L"},
        "kettle/title": {"brand": "Nordbrew", "colour": "RED", "volume": "1.7 l"},
        "jug/title": "It is a jug.",
    }
    built, rows, reader = build(source, readings)
    before, _, _ = build(products(tmp_path / "again" / "source"), None)
    extraction = built.manifest["extraction"]
    image, text = extraction["image"], extraction["text"]
    assert image | {"interval": None} == {
        "stated": 3,
        "right": 1,
        "wrong": 1,
        "missed": 1,
        "unparsed": 0,
        "error_rate": 0.6667,
        "interval": None,
    }
    assert text | {"interval": None} == {
        "stated": 6,
        "right": 3,
        "wrong": 0,
        "missed": 0,
        "unparsed": 3,
        "error_rate": 0.0,
        "interval": None,
    }
    (table,) = [t for t in get_benchmark("crosscheck-bench").build_tables(built) if t.name == "extraction"]
    assert dict(table.rows)["pictures, 3 stated values / right"] == (1,)
    assert text["interval"] is None, "what is unparsed is no error, and the kettle is the only product that was read"
    assert built.manifest["models"]["extractor"] == "scripted"
    assert extraction["used"] == 0, "a picture with boxes is only measured"
    assert facts(built) == facts(before)
    assert outcomes(rows) == {
        "kettle/front/brand": "right",
        "kettle/front/colour": "wrong",
        "kettle/front/price": "missed",
        "kettle/front/volume": "differs",
        "kettle/title/brand": "right",
        "kettle/title/colour": "right",
        "kettle/title/volume": "right",
        "jug/title/brand": "unparsed",
        "jug/title/colour": "unparsed",
        "jug/title/volume": "unparsed",
    }
    settled = [row["outcome"] in ("right", "agrees") for row in rows]
    assert settled == sorted(settled), "what is to be corrected comes first"
    assert reader is not None
    assert 'exactly these fields: "brand", "colour", "volume", "price".' in reader.texts["kettle/front"]


def test_the_interval_of_the_error_rate_is_over_products(tmp_path: Path) -> None:
    readings: Readings = {
        "kettle/title": {"brand": "Nordbrew", "colour": "RED", "volume": "1.7 l"},
        "jug/title": {"brand": "Other", "colour": "pink", "volume": "9 l"},
    }
    built, _, _ = build(products(tmp_path / "source"), readings)
    text = built.manifest["extraction"]["text"]
    low, high = text["interval"]
    assert 0 <= low < text["error_rate"] < high <= 1


def test_a_picture_without_boxes_gets_the_facts_that_are_read_off_it(tmp_path: Path) -> None:
    readings: Readings = {
        "jug/front": {"brand": "KESTRA", "colour": "Blue"},
        "jug/logo": {"brand": "Kestra"},
        "kettle/side": {"colour": "green"},
    }
    built, rows, _ = build(products(tmp_path / "source"), readings)
    read = {
        name: value for name, value in facts(built).items() if name.startswith(("jug/front", "jug/logo", "kettle/side"))
    }
    assert read == {
        "jug/front/brand": "Kestra",
        "jug/front/colour": "blue",
        "jug/logo/brand": "Kestra",
        "kettle/side/colour": "green",
    }
    assert built.manifest["extraction"]["not_stated"] == {"agrees": 3, "differs": 1}
    assert built.manifest["extraction"]["used"] == 4
    assert built.manifest["construction"][0]["discrepancies"] == {"kettle": ["colour"]}
    listed = outcomes(rows)
    assert listed["kettle/side/colour"] == "differs"
    assert listed["kettle/listing/colour"] == "disagrees", "people see what it disagrees with"


def test_a_text_that_says_another_value_than_the_listing_is_a_discrepancy(tmp_path: Path) -> None:
    odd = KETTLE | {"title": "Nordbrew kettle, red, 2 L"}
    source = products(tmp_path / "source", odd, JUG)
    readings: Readings = {"kettle/title": {"brand": "Nordbrew", "colour": "red", "volume": "2 L", "price": "99 EUR"}}
    without, _, _ = build(source, None)
    assert not without.manifest["construction"][0]["discrepancies"], "no rule knows this volume"
    built, rows, _ = build(source, readings)
    assert built.manifest["construction"][0]["discrepancies"] == {"kettle": ["volume"]}
    assert outcomes(rows)["kettle/title/price"] == "differs"
    assert "kettle/title/price" not in facts(built), "a value that the text does not hold is no fact"


def test_a_text_that_disagrees_with_the_listing_stays_unsettled_however_it_is_read(tmp_path: Path) -> None:
    odd = KETTLE | {"title": "Nordbrew kettle, blue, 1.7 L"}
    source = products(tmp_path / "source", odd, JUG)
    _, rows, _ = build(source, None)
    assert outcomes(rows)["kettle/title/colour"] == "disagrees"
    built, rows, _ = build(source, {"kettle/title": {"brand": "Nordbrew", "colour": "blue", "volume": "1.7 L"}})
    row = next(row for row in rows if (row["product"], row["place"], row["attribute"]) == ("kettle", "title", "colour"))
    assert (row["outcome"], row["stated"], row["extracted"]) == ("disagrees", "blue", "blue")
    assert built.manifest["extraction"]["text"]["right"] == 3, "the model read what the title states"
    settled = [row["outcome"] in ("right", "agrees") for row in rows]
    assert settled == sorted(settled), "what is to be corrected comes first"


def test_a_correction_that_still_disagrees_is_not_settled(tmp_path: Path) -> None:
    source = products(tmp_path / "source")
    write_sheet(source, ("kettle", "front", "colour", "green"))
    for readings in (None, {"kettle/title": {"brand": "Nordbrew"}}):
        _, rows, _ = build(source, readings)
        row = next(row for row in rows if row["value"])
        assert row["outcome"] == "disagrees"
        assert all(before["outcome"] not in ("right", "agrees") for before in rows[: rows.index(row)])


def test_people_correct_what_differs_and_the_next_build_uses_it(tmp_path: Path) -> None:
    source = products(tmp_path / "source")
    readings: Readings = {
        "kettle/front": {"brand": "Nordbrew", "colour": "red", "price": "€24.90"},
        "kettle/side": {"colour": "green", "brand": "Sonnar"},
        "jug/front": {"colour": "blue"},
    }
    built, _, _ = build(source, readings)
    assert built.manifest["construction"][0]["discrepancies"] == {"kettle": ["brand", "colour"]}
    fill(built, source, {"kettle/side/colour": "red", "kettle/side/brand": NOTHING, "kettle/front/price": "€24"})
    again, rows, _ = build(source, readings)
    assert again.manifest["construction"][0]["discrepancies"] == {"kettle": ["price"]}
    assert facts(again)["kettle/side/colour"] == "red"
    assert "kettle/side/brand" not in facts(again)
    values = {f"{row['product']}/{row['place']}/{row['attribute']}": row["value"] for row in rows if row["value"]}
    assert values == {"kettle/side/colour": "red", "kettle/side/brand": NOTHING, "kettle/front/price": "€24"}
    listed = outcomes(rows)
    assert (listed["kettle/side/colour"], listed["kettle/side/brand"]) == ("wrong", "wrong"), "people's values count"
    box = next(
        fact["box"]
        for line in (again.path / "graphs.jsonl").read_text("utf-8").splitlines()
        for fact in json.loads(line)["facts"]
        if fact["id"] == "kettle/front/price"
    )
    assert box == [0, 10, 20, 20], "a corrected value stays in its box"


@pytest.mark.parametrize("readings", [None, {"kettle/title": {"colour": "blue"}}])
def test_a_text_states_nothing_where_people_say_so(tmp_path: Path, readings: Readings | None) -> None:
    source = products(tmp_path / "source", KETTLE | {"title": "Nordbrew kettle, blue, 1.7 L"}, JUG)
    before, _, _ = build(source, readings)
    assert before.manifest["construction"][0]["discrepancies"] == {"kettle": ["colour"]}
    write_sheet(source, ("kettle", "title", "colour", NOTHING))
    built, _, _ = build(source, readings)
    assert not built.manifest["construction"][0]["discrepancies"]
    assert facts(built) == {name: value for name, value in facts(before).items() if name != "kettle/title/colour"}


def test_what_disagrees_without_a_model_is_listed_and_corrected_too(tmp_path: Path) -> None:
    source = products(tmp_path / "source", KETTLE | {"attributes": {"colour": "green", "volume": "1.7 L"}}, JUG)
    built, rows, _ = build(source, None)
    assert outcomes(rows) == {"kettle/front/colour": "disagrees", "kettle/listing/colour": "disagrees"}
    assert "extraction" not in built.manifest
    fill(built, source, {"kettle/listing/colour": "red"})
    again, rows, _ = build(source, None)
    assert not again.manifest["construction"][0]["discrepancies"]
    assert outcomes(rows) == {"kettle/listing/colour": "corrected"}


def test_corrections_that_cannot_be_applied_are_reported(tmp_path: Path) -> None:
    source = products(tmp_path / "source")
    lines = (
        ("nobody", "front", "colour", "red"),
        ("kettle", "back", "colour", "red"),
        ("kettle", "title", "colour", "=1+1"),
        ("kettle", "listing", "price", "$1"),
        ("kettle", "front", "colour", "<image>"),
        ("kettle", "front", "volume", "a\nb"),
        ("kettle", "listing", "colour", ""),
    )
    with (source / FILE).open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([("product", "place", "attribute", "value"), *lines])
    built, _, _ = build(source, None)
    skipped = [json.loads(line) for line in (built.path / "skipped.jsonl").read_text("utf-8").splitlines()]
    assert [line["row"] for line in skipped if line["row"].startswith(FILE)] == [f"{FILE}:{n}" for n in range(2, 8)]
    (source / FILE).write_bytes(b"\x00\x01")
    with pytest.raises(SourceError):
        build(source, None)


def refused_lines(built: Build) -> list[tuple[str, str]]:
    """The lines of people's sheet that were left out, with the reasons."""
    skipped = [json.loads(line) for line in (built.path / "skipped.jsonl").read_text("utf-8").splitlines()]
    return [(line["row"], line["reason"]) for line in skipped if line["row"].startswith(FILE)]


def write_sheet(source: Path, *lines: tuple[str, ...]) -> None:
    with (source / FILE).open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([("product", "place", "attribute", "value"), *lines])


REFUSED = {
    "an unknown product": ("nobody", "front", "colour", "red"),
    "an unknown place": ("kettle", "back", "colour", "red"),
    "an attribute of another spelling in a picture": ("kettle", "front", "color", "blue"),
    "an attribute of another spelling in a text": ("kettle", "title", "color", "red"),
    "an attribute of another spelling in the listing": ("kettle", "listing", "color", "blue"),
    "no attribute": ("kettle", "front", "", "blue"),
    "a value that the text does not have": ("kettle", "title", "colour", "violet"),
    "a value that is corrected elsewhere": ("kettle", "listing", "price", "€1"),
    "a value that marks a picture": ("kettle", "front", "colour", "<image>"),
}


@pytest.mark.parametrize("line", REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("readings", [None, {"kettle/title": {"colour": "red"}, "kettle/front": {"colour": "red"}}])
def test_a_refused_line_is_reported_and_changes_nothing(
    tmp_path: Path, line: tuple[str, ...], readings: Readings | None
) -> None:
    before, _, _ = build(products(tmp_path / "before" / "source"), readings)
    source = products(tmp_path / "source")
    write_sheet(source, line)
    built, rows, _ = build(source, readings)
    ((row, reason),) = refused_lines(built)
    assert row == f"{FILE}:2"
    assert reason
    first = rows[0]
    assert (first["product"], first["place"], first["attribute"], first["value"]) == line
    assert first["outcome"] == "refused"
    assert "corrected" not in outcomes(rows).values()
    assert (built.path / "graphs.jsonl").read_bytes() == (before.path / "graphs.jsonl").read_bytes()


def test_two_lines_for_one_fact_are_refused_and_kept(tmp_path: Path) -> None:
    source = products(tmp_path / "source")
    write_sheet(source, ("kettle", "front", "colour", "blue"), ("kettle", "front", "colour", "green"))
    built, rows, _ = build(source, None)
    reason = "another line corrects the same fact; keep one of them"
    assert refused_lines(built) == [(f"{FILE}:2", reason), (f"{FILE}:3", reason)]
    assert [(row["value"], row["outcome"]) for row in rows] == [("blue", "refused"), ("green", "refused")]
    assert facts(built)["kettle/front/colour"] == "Red"


def test_an_attribute_that_the_listing_loses_is_still_corrected_elsewhere(tmp_path: Path) -> None:
    source = products(tmp_path / "source")
    write_sheet(source, ("jug", "listing", "volume", NOTHING), ("jug", "front", "volume", "1 L"))
    built, rows, _ = build(source, None)
    assert not refused_lines(built)
    assert outcomes(rows)["jug/front/volume"] == "corrected"
    assert facts(built)["jug/front/volume"] == "1 L"


@pytest.mark.parametrize("kind", ["FIFO", "symlink loop", "folder", "unreadable", "empty"])
def test_a_sheet_that_is_no_readable_file_is_refused(tmp_path: Path, kind: str) -> None:
    source = products(tmp_path / "source")
    sheet = source / FILE
    if kind == "FIFO":
        os.mkfifo(sheet)
    elif kind == "symlink loop":
        sheet.symlink_to(sheet)
    elif kind == "folder":
        sheet.mkdir()
    else:
        sheet.write_bytes(b"")
        if kind == "unreadable":
            sheet.chmod(0)
            if os.access(sheet, os.R_OK):
                pytest.skip("this user reads everything")
    with pytest.raises(SourceError, match=re.escape(FILE)) as caught:
        build(source, None)
    assert caught.value.exit_code == 2
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("column", ["product", "place", "attribute", "value"])
def test_a_sheet_without_a_column_is_refused(tmp_path: Path, column: str) -> None:
    source = products(tmp_path / "source")
    header = "product,place,attribute,value".replace(column, "produkt")
    (source / FILE).write_text(f"{header}\nkettle,front,colour,blue\n", "utf-8")
    with pytest.raises(SourceError, match=f"^{FILE} has no column '{column}'; ") as caught:
        build(source, None)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    "reply",
    ["", "[]", '{"brand": 5}', '{"brand": ["Nordbrew"]}', '{"brand": "a\\nb"}', '{"brand": "<image>"}', "x" * 30_000],
)
def test_hostile_replies_are_unparsed(tmp_path: Path, reply: str) -> None:
    built, _, _ = build(products(tmp_path / "source"), {"kettle/front": reply, "jug/front": reply})
    assert built.manifest["extraction"]["image"]["unparsed"] == 3
    assert built.manifest["extraction"]["used"] == 0
    assert built.manifest["extraction"]["replies"] == {"read": 6, "unparsed": 2}, "of the jug no value is stated there"


def test_null_and_missing_fields_state_nothing(tmp_path: Path) -> None:
    built, _, _ = build(products(tmp_path / "source"), {"kettle/front": '{"brand": null, "price": "€24.90"}'})
    image = built.manifest["extraction"]["image"]
    assert (image["right"], image["missed"], image["unparsed"]) == (1, 2, 0)


def test_a_reader_without_products_is_refused(tmp_path: Path) -> None:
    source = products(tmp_path / "source")
    options = BuildOptions(extractor=Reader(source, {}))
    with pytest.raises(SpecError, match="leave --extractor out"):
        get_benchmark("crosscheck-bench").build([("rows", str(source))], tmp_path / "out", options)


def test_a_reader_that_answers_nothing_ends_the_build(tmp_path: Path) -> None:
    source = products(tmp_path / "source")
    places = [
        f"{name}/{place}" for name in ("kettle", "jug") for place in ("front", "side", "logo", "title", "description")
    ]
    with pytest.raises(ModelError, match="answered none"):
        build(source, dict.fromkeys(places))
