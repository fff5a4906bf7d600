"""Evidence as it is: stale passages and pictures, contradicting twins, and rows that contradict or repeat each other."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.build import Build, BuildOptions
from benchmarks.cmc_bench import CMCBench
from benchmarks.cmc_bench.cmc_check_rows import check_rows
from benchmarks.errors import NothingUsableError
from benchmarks.rows.row_checks import RowCheck
from benchmarks.training_rows import TrainingOptions
from benchmarks.vocabulary import Media
from tests.support.command import Rashomon
from tests.support.data.small import picture
from tests.support.pdf_files import write_pdf

TABLES = Path(__file__).resolve().parents[3] / "shared" / "cases" / "tables"
COLUMNS = ("image", "question", "answer", "passage", "conflict", "image_answer", "text_answer")


def table(folder: Path, *rows: Sequence[str]) -> Path:
    """Write a table, with a picture of its own for every image that it names."""
    content = io.StringIO(newline="")
    csv.writer(content).writerows([COLUMNS, *((*row, *[""] * (len(COLUMNS) - len(row))) for row in rows)])
    for number, image in enumerate(dict.fromkeys(row[0] for row in rows)):
        (folder / image).write_bytes(picture(number))
    (folder / "t.csv").write_text(content.getvalue(), "utf-8")
    return folder / "t.csv"


def others(count: int = 3) -> list[tuple[str, ...]]:
    """Return rows without passages, whose pictures and answers are there for the others."""
    return [(f"other{n}.png", f"How many others, {n}?", str(7001 + 13 * n)) for n in range(count)]


def built(file: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the rows of a build of ``file`` by question and by the end of their id."""
    rows: defaultdict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for row in build(file).rows():
        rows[row["question"]][row["id"].partition("/")[2]] = row
    return rows


def build(file: Path) -> Build:
    return CMCBench().build([("rows", str(file))], file.parent / "built", BuildOptions(replace=True))


def checked(file: Path) -> dict[str, RowCheck]:
    return {row.where.rpartition(":")[2]: row for row in check_rows(file, BuildOptions()).rows}


# --- conflicts as found ------------------------------------------------------------------------------


def test_stale_passage_is_shown_as_it_stands(tmp_path: Path) -> None:
    passage = "Laut Quartalsbericht lag Umsatz DACH in Q1 bei 16,0 Mio. EUR."
    file = table(tmp_path, ("a.png", "What was Umsatz in Q1?", "32,1", passage), *others())
    rows = built(file)["What was Umsatz in Q1?"]
    assert set(rows) == {"image-correct", "image-only/right", "text-only/wrong"}
    assert rows["image-correct"]["references"] == {"image": "32,1", "text": "16,0 Mio. EUR"}
    assert rows["image-correct"]["passage"] == rows["text-only/wrong"]["passage"] == passage
    assert rows["text-only/wrong"]["references"] == {"text": "16,0 Mio. EUR", "right": "32,1"}
    assert {row["strata"]["origin"] for row in rows.values()} == {"as found"}
    assert rows["image-correct"]["image"] == rows["image-only/right"]["image"]
    constructed = built(file)["How many others, 0?"]
    assert {row["strata"]["origin"] for row in constructed.values()} == {"constructed"}


def test_stale_picture_is_shown_with_the_row_s_passage_and_lent_to_no_other(tmp_path: Path) -> None:
    file = table(tmp_path, ("a.png", "How many?", "12", "It came to 12.", "", "15"), *others())
    by_question = built(file)
    rows = by_question.pop("How many?")
    assert set(rows) == {"text-correct", "image-only/wrong", "text-only/right"}
    assert rows["text-correct"]["references"] == {"image": "15", "text": "12"}
    stale = rows["text-correct"]["image"]
    assert all(row["image"] != stale for others_rows in by_question.values() for row in others_rows.values())


@pytest.mark.parametrize(
    ("image", "text", "condition"),
    [
        ("13", "14", "both-wrong"),
        ("12", "14", "image-correct"),
        ("13", "12.0", "text-correct"),
        ("12", "12", "aligned"),
    ],
)
def test_columns_say_what_the_sources_state(tmp_path: Path, image: str, text: str, condition: str) -> None:
    row = ("a.png", "How many?", "12", "Of 14, 13 and 12, one is it.", "", image, text)
    rows = built(table(tmp_path, row, *others()))["How many?"]
    assert condition in rows
    assert (len(rows) == 3) == (condition != "aligned")
    if condition == "both-wrong":
        assert rows["both-wrong"]["references"] == {"image": "13", "text": "14", "right": "12"}


