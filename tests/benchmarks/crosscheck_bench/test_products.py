"""Product folders and their clue graphs, well and badly filled."""

from __future__ import annotations

import json
import os
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.build import BuildOptions
from benchmarks.crosscheck_bench.construction.clue_graph import (
    Clue,
    ClueGraph,
    build_graphs,
    occurs_in,
    remove_value,
)
from benchmarks.crosscheck_bench.construction.human_written_questions import read_authored_questions
from benchmarks.crosscheck_bench.construction.product_templates import _price_ladder
from benchmarks.crosscheck_bench.construction.question_drafts import QuestionDraft
from benchmarks.crosscheck_bench.construction.template_data import TemplateData, form_groups
from benchmarks.crosscheck_bench.crosscheck_build import build
from benchmarks.crosscheck_bench.sources.product_folders import Price, read_catalogue
from benchmarks.errors import SourceError
from benchmarks.rows.files import SkippedRow
from tests.support.data.small import bomb, write_lines, write_picture

SET = Path(__file__).resolve().parents[3] / "assets" / "products"


def kettle(**changes: Any) -> dict[str, Any]:
    """A listing that can be used, in a folder whose images are 48 x 32 pixels."""
    row: dict[str, Any] = {
        "id": "kettle",
        "title": "Nordbrew kettle, red, 1.7 L",
        "description": "It fits mugs by Velmo.",
        "brand": "Nordbrew",
        "category": "kettle",
        "price": {"amount": 24.9, "currency": "EUR"},
        "attributes": {"colour": "red", "volume": "1.7 L"},
        "images": [
            {
                "file": "a.png",
                "view": "front",
                "boxes": [
                    {"attribute": "brand", "value": "NORDBREW", "box": [0, 0, 20, 10]},
                    {"attribute": "price", "value": "€24.90", "box": [0, 10, 20, 20]},
                    {"attribute": "colour", "value": "Red"},
                ],
            },
            {"file": "b.png", "view": "side"},
        ],
    }
    return row | changes


def folder(path: Path, *rows: Any) -> Path:
    write_picture(path / "a.png", 1)
    write_picture(path / "b.png", 2)
    write_lines(path / "products.jsonl", rows)
    return path


def box(**changes: Any) -> dict[str, Any]:
    return kettle(
        images=[{"file": "a.png", "boxes": [{"attribute": "brand", "value": "X", "box": [0, 0, 9, 9]} | changes]}]
    )


# --- folders -------------------------------------------------------------------------------------


def test_rows_and_folders_of_products_are_read_alike(tmp_path: Path) -> None:
    row = kettle()
    folder(tmp_path, row)
    write_picture(tmp_path / "second" / "a.png", 1)
    write_picture(tmp_path / "second" / "b.png", 2)
    del row["id"]
    (tmp_path / "second" / "product.json").write_text(json.dumps(row), "utf-8")
    catalogue = read_catalogue(tmp_path)
    assert [product.id for product in catalogue.products] == ["kettle", "second"]
    assert catalogue.products[0].pictures[0].visible == catalogue.products[1].pictures[0].visible
    assert not catalogue.skipped


def test_oversized_product_file_is_left_out_unread(tmp_path: Path) -> None:
    folder(tmp_path, kettle())
    (tmp_path / "second").mkdir()
    with (tmp_path / "second" / "product.json").open("wb") as file:
        file.truncate(1 << 40)
    catalogue = read_catalogue(tmp_path)
    assert [product.id for product in catalogue.products] == ["kettle"]
    assert [skipped.row for skipped in catalogue.skipped] == ["second/product.json"]


