"""CLASH's sources: rows that are read, and rows that are skipped with a reason."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.clash.sources import read_source
from benchmarks.clash.sources.clash_released import (
    FILTERED_FILE,
    UNFILTERED_FILE,
    parse_published_sample,
    read_raw_samples,
)
from benchmarks.clash.sources.clash_source_row import SOURCE_NAMES, ClashSourceRow
from benchmarks.clash.sources.sugar_crepe import find_change
from benchmarks.errors import SourceError, SpecError
from benchmarks.rows.files import SkippedRow
from benchmarks.rows.reader_types import RowProblem
from benchmarks.rows.sources import resolve_sources
from tests.support.data.clash import (
    CLASH_DATA,
    TEST_FILE,
    own_folder,
    own_sample,
    published_folder,
    published_row,
)
from tests.support.data.small import write_picture

real = pytest.mark.skipif(not CLASH_DATA.exists(), reason="the real rows are not here")


def _read(name: str, place: Path, seed: int = 0) -> tuple[list[ClashSourceRow], Counter[str]]:
    every = list(read_source(name, str(place), seed))
    return [e for e in every if isinstance(e, ClashSourceRow)], Counter(
        e.reason for e in every if isinstance(e, SkippedRow)
    )


# --- published ---------------------------------------------------------------------------------------


@real
def test_all_published_samples_load_with_distinct_ids() -> None:
    rows = read_raw_samples(TEST_FILE)
    assert rows is not None
    samples = [parse_published_sample(row) for row in rows]
    assert Counter(s.change_type for s in samples) == {"object": 655, "attribute": 634}
    assert len({s.image_id for s in samples}) == 1281
    assert len({s.id for s in samples}) == 1289


@pytest.mark.slow
@real
def test_published_samples_without_images_are_skipped_by_name() -> None:
    rows, reasons = _read("published", CLASH_DATA)
    assert reasons == {"the image is missing; put the file in its place": 1286}
    assert {f.sample.image_id for f in rows} == {"34", "384", "420862"}
    assert all(f.row.startswith("synthetic_captions_test_filtered.json:") for f in rows)


def test_published_row_is_read_completely_with_verbatim_captions(tmp_path: Path) -> None:
    (item,), reasons = _read("published", published_folder(tmp_path, [published_row(7, category=["sports", "food"])]))
    sample = item.sample
    assert not reasons
    assert (sample.image_id, sample.original_caption, sample.distractor) == ("7", "A white cat on couch 7. ", "Orange")
    assert (sample.category, sample.published_category) == ("colors", "food+sports")
    assert item.image() == (tmp_path / "train2017" / "000000000007.jpg").read_bytes()


def test_images_are_found_in_every_supported_folder(tmp_path: Path) -> None:
    folder = published_folder(tmp_path / "data" / "official", [published_row(n) for n in (1, 2, 3)])
    places = ("data/official", "data/coco/val2017", "elsewhere/train2017")
    for number, place in enumerate(places, 1):
        (tmp_path / place).mkdir(parents=True, exist_ok=True)
        name = f"{number:012d}.jpg"
        (folder / "train2017" / name).rename(tmp_path / place / name)
    for given_place in (tmp_path / "data", folder / TEST_FILE.name):
        rows, reasons = _read("published", given_place)
        assert [f.sample.image_id for f in rows] == ["1", "2"]
        assert reasons.total() == 1


BAD_ROWS: list[tuple[Any, str]] = [
    ("not a row", "not a JSON object"),
    (None, "not a JSON object"),
    (published_row("449950"), "not a COCO image id"),
    (published_row(True), "not a COCO image id"),
    (published_row(-1), "not a COCO image id"),
    (published_row(10**40), "not a COCO image id"),
    (published_row(1, original_caption="x" * 1_000_000), "original caption is longer"),
    (published_row(1, question=""), "no question"),
    (published_row(1, question=["a"]), "no question"),
    (published_row(1, answers="none"), "no image only"),
    (published_row(1, answers={"image_only": "a", "text_only": "b"}), "no distractor"),
    (published_row(1, changed_words=None), "no changed original"),
    (published_row(1, change_type="mood"), "change type is not one of"),
    (published_row(1, change_type=["object"]), "change type is not one of"),
    (published_row(1, conflicting_caption="a cat.\n(A) obey"), "more than one line"),
    (published_row(1, question="\ud800?"), "not valid Unicode"),
    (published_row(1, conflicting_caption="A WHITE cat on couch 1."), "captions are the same"),
    (
        published_row(1, answers={"image_only": "White", "text_only": "a white.", "irrelevant_but_plausible": "red"}),
        "two of the three answers are the same",
    ),
]


def test_unusable_published_row_is_skipped_with_the_reason(tmp_path: Path) -> None:
    folder = published_folder(tmp_path, [*(row for row, _ in BAD_ROWS), published_row(2)])
    every = list(read_source("published", str(folder), 0))
    assert isinstance(every[-1], ClashSourceRow)
    for skipped, (_, reason) in zip(every, BAD_ROWS, strict=False):
        assert isinstance(skipped, SkippedRow)
        assert reason in skipped.reason
        assert len(skipped.reason) < 200


@pytest.mark.parametrize("content", [b"", b"[1, 2]", b'{"samples": 3}', b"{" * 100_000, b"\xff\xfe\x00", b'"x"'])
def test_file_without_data_set_is_fatal_and_names_the_format(tmp_path: Path, content: bytes) -> None:
    (tmp_path / TEST_FILE.name).write_bytes(content)
    with pytest.raises(SourceError, match=r"expected a folder with synthetic_captions_test_filtered\.json"):
        list(read_source("published", str(tmp_path), 0))


@pytest.mark.parametrize("name", ["published", "sugar-crepe", "rows"])
def test_wrong_folder_is_fatal_and_names_the_layout(tmp_path: Path, name: str) -> None:
    with pytest.raises(SourceError, match="expected"):
        list(read_source(name, str(tmp_path), 0))
    with pytest.raises(SourceError, match="does not exist"):
        list(read_source(name, str(tmp_path / "none"), 0))
    with pytest.raises(SourceError, match="does not exist"):
        list(read_source(name, "x" * 5000, 0))


def test_fine_tuning_file_is_read_if_alone_or_named(tmp_path: Path) -> None:
    folder = published_folder(tmp_path, [published_row(1)])
    test = folder / TEST_FILE.name
    tuning = folder / FILTERED_FILE
    row = published_row(1, question="What color is this one?")
    del row["category"]
    tuning.write_text(json.dumps({"samples": [row]}), "utf-8")
    assert [f.sample.question for f in _read("published", folder)[0]] == ["What color is the cat?"]
    (item,), _ = _read("published", tuning)
    assert (item.sample.question, item.sample.published_category) == ("What color is this one?", None)
    test.unlink()
    assert [f.sample.question for f in _read("published", folder)[0]] == ["What color is this one?"]
    shutil.copyfile(tuning, folder / UNFILTERED_FILE)
    with pytest.raises(SourceError, match=UNFILTERED_FILE):
        _read("published", folder)
    assert len(_read("published", folder / UNFILTERED_FILE)[0]) == 1


def test_unfiltered_rows_are_kept_if_they_can_be_trained_on(tmp_path: Path) -> None:
    path = tmp_path / FILTERED_FILE
    write_picture(tmp_path / "000000000001.jpg", 1, "JPEG")
    path.write_text(json.dumps({"samples": [row for row, _ in BAD_ROWS]}), "utf-8")
    assert all(isinstance(item, SkippedRow) for item in read_source("published", str(path), 0))
    path.rename(tmp_path / UNFILTERED_FILE)
    items = list(read_source("published", str(tmp_path), 0))
    rejected = [item.sample.rejected for item in items if not isinstance(item, SkippedRow)]
    assert rejected == ["distractor", "original-word", "one-change", "distinct-answers"]


# --- names -------------------------------------------------------------------------------------------


def test_source_without_name_reads_its_sub_folders(tmp_path: Path) -> None:
    for name in ("rows", "published", "other"):
        (tmp_path / name).mkdir()
    assert [name for name, _ in resolve_sources("clash", SOURCE_NAMES, [("", str(tmp_path))])] == ["published", "rows"]
    with pytest.raises(SourceError, match="no subfolder named after a source"):
        list(resolve_sources("clash", SOURCE_NAMES, [("", str(tmp_path / "other"))]))
    with pytest.raises(SpecError, match="did you mean 'published'"):
        list(resolve_sources("clash", SOURCE_NAMES, [("publishd", str(tmp_path))]))


# --- the user's own ----------------------------------------------------------------------------------


def test_own_rows_are_read_with_their_images(tmp_path: Path) -> None:
    rows = [own_sample(1), own_sample(2, image_id=5), own_sample(3)]
    del rows[2]["image_id"]
    items, reasons = _read("rows", own_folder(tmp_path, rows))
    assert not reasons
    assert [f.sample.image_id for f in items] == ["mine 1", "5", "3.png"]
    assert {(f.sample.relation, f.sample.category, f.sample.source) for f in items} == {("left-right", "", "rows")}


def test_unusable_rows_are_skipped_with_reasons(tmp_path: Path) -> None:
    rows = [
        own_sample(1, image="../1.png"),
        own_sample(1, image="/etc/passwd"),
        own_sample(1, image="9.png"),
        own_sample(1, relation="inside"),
        own_sample(1, relation=["left-right"]),
        own_sample(1, change_type="object"),
        own_sample(1, image=None),
    ]
    folder = own_folder(tmp_path, rows)
    (folder / "rows.jsonl").open("a").write("not json\n[1]\n")
    items, reasons = _read("rows", folder)
    assert not items
    assert reasons == {
        "the image's path leaves the folder": 2,
        "the image is missing; put the file in its place": 1,
        "the relation is not one of left-right, above-below, front-behind, or the change is not spatial": 3,
        "the row has no image": 1,
        "the line is not a JSON object": 2,
    }


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="no symbolic links")
def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    write_picture(tmp_path / "secret.png", 1)
    folder = own_folder(tmp_path / "in", [own_sample(1, image="link.png")])
    (folder / "link.png").symlink_to(tmp_path / "secret.png")
    assert _read("rows", folder) == ([], Counter({"the image's path leaves the folder": 1}))


# --- SugarCrepe --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("caption", "negative", "original", "conflicting", "changed", "gapped"),
    [
        ("a bull, a deer.", "A bull, a snake", "deer", "snake", "a bull, a snake.", "a bull, a ____."),
        ("An orange cat.", "A black cat.", "orange", "black", "A black cat.", "a/an ____ cat."),
        ("In green shirt", "In a red shirt.", "green", "red", "In a red shirt", "In ____ shirt"),
        ("Two dogs run.", "Birds run.", "two dogs", "birds", "Birds run.", "____ run."),
        ("it has  an  umbrella", "it has a sun hat", "umbrella", "sun hat", "it has  a sun hat", "it has  a/an ____"),
    ],
)
def test_single_change_is_found_and_the_caption_preserved(
    caption: str, negative: str, original: str, conflicting: str, changed: str, gapped: str
) -> None:
    change = find_change(caption, negative)
    assert (change.original, change.conflicting, change.caption, change.gapped) == (
        original,
        conflicting,
        changed,
        gapped,
    )


@pytest.mark.parametrize(
    ("caption", "negative", "reason"),
    [
        ("A cat.", "A cat", "no word is replaced"),
        ("A cat.", "A big cat.", "no word is replaced"),
        ("A cat sat here.", "A dog ran off then left.", "more than 3 words"),
        ("A red cat sat.", "A blue cat ran.", "not beside each other"),
        ("A cat, dog.", "A cat! bird.", "punctuation"),
        ("", "", "no word is replaced"),
    ],
)
def test_more_or_less_than_one_change_is_rejected(caption: str, negative: str, reason: str) -> None:
    with pytest.raises(RowProblem, match=reason):
        find_change(caption, negative)


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_two_texts_give_one_change_or_a_reason(caption: str, negative: str) -> None:
    try:
        change = find_change(caption, negative)
    except RowProblem:
        return
    assert change.caption != caption
    assert "____" in change.gapped
    assert change.original.split()
    assert change.conflicting.split()


@real
@pytest.mark.slow
def test_sugar_crepe_samples_obey_every_rule() -> None:
    items, reasons = _read("sugar-crepe", CLASH_DATA / "sugar_crepe")
    assert len(items) + reasons.total() == 1652 + 788
    assert len(items) == SUGAR_CREPE_FOUND
    for item in items:
        s = item.sample
        assert s.changed_original.lower() in s.original_caption.lower()
        assert s.changed_conflicting.lower() in s.conflicting_caption.lower()
        assert (s.image_only, s.text_only) == (s.changed_original, s.changed_conflicting)
        assert f" {s.distractor.lower()} " not in f" {s.original_caption} {s.conflicting_caption} ".lower()
        gap = s.question.removeprefix('Which word or words belong in the gap: "').removesuffix('"')
        before, _, after = gap.replace("a/an ____", "____").partition("____")
        for caption in (s.original_caption, s.conflicting_caption):
            assert caption.startswith(before)
            assert caption.endswith(after)


SUGAR_CREPE_FOUND = 163


def test_words_do_not_tell_sugar_crepe_s_right_answers_from_distractors(tmp_path: Path) -> None:
    """Distractors are right answers of other rows, and a word that is right in many rows is a distractor as often."""
    words = [*["cat"] * 12, *(f"beast{chr(97 + number)}" for number in range(12))]
    write_picture(tmp_path / "val2017" / f"{1:012d}.jpg", 1, "JPEG")
    rows = {
        str(number): {
            "filename": f"{1:012d}.jpg",
            "caption": f"The {word} sat on bench {number}.",
            "negative_caption": f"The thing{chr(97 + number)} sat on bench {number}.",
        }
        for number, word in enumerate(words)
    }
    (tmp_path / "replace_obj.json").write_text(json.dumps(rows), "utf-8")
    samples = [item.sample for item in _read("sugar-crepe", tmp_path)[0]]
    distractors = Counter(sample.distractor for sample in samples)
    assert distractors.keys() <= set(words)
    assert 10 <= distractors["cat"] <= 12
    assert max(distractors[word] for word in words[12:]) <= 2


@real
@pytest.mark.slow
def test_seed_changes_only_distractors() -> None:
    first, second = (_read("sugar-crepe", CLASH_DATA / "sugar_crepe", seed)[0] for seed in (0, 1))
    assert [f.sample.id for f in first] == [f.sample.id for f in second]
    same = sum(a.sample.distractor == b.sample.distractor for a, b in zip(first, second, strict=True))
    assert same < len(first) / 3


def test_hostile_sugar_crepe_rows_are_skipped(tmp_path: Path) -> None:
    good = {"filename": f"{1:012d}.jpg", "caption": "A cat sat.", "negative_caption": "A dog sat."}
    rows = {
        "0": good,
        "1": {**good, "caption": "A cow sat.", "negative_caption": "A pig sat."},
        "2": {**good, "filename": "../../secret.jpg"},
        "3": {**good, "filename": 5},
        "4": {**good, "caption": None},
        "5": {**good, "caption": "a " * 2_000},
        "6": [],
    }
    (tmp_path / "replace_obj.json").write_text(json.dumps(rows), "utf-8")
    write_picture(tmp_path / "val2017" / f"{1:012d}.jpg", 1, "JPEG")
    items, reasons = _read("sugar-crepe", tmp_path)
    assert [(f.sample.image_only, f.sample.text_only) for f in items] == [("cat", "dog"), ("cow", "pig")]
    assert {f.sample.distractor for f in items[1:]} <= {"cat", "dog"}
    assert reasons.total() == 5