@pytest.mark.parametrize(
    ("image", "text"),
    [("13", "13"), ("12 or so", "14"), ("", "12 km")],
)
def test_sources_of_which_nothing_is_certain_are_left_out(tmp_path: Path, image: str, text: str) -> None:
    """Both agree on a wrong value, or it is unclear whether one of them is the answer."""
    row = ("a.png", "How far?", "12", "Of 14, 13 and 12, one is it.", "", image, text)
    check = checked(table(tmp_path, row, *others()))["2"]
    assert not check.usable
    assert check.fix


def test_stale_picture_is_a_page_of_its_own_row_and_a_borrowed_one_is_not(tmp_path: Path) -> None:
    file = table(tmp_path, ("a.png", "How many?", "12", "It came to 12.", "", "15"), *others())
    benchmark = CMCBench()
    for instance in benchmark.instances(build(file), "paper"):
        shown = [part.sha256 for part in instance.parts if isinstance(part, Media)]
        is_wrong = instance.condition in ("text-correct", "both-wrong") or "image-only/wrong" in instance.id
        if shown:
            assert (shown[0] in benchmark.pages(instance).own) == (not is_wrong or instance.question == "How many?")


def test_only_conflicts_as_found_make_a_build_and_give_training_rows(tmp_path: Path) -> None:
    rows = [(f"{n}.png", f"How many, {n}?", str(40 + n), f"It came to {70 + 9 * n}.") for n in range(3)]
    made = build(table(tmp_path, *rows))
    assert made.manifest["conditions"]["image-correct"] == made.manifest["instances"] / 3 == 3
    training = list(CMCBench().training_rows(made, TrainingOptions(prompt_set="paper", target="answer")))
    assert Counter(row.instance.condition for row in training) == {"image-correct": 3, "image-only": 3}
    assert all(row.target in ("40", "41", "42") for row in training)


def test_one_row_without_any_conflict_builds_nothing_and_the_check_says_so(tmp_path: Path) -> None:
    file = table(tmp_path, ("a.png", "What grew?", "Obesity", "Obesity grew."))
    with pytest.raises(NothingUsableError):
        build(file)
    assert any("conflict" in remark for remark in check_rows(file, BuildOptions()).remarks)


# --- contradicting twins -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "passage", "twin"),
    [
        ("12", "On 12 March 2025 the shop had 12 units.", "On 12 March 2025 the shop had 99 units."),
        ("4", "In Q4 2025 it had 4, of 4.5 planned.", "In Q4 2025 it had 99, of 4.5 planned."),
        ("12", "12 sites, up 12 % on the year.", "99 sites, up 12 % on the year."),
        ("1,204", "In 2024 it had 1204.", "In 2024 it had 99."),
        ("12%", "It had 12 percent.", "It had 99 percent."),
        ("5 km", "It was 5km long.", "It was 99km long."),
        ("12,5 %", "Es waren 12,5 Prozent.", "Es waren 99 Prozent."),
        ("7 km", "It had 7 km, in all 7 km.", "It had 99 km, in all 99 km."),
    ],
)
def test_twin_changes_only_what_stands_for_the_answer(tmp_path: Path, answer: str, passage: str, twin: str) -> None:
    rows = built(table(tmp_path, ("a.png", "How many?", answer, passage, "99"), *others()))["How many?"]
    assert rows["aligned"]["passage"] == rows["text-only/right"]["passage"] == passage
    assert rows["image-correct"]["passage"] == rows["text-only/wrong"]["passage"] == twin


def test_passage_that_gives_the_answer_in_other_words_has_no_twin(tmp_path: Path) -> None:
    due = ("a.png", "When is it due?", "12 March 2024", "Fällig am 12.03.2024.")
    rows = built(file := table(tmp_path, due, ("b.png", "when is it due", "5 May 2023")))["When is it due?"]
    assert set(rows) == {"aligned", "text-correct", "image-only/right", "image-only/wrong", "text-only/right"}
    assert "not image-correct or both-wrong" in checked(file)["2"].message


@pytest.mark.parametrize(
    ("question", "answer", "passage"),
    [
        ("How many goals?", "3", "It scored three goals in 3 games."),
        ("How far?", "5 km", "It is 5 km (5,000 m)."),
        ("How many?", "12,500", "There were 12.5 thousand, exactly 12,500."),
        ("Wie viel Prozent?", "3,5 %", "Es sank um 3,5 Prozent auf 3,5 Mio. Stück."),
        ("How many staff?", "240", "It has 240 staff in room 240."),
        ("How many?", "43", "It had 43 (see http://example.org/43)."),
        ("When was it founded?", "1987", "Founded in 1987, it had 1987 members."),
        ("When was it?", "9 March 2024", "It was on 9 March 2024 (2024-03-09)."),
        ("Which country?", "USA", "The USA leads; the United States had 40."),
        ("Who won?", "Anna Weber", "Anna Weber won; Weber was proud."),
        ("Did sales rise?", "Yes", "Yes, sales rose."),
        ("Did sales rise?", "No", "No. They fell."),
    ],
)
def test_passage_with_the_value_twice_or_more_than_a_yes_has_no_twin(
    tmp_path: Path, question: str, answer: str, passage: str
) -> None:
    rows = built(table(tmp_path, ("a.png", question, answer, passage), *others()))[question]
    assert rows["aligned"]["passage"] == passage
    assert not {"image-correct", "both-wrong", "text-only/wrong"} & set(rows)