@pytest.mark.parametrize(
    ("row", "where", "reason"),
    [
        (["no object"], "products.jsonl:2", "not a JSON object"),
        (kettle(id="../up"), "products.jsonl:2", "the id is not"),
        (kettle(id=""), "products.jsonl:2", "the id is not"),
        (kettle(), "products.jsonl:2", "repeated"),
        (kettle(id="x", title=""), "products.jsonl:2", "the title is missing"),
        (kettle(id="x", title="A\nB"), "products.jsonl:2", "more than one line"),
        (kettle(id="x", title="A <image> B"), "products.jsonl:2", "marks where a picture stands"),
        (kettle(id="x", title="A" * 600), "products.jsonl:2", "longer than 500"),
        (kettle(id="x", title="\ud800"), "products.jsonl:2", "not valid Unicode"),
        (kettle(id="x", category=None), "products.jsonl:2", "the category is missing"),
        (kettle(id="x", price=24.9), "products.jsonl:2", "the price is not an amount"),
        (kettle(id="x", price={"amount": -1, "currency": "EUR"}), "products.jsonl:2", "the price is not an amount"),
        (kettle(id="x", price={"amount": True, "currency": "EUR"}), "products.jsonl:2", "the price is not an amount"),
        (kettle(id="x", price={"amount": 1, "currency": "euro"}), "products.jsonl:2", "three capital letters"),
        (kettle(id="x", attributes=[1]), "products.jsonl:2", "the attributes are not an object"),
        (kettle(id="x", attributes={"brand": "Y"}), "products.jsonl:2", "an attribute's name"),
        (kettle(id="x", attributes={"other brand": "Y"}), "products.jsonl:2", "an attribute's name"),
        (kettle(id="x", attributes={"a/b": "Y"}), "products.jsonl:2", "an attribute's name"),
        (kettle(id="x", attributes={"size": None}), "products.jsonl:2", "the size is missing"),
        (kettle(id="x", images={}), "products.jsonl:2", "the images are not a list"),
        (kettle(id="x", images=[]), "products.jsonl:2", "no image that can be used"),
        (kettle(id="x", images=["a.png", {"file": "b.png", "view": "1"}]), "products.jsonl:2", "the same view"),
        (kettle(id="x", images=["a.png", "gone.png"]), "products.jsonl:2 image 2", "is missing"),
        (kettle(id="x", images=["a.png", "../a.png"]), "products.jsonl:2 image 2", "leaves the folder"),
        (kettle(id="x", images=["a.png", "text.png"]), "products.jsonl:2 image 2", "is text"),
        (kettle(id="x", images=["a.png", "cut.png"]), "products.jsonl:2 image 2", "truncated or damaged"),
        (kettle(id="x", images=["a.png", "bomb.png"]), "products.jsonl:2 image 2", "megapixels"),
        (kettle(id="x", images=["a.png", 7]), "products.jsonl:2 image 2", "neither a file name nor an object"),
        (kettle(id="x", images=["a.png", {"file": "b.png", "kind": "x"}]), "products.jsonl:2 image 2", "the kind"),
        (box() | {"id": "x"}, "", ""),
        (box(box=[0, 0, 49, 9]) | {"id": "x"}, "products.jsonl:2 image 1", "not within its picture"),
        (box(box=[9, 0, 9, 9]) | {"id": "x"}, "products.jsonl:2 image 1", "has no area"),
        (box(box=[0, 0, 9]) | {"id": "x"}, "products.jsonl:2 image 1", "not four numbers"),
        (box(box="0 0 9 9") | {"id": "x"}, "products.jsonl:2 image 1", "not four numbers"),
        (box(attribute="") | {"id": "x"}, "products.jsonl:2 image 1", "the attribute is missing"),
        (box(value=None) | {"id": "x"}, "products.jsonl:2 image 1", "the value is missing"),
    ],
)
def test_faults_are_reported_by_row(tmp_path: Path, row: Any, where: str, reason: str) -> None:
    folder(tmp_path, kettle(), row)
    (tmp_path / "text.png").write_text("no picture")
    (tmp_path / "cut.png").write_bytes((tmp_path / "a.png").read_bytes()[:60])
    (tmp_path / "bomb.png").write_bytes(bomb(20_000, 20_000))
    catalogue = read_catalogue(tmp_path)
    assert catalogue.products[0].id == "kettle"
    if not where:
        assert not catalogue.skipped
        return
    assert where in [item.row for item in catalogue.skipped]
    assert reason in next(item.reason for item in catalogue.skipped if item.row == where)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("brands.jsonl", "nonsense\n", "not a JSON object"),
        ("brands.jsonl", '{"brand": "Nordbrew", "categories": []}\n', "not a list"),
        ("brands.jsonl", '{"categories": ["kettle"]}\n', "the brand is missing"),
    ],
)
def test_a_bad_row_about_a_brand_is_reported(tmp_path: Path, name: str, content: str, reason: str) -> None:
    (folder(tmp_path, kettle()) / name).write_text(content)
    (problem,) = read_catalogue(tmp_path).skipped
    assert (problem.row, reason in problem.reason) == ("brands.jsonl:1", True)


