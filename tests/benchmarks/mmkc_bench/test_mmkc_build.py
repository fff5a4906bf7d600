"""MMKC-Bench's source: the published layout, options for rows that have none, and refusals."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.papers.published_results import published_cells
from benchmarks.build import Build, BuildOptions, FalseText
from benchmarks.errors import SourceError, SpecError
from benchmarks.mmkc_bench.mmkc_build import UNNAMED
from benchmarks.mmkc_bench.mmkc_constants import CONDITIONS
from benchmarks.mmkc_bench.mmkc_example import Example
from benchmarks.mmkc_bench.mmkc_options import choose_distractor, format_query, overlaps, read_options
from benchmarks.mmkc_bench.sources.altered_text import altered_sentence, recover_true_text, split_sentences
from benchmarks.mmkc_bench.sources.mmkc_released_rows import parse_examples
from benchmarks.registry import get_benchmark
from benchmarks.rows.reader_types import RowProblem
from benchmarks.values import compare
from benchmarks.vocabulary import Instance, Media, Text
from tests.support.data.mmkc_bench import (
    MMKC_DATA,
    er_row,
    folder,
    images,
    knowledge_row,
    reconstructed_folder,
    whole_folder,
)

MMKC = get_benchmark("mmkc-bench")


def build(place: Path, out: Path, seed: int = 0) -> Build:
    return MMKC.build([("published", str(place))], out, BuildOptions(seed=seed))


def instances(built: Build, prompt_set: str = "official") -> list[Instance]:
    return list(MMKC.instances(built, prompt_set))


def skipped(built: Build) -> list[str]:
    return [json.loads(line)["reason"] for line in (built.path / "skipped.jsonl").open(encoding="utf-8")]


def only(matches: list[Instance], condition: str, kind: str) -> Instance:
    return next(instance for instance in matches if instance.condition == condition and instance.strata["type"] == kind)


# --- prompts ---------------------------------------------------------------------------------------------------

PRE = "The following information is provided externally:"
I_MCQ = "Answer with the option's letter from the given choices directly based on the context and the image."
I_OPEN = "Answer the question using a single word or phrase based on the context and the image."
D = "Read the following document carefully and answer No if it does not agree with what you remember, and Yes if it does."


def spelled(instance: Instance, build: Build) -> list[str]:
    """Return the parts of a prompt, an image by its place in its row: image0, image1, image2."""
    row = next(row for row in build.rows() if row["id"] == instance.group)
    names = {image["sha256"]: f"image{place}" for place, image in enumerate(row["images"])}
    return [part.text if isinstance(part, Text) else names[part.sha256] for part in instance.parts]


def test_prompt_parts_follow_the_order_of_the_published_code(tmp_path: Path) -> None:
    built = build(whole_folder(tmp_path / "src", 1), tmp_path / "out")
    examples = instances(built)
    er, row = er_row(1), knowledge_row(1)
    wrong = [er["mis_description"][f"incorrect_description_{n}"] for n in (1, 2)]
    mcq, query = er["mcq_query"], er["open_query"]
    expected = {
        "original-mc": [mcq, I_MCQ, "image0"],
        "original-open": [query, I_OPEN, "image0"],
        "context-memory-mc": [PRE, "image1", wrong[0], mcq, I_MCQ, "image0"],
        "context-memory-open": [PRE, "image1", wrong[0], query, I_OPEN, "image0"],
        "inter-context-mc": [PRE, "image1", wrong[0], "image2", wrong[1], mcq, I_MCQ, "image0"],
        "inter-context-open": [PRE, "image1", wrong[0], "image2", wrong[1], query, I_OPEN, "image0"],
        "coarse-conflict": [D, PRE, "image1", wrong[0]],
        "coarse-non-conflict": [D, PRE, "image1", er["description"]],
    }
    of_er = [instance for instance in examples if instance.strata["type"] == "ER"]
    assert {instance.condition: spelled(instance, built) for instance in of_er} == expected
    for place, (kind, error) in enumerate((("PT", "Temporal_error"), ("PL", "location_error"), ("PC", "Career_error"))):
        text = row["mis_knowledge"][error]["mis_knowledge1"]
        fine = [D, PRE, "image1", text.split(". ")[place]]
        assert spelled(only(examples, "fine-conflict", kind), built) == fine
        assert spelled(only(examples, "fine-non-conflict", kind), built)[-1] == row["knowledge"].split(". ")[place]
        assert spelled(only(examples, "coarse-conflict", kind), built) == [D, PRE, "image1", text]
    # The true text, which the three facts of a row share, is asked about once.
    assert Counter(
        instance.strata["type"] for instance in examples if instance.condition == "coarse-non-conflict"
    ) == Counter(("ER", "VS", "PT", "LT"))


def test_the_prompts_for_gpt_have_their_own_preamble_and_order(tmp_path: Path) -> None:
    built = build(folder(tmp_path / "src", ER=[er_row(1)]), tmp_path / "out")
    examples = instances(built, "official-gpt")
    er = er_row(1)
    wrong = [er["mis_description"][f"incorrect_description_{n}"] for n in (1, 2)]
    here = "Here are the external images and information:"
    assert spelled(only(examples, "original-mc", "ER"), built) == [I_MCQ, er["mcq_query"], "image0"]
    # The published script sends the first evidence twice here: a slip that is not copied.
    expected = [here, "image1", wrong[0], "image2", wrong[1], I_OPEN, er["open_query"], "image0"]
    assert spelled(only(examples, "inter-context-open", "ER"), built) == expected


def test_original_setting_comes_first_and_is_the_basis(tmp_path: Path) -> None:
    examples = instances(build(whole_folder(tmp_path / "src", 2), tmp_path / "out"))
    groups: dict[str, list[str]] = {}
    for instance in examples:
        groups.setdefault(instance.group, []).append(instance.condition)
    assert len(groups) == 16
    for conditions in groups.values():
        assert conditions[:2] == ["original-mc", "original-open"]
        for condition in conditions:
            basis = MMKC.basis(condition)
            assert basis is None or conditions.index(basis) < conditions.index(condition)
    assert {c: MMKC.basis(c) for c in CONDITIONS if MMKC.basis(c)} == {
        "context-memory-mc": "original-mc",
        "context-memory-open": "original-open",
        "inter-context-mc": "original-mc",
        "inter-context-open": "original-open",
    }


# --- what a row becomes ----------------------------------------------------------------------------------------


def test_published_options_are_verbatim_and_yield_the_answers(tmp_path: Path) -> None:
    row = er_row(1, mcq_query="Which?  (A) Garden 1 (B) Bridge 1 (C) Palace 1 (D) Tower 1\n\n")
    examples = instances(build(folder(tmp_path / "src", ER=[row]), tmp_path / "out"))
    choice = only(examples, "inter-context-mc", "ER")
    assert row["mcq_query"] in [part.text for part in choice.parts if isinstance(part, Text)]
    assert choice.references == {
        "image": ("Tower 1",),
        "image letter": ("D",),
        "text": ("Bridge 1", "Palace 1"),
        "text letter": ("B", "C"),
        "distractor": ("Garden 1",),
        "distractor letter": ("A",),
    }
    context = only(examples, "context-memory-open", "ER").references
    assert context == {"image": ("Tower 1",), "text": ("Bridge 1",), "distractor": ("Garden 1",)}


def test_both_letter_spellings_are_read(tmp_path: Path) -> None:
    row = er_row(1, mcq_dis_answer1="c", mcq_dis_answer2="B")
    del row["mcq_disanswer1"], row["mcq_disanswer2"]
    examples = instances(build(folder(tmp_path / "src", ER=[row]), tmp_path / "out"))
    assert only(examples, "context-memory-mc", "ER").references["text letter"] == ("C",)


def test_example_does_not_depend_on_machine_pictures_or_seed(tmp_path: Path) -> None:
    example = build(whole_folder(tmp_path / "a", 2), tmp_path / "one", seed=0)
    two = build(whole_folder(tmp_path / "b", 2), tmp_path / "two", seed=0)
    other = build(whole_folder(tmp_path / "c", 2), tmp_path / "three", seed=9)
    assert (tmp_path / "one" / "instances.jsonl").read_bytes() == (tmp_path / "two" / "instances.jsonl").read_bytes()
    assert example.digest == two.digest
    assert [row["id"] for row in example.rows()] == [row["id"] for row in other.rows()]
    assert len({instance.id for instance in instances(example)}) == len(instances(example))


def test_statistics_count_examples_and_images_as_table_1_does(tmp_path: Path) -> None:
    built = build(whole_folder(tmp_path / "src", 3), tmp_path / "out")
    with (built.path / "statistics.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["data set"]: row for row in csv.DictReader(file)}
    assert {name: (row["instances"], row["images"]) for name, row in rows.items()} == {
        "ER": ("3", "9"),
        "EK": ("18", "18"),
        "VS": ("3", "9"),
    }
    cells = {(c["row"], c["column"]): c["value"] for c in published_cells("mmkc-bench") if c["table"] == "Table 1"}
    names = ("Visual Entity Conflict", "Entity Knowledge Conflict", "Visual Semantic Conflict")
    for name, row in zip(names, rows.values(), strict=True):
        assert int(row["instances in the paper"]) == cells[name, "Instances"]
        assert int(row["images in the paper"]) == cells[name, "Images"]
        assert int(row["types in the paper"]) == cells[name, "Types"]
    assert [row["types"] for row in rows.values()] == ["", "6", ""]


def test_repeated_rows_and_names_are_reported(tmp_path: Path) -> None:
    rows = [er_row(1), er_row(1, ID=7), er_row(2, instance="Tower 1")]
    built = build(folder(tmp_path / "src", ER=rows), tmp_path / "out")
    assert skipped(built) == ["repeated: another row is the same example"]
    assert built.manifest["instances_of_the_same_name"] == {"ER": {"Tower 1": 2}}
    assert built.manifest["examples"] == 2


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"image_path": ["image/none/1.jpg", "image/none/2.jpg", "image/none/3.jpg"]}, "the image is missing"),
        ({"image_path": ["image/tower1/tower1_1.jpg"] * 2}, "does not name its three images"),
        ({"image_path": ["../x.jpg", "a", "b"]}, "leaves the folder"),
        ({"image_path": [1, 2, 3]}, "does not name its three images"),
        ({"image_path": None}, "does not name its three images"),
        ({"instance": ""}, "has no instance"),
        ({"mis_description": "x"}, "no wrong texts"),
        ({"mis_description": {"incorrect_description_1": "only one"}}, "lacks one of its two wrong texts"),
        (
            {"mis_description": {"incorrect_description_1": "a", "incorrect_description_2": "a"}},
            "wrong texts are the same",
        ),
        ({"mcq_disanswer1": "E"}, "not the two letters"),
        ({"mcq_disanswer1": "C"}, "not the two letters"),
        ({"mcq_disanswer1": None}, "not the two letters"),
        ({"mcq_query": ""}, "neither options nor"),
        ({"mcq_query": "", "open_query": ""}, "no question"),
        ({"mcq_query": "?\nA. x\nB. y 1\nC. Y 1.\nD. z\n"}, "two of the three answers are the same"),
        ({"open_query": "x" * 5000}, "longer than"),
        ({"description": "\ud800"}, "not valid Unicode"),
    ],
)
def test_row_without_a_usable_question_is_skipped_with_the_reason(
    tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    built = build(folder(tmp_path / "src", ER=[er_row(2), er_row(1, **change)]), tmp_path / "out")
    assert built.manifest["examples"] == 1
    (reasons,) = skipped(built)
    assert reason in reasons
    assert list(built.manifest["skipped"].values()) == [1]
    assert all(
        isinstance(part, Text | Media) and "image/" not in str(part)
        for instance in instances(built)
        for part in instance.parts
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from([*er_row(), *knowledge_row(1), "image_path_first", "open_groundtruth"]), JSON))
def test_any_row_is_an_example_or_a_problem(change: dict[str, Any]) -> None:
    for row, kinds in ((er_row(1), ("ER",)), (knowledge_row(1), ("PT", "PL", "PC"))):
        examples = list(parse_examples({**row, **change}, kinds))
        assert len(examples) == len(kinds)
        for instance in examples:
            if isinstance(instance, RowProblem):
                assert str(instance)
            else:
                assert Example.from_row(json.loads(json.dumps(instance.to_row()))) == instance


@pytest.mark.parametrize("data", [b"", b"GIF89a", b"not a picture", b"\x89PNG\r\n\x1a\n" + b"0" * 50])
def test_a_damaged_image_is_an_error_of_its_row_and_never_text(tmp_path: Path, data: bytes) -> None:
    place = folder(tmp_path / "src", ER=[er_row(1), er_row(2)])
    (place / er_row(1)["image_path"][2]).write_bytes(data)
    built = build(place, tmp_path / "out")
    assert built.manifest["examples"] == 1
    assert skipped(built)[0].startswith("the image ")


def test_wrong_mmkc_folder_is_fatal_and_names_the_layout(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "ER.json").write_text(json.dumps([er_row(1)]))
    (bare / "other.json").write_text("[]")
    for place in (
        tmp_path / "empty",
        tmp_path / "nothing",
        bare,
        bare / "ER.json",
        bare / "other.json",
        tmp_path / "\0",
    ):
        with pytest.raises(SourceError, match=r"image/ and one or more of ER\.json") as message:
            build(place, tmp_path / "out")
        assert "Traceback" not in str(message.value)
    (bare / "image").mkdir()
    with pytest.raises(SourceError, match="once: the image is missing"):
        build(bare, tmp_path / "out")
    with pytest.raises(SpecError, match="did you mean 'published'"):
        MMKC.build([("publish", str(bare))], tmp_path / "out", BuildOptions())
    assert not (tmp_path / "out").exists()


def test_a_further_type_is_read_listed_and_named_unknown_and_other_files_are_reported(tmp_path: Path) -> None:
    charts = [er_row(200 + n, instance=f"Chart {n}", type="bar chart", image_path=images(f"c{n}")) for n in (1, 2)]
    renamed = [{("false_description" if key == "mis_description" else key): v for key, v in er_row(9).items()}]
    place = folder(tmp_path / "src", ER=[er_row(1, type="tower")], ED=charts, NEW=renamed, VS=[er_row(8)])
    (place / "NOTES.json").write_text("not JSON", "utf-8")
    built = build(place, tmp_path / "out")
    assert built.manifest["types"] == {"ER": 1, "ED": 2}
    assert built.manifest["datasets"]["ED"] == {"examples": 2, "in the paper": UNNAMED}
    with (built.path / "statistics.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["data set"]: (row["types"], row["instances"], row["images"]) for row in csv.DictReader(file)}
    assert rows == {"ER": ("1", "1", "3"), "EK": ("", "0", "0"), "VS": ("", "0", "0"), "ED": ("1", "2", "6")}
    reasons = sorted(skipped(built))
    assert len(reasons) == 3
    assert any(reason.endswith("its first row has no mis_description") for reason in reasons)
    assert any(reason.endswith("its name cannot be that of a type") for reason in reasons)  # VS.json
    conditions = {instance.condition for instance in instances(built) if instance.strata["type"] == "ED"}
    assert conditions == set(CONDITIONS) - {"fine-non-conflict", "fine-conflict"}


def test_the_false_text_given_alone_is_drawn_by_the_seed_with_its_image_and_answer(tmp_path: Path) -> None:
    place = folder(tmp_path / "src", ER=[er_row(n) for n in range(1, 9)], people_knowledge=[knowledge_row(1)])
    choices: list[tuple[FalseText, int]] = [("first", 0), ("first", 1), ("random", 0), ("random", 1)]
    builds = {
        (text, seed): MMKC.build(
            [("published", str(place))], tmp_path / f"{text}{seed}", BuildOptions(seed=seed, false_text=text)
        )
        for text, seed in choices
    }
    firsts = {key: [row["wrong"][0] for row in built.rows()] for key, built in builds.items()}
    assert firsts["first", 0] == firsts["first", 1]
    assert len({tuple(texts) for texts in firsts.values()}) == 3
    drawn = {row["instance"]: row for row in builds["random", 0].rows() if row["kind"] == "ER"}
    plain = {row["instance"]: row for row in builds["first", 0].rows() if row["kind"] == "ER"}
    swapped = [name for name, row in drawn.items() if row["wrong"] != plain[name]["wrong"]]
    assert 0 < len(swapped) < len(plain)
    for name, row in plain.items():
        order = [0, 2, 1] if name in swapped else [0, 1, 2]
        assert drawn[name]["images"] == [row["images"][place] for place in order]
        for pair in ("wrong", "counter_answers", "counter_letters"):
            assert drawn[name][pair] == (row[pair][::-1] if name in swapped else row[pair])
    for row in builds["random", 1].rows():
        if row["kind"] == "PT":
            assert row["sentences"][0] in row["wrong"][0]
    assert builds["random", 0].manifest["options"] == {"false_text": "random"}
    assert "options" not in builds["first", 0].manifest  # as before, so that runs of older builds resume


def test_a_single_file_is_read_by_its_name(tmp_path: Path) -> None:
    place = whole_folder(tmp_path / "src", 1)
    built = build(place / "IS.json", tmp_path / "out")
    assert built.manifest["types"] == {"VS": 1}


# --- options and sentences -------------------------------------------------------------------------------------

WORDS = (
    st.text(alphabet="abcdefghij XYZ.,'-0123456789", min_size=1, max_size=20)
    .map(str.strip)
    .filter(lambda word: any(c.isalnum() for c in word))
)


@given(st.lists(WORDS, min_size=4, max_size=4), WORDS)
def test_generated_options_are_parsed_back(words: list[str], question: str) -> None:
    query = format_query(question, words)
    options = read_options(query)
    # An answer may look like an option ("A. x"); then none are read rather than wrong ones.
    assert options in ({}, dict(zip("ABCD", words, strict=True)))
    if not any(f"{c}{mark}" in f"{w} " for w in (question, *words) for c in "ABCD" for mark in (".", ")", ":")):
        assert options


@pytest.mark.parametrize(
    "text", ["", "A. one B. two", "A. one\nB. two\nC. three\nE. four", "A.\nB.\nC.\nD.\n", "(A)(B)(C)(D)"]
)
def test_query_without_four_options_yields_none(text: str) -> None:
    assert read_options(text) == {}


@given(st.text(max_size=200))
def test_any_query_is_parsed(text: str) -> None:
    options = read_options(text)
    assert not options or (list(options) == list("ABCD") and all(options.values()))


@given(st.lists(WORDS, min_size=3, max_size=3), st.lists(WORDS, max_size=8), st.integers(0, 5))
def test_distractor_differs_from_existing_options(taken: list[str], others: list[str], seed: int) -> None:
    choice = choose_distractor("x", taken, others, Counter(), seed)
    if choice:
        assert choice in others
        assert all(compare(choice, answer).verdict == "different" for answer in taken)
        assert not any(overlaps(choice, answer) for answer in taken)
        assert choice == choose_distractor("x", taken, others[::-1], Counter(), seed)
    else:
        for other in others:
            assert any(overlaps(other, answer) or compare(other, answer).verdict != "different" for answer in taken)


def test_an_answer_is_a_distractor_as_often_as_it_is_right() -> None:
    answers = [*["American"] * 10, *(f"Country{number}" for number in range(10))]
    uses: Counter[int] = Counter()
    distractors = Counter(
        choose_distractor(str(number), [answer, "x", "y"], answers, uses, 0) for number, answer in enumerate(answers)
    )
    assert distractors["American"] >= 8
    assert max(uses.values()) <= 2


def test_a_distractor_is_not_an_option_in_another_notation() -> None:
    taken = ["12 500", "$43", "May 4, 1970"]
    assert choose_distractor("x", taken, ["12,500", "43", "4 May 1970", "1970"], Counter(), 0) == ""
    assert choose_distractor("x", taken, ["12,500", "€43,000"], Counter(), 0) == "€43,000"


def test_the_altered_sentence_is_found_past_initials_and_titles() -> None:
    right = "Samuel L. Jackson was born in 1948. Samuel L. Jackson is American. Samuel L. Jackson is an actor."
    wrong = right.replace("American", "Canadian")
    assert altered_sentence(wrong, right) == ("Samuel L. Jackson is Canadian", "Samuel L. Jackson is American")
    assert len(split_sentences("IBM was founded in 1911. The creator of IBM is Thomas J. Watson. IBM is big.")) == 3
    assert altered_sentence("A is b. C is d.", "A is c. C is e.") == ("", "")
    assert altered_sentence("A is b. C is d. E.", "A is b. C is d.") == ("", "")


def test_true_text_is_the_majority_of_undone_edits() -> None:
    edits = [("x 1. y 2.", "1", "0"), ("x 3. y 2.", "3", "0"), ("x 0. y 7.", "7", "2"), ("x 0. y 2 of 2.", "2", "5")]
    assert recover_true_text(edits) == "x 0. y 2."
    assert recover_true_text([("x 1.", "1", "0"), ("y 1.", "1", "0")]) == ""
    assert recover_true_text([]) == ""


# --- the reconstructed rows ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(not MMKC_DATA.is_dir(), reason="the reconstructed rows are not beside the project")
def test_the_reconstructed_rows_get_four_different_options(tmp_path: Path) -> None:
    built = build(reconstructed_folder(tmp_path / "src"), tmp_path / "out")
    assert built.manifest["types"] == {"PT": 144, "PL": 143, "PC": 146, "LT": 74, "LC": 74, "LO": 74}
    assert built.manifest["skipped"] == {
        "repeated": 11,
        "the row has neither options nor the three answers to make them of": 2,
        # "August 5" is a wrong answer to a question about a year, from which no year differs for certain.
        "no other row has an answer that could be the unrelated option": 1,
    }
    assert built.manifest["options_made_here"] == built.manifest["examples"] == 655
    places: Counter[str] = Counter()
    for row in built.rows():
        examples = read_options(row["mcq_query"])
        answers = (row["own_answer"], *row["counter_answers"], row["distractor"])
        assert sorted(examples.values()) == sorted(answers)
        assert all(
            compare(row["distractor"], answer, row["open_query"]).verdict == "different" for answer in answers[:3]
        )
        assert not any(overlaps(row["distractor"], instance) for instance in answers[:3])
        letters = (row["own_letter"], *row["counter_letters"], row["distractor_letter"])
        assert tuple(examples[letter] for letter in letters) == answers
        places[row["own_letter"]] += 1
        if row["right"] and all(row["sentences"]):
            assert row["sentences"][1] in row["right"]
            assert row["sentences"][0] in row["wrong"][0]
    assert min(places.values()) > 120, "the true answer stands under each letter about as often"
    assert built.manifest["no_true_text"] == 33
    with pytest.raises(SourceError, match="image/"):
        build(MMKC_DATA, tmp_path / "second")


@pytest.mark.skipif(not MMKC_DATA.is_dir(), reason="the reconstructed rows are not beside the project")
def test_options_depend_on_the_seed_but_ids_do_not(tmp_path: Path) -> None:
    place = reconstructed_folder(tmp_path / "src", people=5, logos=5)
    built, other = build(place, tmp_path / "one"), build(place, tmp_path / "two", seed=1)
    again = build(reconstructed_folder(tmp_path / "again", people=5, logos=5), tmp_path / "three")
    assert again.digest == built.digest
    assert [row["mcq_query"] for row in other.rows()] != [row["mcq_query"] for row in built.rows()]
    assert [row["id"] for row in other.rows()] == [row["id"] for row in built.rows()]