def test_yes_that_stands_alone_has_a_twin(tmp_path: Path) -> None:
    rows = built(table(tmp_path, ("a.png", "Did it rise?", "Yes", "The answer is yes."), *others()))["Did it rise?"]
    assert rows["image-correct"]["passage"].casefold() == "the answer is no."


def test_letters_of_options_are_the_options_in_every_column(tmp_path: Path) -> None:
    row = {"question": "Which?", "options": ["Egg", "Larva", "Adult"], "answer": "C", "passage": "It is the larva."}
    lines = [row | {"image": "a.png", "image_answer": "(A)", "text_answer": "B"}]
    lines += [row | {"image": "b.png", "question": "Which one?", "passage": "An adult.", "conflict": "A"}]
    table(tmp_path, ("a.png", "", ""), ("b.png", "", ""))
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    rows = built(tmp_path / "t.jsonl")
    assert rows["Which?"]["both-wrong"]["references"] == {"image": "Egg", "text": "Larva", "right": "Adult"}
    assert rows["Which one?"]["image-correct"]["passage"] == "An Egg."


def test_pictures_of_one_question_that_show_different_values_are_left_out(tmp_path: Path) -> None:
    rows = [("a.png", "How many?", "43", "It came to 43.", "", shown) for shown in ("50", "51")]
    checks = checked(table(tmp_path, *rows, *others()))
    for where in ("2", "3"):
        assert not checks[where].usable
        assert "t.csv:2" in checks[where].message
        assert "t.csv:3" in checks[where].message


def test_slip_is_a_conflict_as_found_with_a_warning(tmp_path: Path) -> None:
    file = table(tmp_path, ("a.png", "How many?", "64", "It came to 46."), *others())
    check = checked(file)["2"]
    assert check.usable
    assert "64" in check.warning
    assert "46" in check.warning
    assert build(file).manifest["evidence"]["conflicts as found"] == 1


def test_check_and_build_count_where_the_evidence_comes_from(tmp_path: Path) -> None:
    stale = ("a.png", "How many?", "12", "It came to 15.")
    right = ("b.png", "How much?", "40 km", "It came to 40 km.", "44 km")
    file = table(tmp_path, stale, right, *others())
    assert sorted(build(file).manifest["evidence"].values()) == [1, 1, 3]
    remarks = check_rows(file, BuildOptions()).remarks
    assert all(f"{name}: {count}" in remarks for name, count in build(file).manifest["evidence"].items())


# --- rows of one question ----------------------------------------------------------------------------


def test_rows_that_contradict_each_other_are_both_left_out(tmp_path: Path) -> None:
    rows = [("a.png", "What was it?", "611"), ("b.png", "What was it?", "5"), ("a.png", "what  was it", "999")]
    checks = checked(table(tmp_path, *rows, *others()))
    assert [checks[where].usable for where in ("2", "3", "4")] == [False, True, False]
    for where in ("2", "4"):
        assert all(text in checks[where].message for text in ("t.csv:2", "611", "t.csv:4", "999"))
        assert checks[where].fix


def test_rows_that_may_contradict_each_other_are_both_left_out(tmp_path: Path) -> None:
    rows = [("a.png", "What was it?", "611"), ("a.png", "What was it?", "611 km")]
    checks = checked(table(tmp_path, *rows, *others()))
    assert [checks[where].usable for where in ("2", "3")] == [False, False]
    assert "unclear" in checks["2"].message


def test_repeated_rows_count_once_and_name_the_first(tmp_path: Path) -> None:
    rows = [("a.png", "What was it?", "1,204"), ("a.png", "What was IT ?", "1204"), ("a.png", "What was it?", "1204.0")]
    checks = checked(table(tmp_path, *rows, *others()))
    assert [checks[where].usable for where in ("2", "3", "4")] == [True, False, False]
    assert all("t.csv:2" in checks[where].message for where in ("3", "4"))


def test_a_row_that_contradicts_a_repeated_one_names_the_one_that_counts(tmp_path: Path) -> None:
    rows = [("a.png", "What was it?", answer) for answer in ("5", "5", "6")]
    checks = checked(table(tmp_path, *rows, *others()))
    assert not any(checks[where].usable for where in ("2", "3", "4"))
    assert "t.csv:2" in checks["3"].message
    assert all("t.csv:2" in checks[where].message and "t.csv:4" in checks[where].message for where in ("2", "4"))