@pytest.mark.parametrize("name", ["products.jsonl", "brands.jsonl", "authored.jsonl", "labels/annotator-1.jsonl"])
@pytest.mark.parametrize("kind", ["FIFO", "device", "folder", "link to nothing"])
def test_an_optional_file_that_is_no_file_is_refused(tmp_path: Path, name: str, kind: str) -> None:
    file = folder(tmp_path / "source", kettle()) / name
    file.unlink(missing_ok=True)
    file.parent.mkdir(exist_ok=True)
    if kind == "FIFO":
        os.mkfifo(file)
    elif kind == "device":
        file.symlink_to("/dev/zero")
    elif kind == "folder":
        file.mkdir()
    else:
        file.symlink_to("nowhere")
    if file.parent.name == "labels":
        (file.parent / "annotator-2.jsonl").write_text("")
    with pytest.raises(SourceError, match=f"{file.name} (is not a regular file|cannot be read)"):
        build([("products", str(tmp_path / "source"))], tmp_path / "out", BuildOptions())


def test_folder_without_products_is_an_error(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(SourceError, match=r"expected products\.jsonl with a product a line"):
            build([("products", str(place))], tmp_path / "out", BuildOptions())
    folder(tmp_path, kettle(title=""))
    with pytest.raises(SourceError, match=r"no usable product \(products\.jsonl:1: the title is missing"):
        build([("products", str(tmp_path))], tmp_path / "out", BuildOptions())
    assert not (tmp_path / "out").exists()


def test_picture_changed_during_the_build_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks.crosscheck_bench.construction import crosscheck_construction

    catalogue = read_catalogue(SET)

    def changed(_: Path) -> Any:
        for product in catalogue.products:
            for picture in product.pictures:
                object.__setattr__(picture, "load", lambda: b"\x89PNG\r\n\x1a\nother")
        return catalogue

    monkeypatch.setattr(crosscheck_construction, "read_catalogue", changed)
    with pytest.raises(SourceError, match="changed while the products were read"):
        build([("products", str(SET))], tmp_path / "out", BuildOptions())


# --- graphs --------------------------------------------------------------------------------------


def test_graph_contains_clues_of_picture_text_and_listing(tmp_path: Path) -> None:
    other = kettle(
        id="mug", title="Velmo mug, blue, 300 ml", brand="Velmo", category="mug", description="", images=["b.png"]
    )
    other["attributes"] = {"colour": "blue", "volume": "300 ml"}
    (graph, _) = build_graphs(read_catalogue(folder(tmp_path, kettle(), other))).values()
    values = {(fact.id, fact.modality, fact.value) for fact in graph.facts}
    assert values == {
        ("kettle/front/brand", "image", "NORDBREW"),
        ("kettle/front/price", "image", "€24.90"),
        ("kettle/front/colour", "image", "Red"),
        ("kettle/title/brand", "text", "Nordbrew"),
        ("kettle/title/category", "text", "kettle"),
        ("kettle/title/colour", "text", "red"),
        ("kettle/title/volume", "text", "1.7 L"),
        ("kettle/description/brand", "text", "Velmo"),
        ("kettle/listing/brand", "listing", "Nordbrew"),
        ("kettle/listing/category", "listing", "kettle"),
        ("kettle/listing/spu", "listing", "kettle"),
        ("kettle/listing/colour", "listing", "red"),
        ("kettle/listing/volume", "listing", "1.7 L"),
        ("kettle/listing/price", "listing", "€24.90"),
    }
    brand = graph.by_id["kettle/front/brand"]
    assert (brand.frame, brand.box) == (0, (0, 0, 20, 10))
    # The description names another brand and not its own: the listing contradicts itself, which is found and not asked about.
    assert set(graph.discrepancies) == {"brand"}
    assert set(graph.comparisons) == {"brand", "price", "colour", "category", "volume"}


def test_contradictions_between_modalities_are_found_and_excluded(tmp_path: Path) -> None:
    row = kettle(description="")
    row["images"][0]["boxes"][1]["value"] = "$24.90"
    row["images"][0]["boxes"].append({"attribute": "product", "value": "kettle", "box": [0, 0, 40, 30]})
    catalogue = build([("products", str(folder(tmp_path / "in", row)))], tmp_path / "out", BuildOptions())
    report = catalogue.manifest["construction"][0]
    assert report["discrepancies"] == {"kettle": ["price"]}
    assert report["consistent"] == round(1 - 1 / report["comparisons"], 4)
    assert report["tasks"]["SP"]["samples"] == 0
    assert report["tasks"]["BR"]["samples"] > 0


@pytest.mark.parametrize(
    ("attribute", "answers"), [("brand", ["Nordbrew"]), ("covered brand", []), ("other brand", []), ("price", [])]
)
def test_brand_is_not_asked_if_the_slice_never_shows_it(tmp_path: Path, attribute: str, answers: list[str]) -> None:
    box = {"attribute": attribute, "value": "Nordbrew", "box": [0, 0, 20, 10]}
    frames = [
        {"file": "a.png", "view": "1", "kind": "frame", "boxes": [box]},
        {"file": "b.png", "view": "2", "kind": "frame"},
    ]
    frames += [{"file": "a.png", "view": "3", "kind": "frame"}, {"file": "b.png", "view": "front"}]
    row = kettle(description="", price=None, images=frames)
    mug = kettle(id="mug", brand="", title="Mug, blue", description="", attributes={}, images=["a.png"])
    mug["images"] = [{"file": "a.png", "boxes": [{"attribute": "product", "value": "mug"}]}]
    catalogue = build([("products", str(folder(tmp_path / "in", row, mug)))], tmp_path / "out", BuildOptions())
    assert [item["answer"] for item in catalogue.rows() if item["task"] == "BR*"] == answers


def test_product_set_has_only_the_intended_contradictions() -> None:
    catalogue = build_graphs(read_catalogue(SET))
    assert not any(graph.discrepancies for graph in catalogue.values())
    case = catalogue["plovo-shell"]
    assert case.by_id["plovo-shell/title/minor brand"].value == "Sonnar"
    assert sum(len(graph.facts) for graph in catalogue.values()) / len(catalogue) > 12.7  # the paper's mean


@pytest.mark.parametrize(
    ("attribute", "value", "other", "equal"),
    [
        ("price", "$48", "$48.00", True),
        ("price", "$48", "€48", False),
        ("price", "$48", "48", False),
        ("price", "48 SEK", "48 NOK", False),
        ("brand", "NORDBREW", "Nordbrew", True),
        ("volume", "1.7 L", "1,7 kg", False),
        ("volume", "250 ml", "250ml", True),
    ],
)
def test_an_attribute_is_asked_about_if_its_values_are_the_same_for_certain(
    attribute: str, value: str, other: str, equal: bool
) -> None:
    clues = (
        Clue("a", "kettle", "image", attribute, value, "front", 0),
        Clue("b", "kettle", "text", attribute, other, "title"),
    )
    graph = ClueGraph(read_catalogue(SET).products[0], clues)
    assert (not graph.discrepancies) is equal


@pytest.mark.parametrize(
    ("value", "title", "left"),
    [
        ("Nordbrew", "Nordbrew Fjord kettle, steel", "Fjord kettle, steel"),
        ("steel", "Nordbrew kettle, steel, 1.7 L", "Nordbrew kettle, 1.7 L"),
        ("1.7 L", "Nordbrew kettle, steel, 1.7 L", "Nordbrew kettle, steel"),
        ("red", "A bored kettle", None),
        ("kettle", "kettle", None),
        ("x.*", "A kettle", None),
    ],
)
def test_values_are_removed_from_titles_as_words(value: str, title: str, left: str | None) -> None:
    assert remove_value(value, title) == left


@given(st.text(max_size=30), st.text(max_size=60))
@settings(max_examples=200)
def test_any_value_and_any_text_can_be_compared(value: str, words: str) -> None:
    left = remove_value(value, words)
    assert left is None or (occurs_in(value, words) and len(left) <= len(words) + 1)


@given(st.integers(1, 5000), st.sampled_from([0, 0.5, 0.99]), st.integers(0, 3), st.randoms(use_true_random=False))
@settings(max_examples=300)
def test_price_ladder_rises_and_contains_the_price(units: int, cents: float, place: int, random: Any) -> None:
    price = Price(units + cents, "USD")
    ladder = _price_ladder(price, place, random)
    if not ladder:
        assert units < 2 ** (place + 1)
        return
    amounts = [float(price_text.removeprefix("$")) for price_text in ladder]
    assert ladder[place] == str(price)
    assert amounts == sorted(set(amounts))
    # The ending tells nothing, and neither does an exact half beside rounded ones.
    assert len({round(amount % 1, 2) for amount in amounts}) == 1
    wholes = [int(amount) for amount in amounts]
    doubled = [b == 2 * a for a, b in pairwise(wholes)]
    assert all(doubled) or units % 2**place


@given(st.lists(st.integers(0, 30), max_size=80), st.integers(2, 4))
def test_groups_are_disjoint_and_fit(items: list[int], size: int) -> None:
    groups = form_groups(list(enumerate(items)), size, lambda item, other: item[1] % 7 != other[1] % 7)
    members = [item for group in groups for item in group]
    assert len(set(members)) == len(members)
    assert all(len({value % 7 for _, value in group}) == len(group) == size for group in groups)
    left = Counter(value % 7 for n, value in enumerate(items) if (n, value) not in members)
    assert size > 2 or len(left) <= 1


def test_items_that_fit_none_do_not_keep_others_from_fitting() -> None:
    items = ["everything"] * 2_000 + ["lamp", "kettle"]
    groups = form_groups(items, 2, lambda item, other: "everything" not in (item, other) and item != other)
    assert groups == [["lamp", "kettle"]]


# --- authored questions --------------------------------------------------------------------------

GOOD: dict[str, Any] = {
    "id": "a",
    "task": "BI",
    "product": "kestra-trail-750",
    "images": ["scene"],
    "detected": "Nordbrew",
    "at": "kestra-trail-750/scene/other brand",
    "answer": "B",
    "facts": ["kestra-trail-750/scene/other brand", "kestra-trail-750/title/brand"],
}
COVERED: dict[str, Any] = {
    "id": "a",
    "task": "BC",
    "product": "velmo-calm-250",
    "images": ["covered-front"],
    "answer": "Yes",
    "facts": ["velmo-calm-250/covered-front/covered brand", "velmo-calm-250/title/brand"],
}


@pytest.fixture(scope="module")
def material() -> TemplateData:
    catalogue = read_catalogue(SET)
    return TemplateData(catalogue, build_graphs(catalogue))


def _authored(path: Path, material: TemplateData, *rows: Any) -> list[QuestionDraft | SkippedRow]:
    write_lines(path / "authored.jsonl", rows)
    return list(read_authored_questions(path, material))


def test_good_rows_become_questions(tmp_path: Path, material: TemplateData) -> None:
    draft, two = _authored(tmp_path, material, GOOD, COVERED | {"id": "b"})
    assert isinstance(draft, QuestionDraft)
    assert isinstance(two, QuestionDraft)
    assert (draft.answer, draft.conflict, draft.row_id) == ("B", "another brand in the background", "a")
    assert "[0.588, 0.067, 0.941, 0.158]" in draft.question
    assert (two.answer, two.conflict) == ("Yes", "covered brand")


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ([1], "the line is not a JSON object"),
        (GOOD | {"task": "LD"}, "the task is not one of BC, BC*, BI, PI, BI*"),
        (GOOD | {"id": None}, "the row has no id"),
        (GOOD | {"product": "moon"}, "product: the product is not one that can be used"),
        (GOOD | {"facts": GOOD["facts"] + ["kestra-trail-750/front/moon"]}, "facts: "),
        (GOOD | {"facts": ["sonnar-wave/front/brand", *GOOD["facts"]]}, "facts: "),
        (GOOD | {"facts": "all"}, "the facts are not a list"),
        (GOOD | {"facts": GOOD["facts"] * 2}, "the facts name one twice"),
        (GOOD | {"at": "kestra-trail-750/title/brand"}, "at: "),
        (GOOD | {"detected": ""}, "detected: "),
        (COVERED | {"detected": "Velmo"}, "detected: "),
        (GOOD | {"images": ["above"]}, "images: the product has no view 'above'"),
        (GOOD | {"images": ["scene", "front"]}, "images: BI shows one image"),
        (COVERED | {"task": "BC*"}, "images: BC* shows several frames"),
        (GOOD | {"images": ["front"]}, "shown: "),
        (GOOD | {"facts": GOOD["facts"][:1]}, "clues: the row cites fewer than 2 facts"),
        (GOOD | {"answer": "E"}, "answer-form: the answer is not one of A, B, C, D"),
        (COVERED | {"answer": "Maybe"}, "answer-form: the answer is not one of Yes, No"),
        (COVERED | {"question": "<image> <image> Covered?"}, "question: "),
        (GOOD | {"answer": "A"}, "answer: by the cited facts it is B, the row says A"),
        (GOOD | {"detected": "Velmo"}, "answer: by the cited facts it is D, the row says B"),
        (COVERED | {"answer": "No"}, "answer: by the cited facts it is Yes, the row says No"),
        (COVERED | {"images": ["front"], "facts": ["velmo-calm-250/front/brand", "velmo-calm-250/title/brand"]}, "answer: "),
        (COVERED | {"facts": ["velmo-calm-250/covered-front/price", "velmo-calm-250/title/brand"]}, "answer: the cited facts"),
        (GOOD | {"question": f"Is it so? {'The detected brand is correctly detected but irrelevant to the product, including background/incidental appearances and supplier/service mentions'}"}, "leak: "),  # noqa: E501
    ],
)  # fmt: skip
def test_a_bad_row_is_refused_by_name(tmp_path: Path, material: TemplateData, row: Any, reason: str) -> None:
    (outcomes,) = _authored(tmp_path, material, row)
    assert isinstance(outcomes, SkippedRow)
    assert outcomes.row == "authored.jsonl:1"
    assert outcomes.reason.startswith(reason)