def test_rows_of_one_question_with_passages_of_their_own_are_all_used(tmp_path: Path) -> None:
    rows = [("a.png", "How many?", "12", "It came to 12."), ("a.png", "How many?", "12", "In the end there were 12.")]
    checks = checked(table(tmp_path, *rows, *others()))
    assert checks["2"].usable
    assert checks["3"].usable


# --- a spreadsheet as it was found -------------------------------------------------------------------


@pytest.mark.skipif(not TABLES.exists(), reason="the tables are not here")
def test_spreadsheet_of_a_controller(tmp_path: Path) -> None:
    """33 rows: 5 stale passages, 2 rows that contradict each other, a repeated one, and three that cannot be read."""
    content = (TABLES / "fragen.csv").read_text("utf-8-sig")
    charts = sorted({line.partition(";")[0] for line in content.splitlines()[1:26]})
    (tmp_path / "charts").mkdir()
    for number, chart in enumerate(charts):
        (tmp_path / chart).write_bytes(picture(number))
    pages = [tmp_path / "charts" / f"page{n}.png" for n in range(2)]
    for number, page in enumerate(pages):
        page.write_bytes(picture(100 + number))
    write_pdf(tmp_path / "charts" / "report.pdf", pages)
    (tmp_path / "fragen.csv").write_text(content, "utf-8")
    checks = checked(tmp_path / "fragen.csv")
    left_out = {where for where, row in checks.items() if not row.usable}
    assert left_out == {"6", "27", "28", "29", "30", "31"}
    assert {where for where, row in checks.items() if "image-correct as found" in row.message} == {
        *("2", "7", "12", "17", "22")
    }
    assert all(checks[where].fix for where in left_out)
    made = build(tmp_path / "fragen.csv")
    assert made.manifest["evidence"]["conflicts as found"] == 5


# --- what a run says of it ---------------------------------------------------------------------------


def mixed(folder: Path) -> Path:
    """Write a table of 4 stale passages, 2 stale pictures, a row with both, 3 twins and 3 rows without a passage."""
    rows: list[tuple[str, ...]] = []
    rows += [(f"{n}.png", f"What was Umsatz {n}?", f"{30 + n},1", f"Er lag bei {50 + 7 * n},0 EUR.") for n in range(4)]
    rows += [(f"{n}.png", f"What was EBIT {n}?", f"{20 + n}.5", f"It was {20 + n}.5.", "", "90.5") for n in (4, 5)]
    rows += [("6.png", "What was X?", "11", "X came to 12.", "", "13")]
    rows += [
        (f"{n}.png", "What was the cost?", f"{200 + n}", f"It was {200 + n} EUR.", f"{300 + n}") for n in (7, 8, 9)
    ]
    rows += [(f"{n}.png", "How many staff?", f"{400 + n}", "", f"{500 + n}") for n in (10, 11, 12)]
    return table(folder, *rows)


@pytest.mark.slow
def test_scorecard_of_a_mixed_table_is_that_of_a_count_by_hand(tmp_path: Path) -> None:
    """Conflicts: 7 as found (4 image-correct, 2 text-correct, 1 both-wrong), and 3 of each of 6 constructed examples."""
    rashomon = Rashomon(tmp_path)
    rashomon.run("build", "cmc-bench", "--from", mixed(tmp_path))
    policies = [word for name in ("always-image", "always-text") for word in ("--model", f"policy:{name}")]
    rashomon.run("--batch", "--benchmark", "cmc-bench", *policies, "--display", "none")
    right: Mapping[str, Mapping[str, tuple[int, int]]] = {
        "always-image": {"scorecard": (10, 25), "scorecard-as-found": (4, 7), "scorecard-constructed": (6, 18)},
        "always-text": {"scorecard": (8, 25), "scorecard-as-found": (2, 7), "scorecard-constructed": (6, 18)},
    }
    for policy, tables in right.items():
        rashomon.run("export", f"cmc-bench-policy-{policy}", "--format", "csv", "--out", tmp_path / policy)
        for name, (count, n) in tables.items():
            with (tmp_path / policy / f"{name}.csv").open(encoding="utf-8", newline="") as stream:
                lines = {row[0]: row[1:] for row in csv.reader(stream)}
            share, *_, answers = lines["gives the right value under conflict"]
            assert float(share) == pytest.approx(count / n)
            assert int(answers) == n
            follows = lines[f"conflict: follows the {policy.removeprefix('always-')}"]
            assert (float(follows[0]), int(follows[-1])) == (1, n)