def test_duplicate_row_id_is_refused(tmp_path: Path, material: TemplateData) -> None:
    _, outcomes = _authored(tmp_path, material, GOOD, COVERED)
    assert isinstance(outcomes, SkippedRow)
    assert outcomes.reason.startswith("repeated")


# --- hostile rows --------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from([*kettle(), "spu"]), JSON, max_size=4), st.dictionaries(st.sampled_from(["attribute", "value", "box"]), JSON))  # fmt: skip  # noqa: E501
@settings(max_examples=40, deadline=None)
def test_no_row_breaks_a_build(tmp_path_factory: pytest.TempPathFactory, changes: Any, changed_box: Any) -> None:
    place = tmp_path_factory.mktemp("fuzz")
    boxed = {"attribute": "product", "value": "kettle", "box": [0, 0, 40, 30]} | changed_box
    rows = [
        kettle(id="a"),
        box(**changed_box) | {"id": "b"} | changes,
        kettle(id="c", images=[{"file": "a.png", "boxes": [boxed]}]),
    ]
    catalogue = build([("products", str(folder(place / "in", *rows)))], place / "out", BuildOptions())
    assert catalogue.manifest["construction"][0]["products"] >= 1


@given(st.dictionaries(st.sampled_from([*GOOD, "question", "rationale"]), JSON, max_size=3))
@settings(max_examples=100, deadline=None)
def test_no_authored_row_breaks_a_build(
    tmp_path_factory: pytest.TempPathFactory, material: TemplateData, changes: Any
) -> None:
    (catalogue,) = _authored(tmp_path_factory.mktemp("fuzz"), material, GOOD | changes)
    assert isinstance(catalogue, QuestionDraft | SkippedRow)


def test_two_sources_of_products_are_refused(tmp_path: Path) -> None:
    """Their graphs and origins would be written to the same files."""
    with pytest.raises(SourceError, match="one source of products"):
        build([("products", str(SET)), ("products-figure-8", str(SET))], tmp_path / "out", BuildOptions())
    assert not (tmp_path / "out").exists()
