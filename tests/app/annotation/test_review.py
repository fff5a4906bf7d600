"""Review of a build's rows: blind, resumable, by several people; spreadsheets; adjudication; the reviewed build."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.annotation.review_outcomes import agreement_numbers, outcomes, pair_counts
from app.annotation.review_session import Review, find_build, find_review
from app.annotation.review_store import CHOICES, Decision, ReviewChangedError, ReviewStore
from app.commands.people.review_command import ReviewArguments, review
from app.store.workspace import Workspace
from benchmarks.build import Build, BuildOptions
from benchmarks.clash import Clash
from benchmarks.cmc_bench import CMCBench
from benchmarks.crosscheck_bench import CrossCheckBench
from benchmarks.errors import AnotherBuildError, RashomonError, SourceError, SpecError, StoreError
from judges.judge_agreement import fleiss_sums, gwet_ac1, gwet_from_sums
from tests.support.charts import draw_sources
from tests.support.command import Rashomon
from tests.support.data.clash import published_folder, published_row
from tests.support.data.crosscheck_bench import row as crosscheck_row
from tests.support.data.crosscheck_bench import write_rows

CLASH_ROWS = 12


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("builds")
    source = published_folder(folder / "source", [published_row(number) for number in range(1, CLASH_ROWS + 1)])
    Clash().build([("published", str(source))], folder / "clash", BuildOptions())
    draw_sources(folder / "charts")
    CMCBench().build([("", str(folder / "charts"))], folder / "cmc", BuildOptions())
    return folder


@pytest.fixture
def home(built: Path, tmp_path: Path) -> Workspace:
    for name in ("clash", "cmc"):
        shutil.copytree(built / name, tmp_path / name)
    return Workspace(tmp_path / "workspace")


def types(*words: str) -> Callable[[str], str]:
    """Types these words, one a prompt, then ends the input."""
    typed = iter(words)

    def ask(prompt: str) -> str:
        try:
            return next(typed)
        except StopIteration:
            raise EOFError from None

    return ask


def reviewed(home: Workspace, reviewer: str | None, *words: str, build: str = "clash", **options: Any) -> int:
    arguments = ReviewArguments(reviewer=reviewer, **options)
    return review(home, str(home.path.parent / build), arguments, ask=types(*words))


def made(home: Workspace, build: str = "clash", reviewer: str | None = None) -> list[Decision]:
    with ReviewStore.open(home.path / "reviews" / build) as store:
        return store.decisions(reviewer)


def current(home: Workspace, build: str = "clash") -> Review:
    return find_review(home, find_build(home, home.path.parent / build))


def decide(home: Workspace, reviewer: str, choices: Mapping[int, str], build: str = "clash", **more: Any) -> None:
    """Store decisions by position, without a session."""
    reasons = {"reject": "question"}
    with current(home, build).open() as store:
        store.enrol(reviewer)
        ids = store.ids()
        store.decide(
            *(Decision(ids[n], reviewer, choice, reasons.get(choice, ""), **more) for n, choice in choices.items())  # type: ignore[arg-type]
        )


# --- sessions ------------------------------------------------------------------------------------


def test_every_decision_is_saved_at_once_and_the_session_continues(
    home: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    reviewed(home, "ann", "a", "r 2", "?", "r", "3", "s", "f", "4", "Which colour has the cat?", "", "q")
    assert [(d.choice, d.reason) for d in made(home)] == [
        ("accept", ""),
        ("reject", "question"),
        ("reject", "answers"),
        ("fix", ""),
    ]
    assert made(home)[3].corrections == {"question": "Which colour has the cat?"}
    out = capsys.readouterr().out
    assert "Conflicting caption: A *black* cat on couch 1." in out
    assert "CLASH, Appendix G" in out
    assert "'?' is none of the keys" in out
    reviewed(home, "ann", *["a"] * 20)
    assert len(made(home)) == CLASH_ROWS, "the skipped row came up again"
    assert "ann: 12 of 12 rows decided" in capsys.readouterr().out


def test_undo_returns_to_the_last_row_and_keeps_the_undone_decision_set_aside(home: Workspace) -> None:
    reviewed(home, "ann", "a", "r image", "u", "a")
    assert [d.choice for d in made(home)] == ["accept", "accept"]
    reviewed(home, "ann", "u", "u", "u", "r image")
    assert [d.choice for d in made(home)] == ["reject"]


def test_a_reviewer_sees_nobody_elses_decisions_and_an_adjudicator_sees_them(
    home: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    reviewed(home, "ann", "a", "r the horse is a cow", "a")
    capsys.readouterr()
    reviewed(home, "bob", "a", "a", "a", "a")
    out = capsys.readouterr().out
    assert "horse" not in out
    assert "ann" not in out
    reviewed(home, "cat", "a", "q", adjudicate=True)
    out = capsys.readouterr().out
    assert "ann: reject (the horse is a cow)" in out
    assert "1 of 1 rows decided" in out
    with pytest.raises(SpecError, match="twice"):
        reviewed(home, "ann", adjudicate=True)


@pytest.mark.parametrize(
    "words", [("r", ""), ("f", "4", ""), ("f", "99", ""), ("f", "4", "What color is the cat?", "")]
)
def test_a_rejection_without_a_reason_and_a_fix_that_changes_nothing_are_not_saved(
    home: Workspace, words: tuple[str, ...]
) -> None:
    reviewed(home, "ann", *words)
    assert made(home) == []


# --- who -----------------------------------------------------------------------------------------


def test_two_reviewers_with_one_name_are_refused(home: Workspace) -> None:
    decide(home, "ann", {0: "accept"})
    with current(home).open() as store:
        with pytest.raises(SpecError, match="only in case"):
            store.enrol("Ann")
        with pytest.raises(SpecError, match="another account"):
            store.enrol("ann", account="someone@elsewhere")
        assert store.enrol("ann", account="someone@elsewhere", same_person=True)
        with store.session("ann"), pytest.raises(StoreError, match="another session"), store.session("ann"):
            pass
        with store.session("ann"), store.session("bob"):
            pass
        with pytest.raises(SpecError):
            store.enrol("../ann")


# --- the build -----------------------------------------------------------------------------------


def test_a_build_that_changed_since_is_refused_and_no_decision_is_lost(home: Workspace, built: Path) -> None:
    decide(home, "ann", {0: "accept", 1: "reject"})
    source = published_folder(home.path.parent / "other", [published_row(number) for number in (1, 2, 3, 50)])
    Clash().build([("published", str(source))], home.path.parent / "clash", BuildOptions(replace=True))
    refused: tuple[dict[str, Any], ...] = ({}, {"out": Path("x")}, {"export_file": Path("x.csv")})
    for options in refused:
        with pytest.raises(ReviewChangedError) as caught:
            reviewed(home, "ann", "a", **options)
        assert caught.value.exit_code == 2
    reviewed(home, "ann", "a", name="again")
    shutil.rmtree(home.path.parent / "clash")
    shutil.copytree(built / "clash", home.path.parent / "clash")
    assert [d.choice for d in made(home)] == ["accept", "reject"]
    reviewed(home, "ann", "a")
    assert len(made(home)) == 3


def test_a_share_is_random_and_bound_to_the_review(home: Workspace) -> None:
    reviewed(home, None, share=0.25, seed=3)
    with current(home).open() as store:
        assert len(store) == 3
    with pytest.raises(SpecError):
        reviewed(home, None, share=0.5)
    with pytest.raises(SpecError):
        reviewed(home, None, share=1.5, name="other")
    with pytest.raises(SpecError):
        reviewed(home, None, name="../up")


def test_cmc_bench_reviews_the_rows_that_its_construction_reserved(home: Workspace) -> None:
    build = Build.open(home.path.parent / "cmc")
    with current(home, "cmc").open() as store:
        assert len(store) == build.manifest["manual_check"] == round(0.2 * build.manifest["instances"])


# --- agreement -----------------------------------------------------------------------------------


def test_agreement_equals_a_hand_computation() -> None:
    # Rows of Gwet (2008)'s kind: one choice is frequent, so kappa is low and AC1 high.
    pairs = [("accept", "accept")] * 45 + [("accept", "reject")] * 3 + [("reject", "accept")] * 1
    pairs += [("reject", "reject")] * 1
    first = {str(n): a for n, (a, _) in enumerate(pairs)}
    second = {str(n): b for n, (_, b) in enumerate(pairs)}
    numbers = agreement_numbers(pair_counts(first, second, ("accept", "reject")))
    agreed = 46 / 50
    kappa_chance = (48 * 46 + 2 * 4) / 2500
    share = (48 + 46) / 100
    ac1_chance = 2 * share * (1 - share)
    assert numbers["agreement"].value == pytest.approx(agreed)
    assert numbers["kappa"].value == pytest.approx((agreed - kappa_chance) / (1 - kappa_chance))
    assert numbers["AC1"].value == pytest.approx((agreed - ac1_chance) / (1 - ac1_chance))
    three = agreement_numbers(pair_counts(first, second, CHOICES))["AC1"].value
    chance = (share * (1 - share) + (1 - share) * share) / 2
    assert three == pytest.approx((agreed - chance) / (1 - chance)), "the choice that nobody made counts"


# Two raters' ratings of 12 units in 5 categories, and irrCAC 0.4.4's values for them (Cohen's kappa, Gwet's AC1).
RATINGS = ([1, 2, 3, 3, 2, 1, 4, 1, 2, 5, 1, 3], [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 1, 3])


def test_ac1_equals_irrcac() -> None:
    counts = np.zeros((5, 5))
    for a, b in zip(*RATINGS, strict=True):
        counts[a - 1, b - 1] += 1
    assert float(gwet_ac1(counts)) == pytest.approx(IRRCAC_TWO, abs=5e-6)
    three = np.zeros((12, 5))
    for number, values in enumerate(zip(*RATINGS, THIRD, strict=True)):
        for value in values:
            three[number, value - 1] += 1
    assert float(gwet_from_sums(fleiss_sums(three).sum(0), 3)) == pytest.approx(IRRCAC_THREE, abs=5e-6)


THIRD = [1, 2, 3, 3, 2, 3, 4, 2, 2, 5, 1, 1]
IRRCAC_TWO, IRRCAC_THREE = 0.89733, 0.76046


# --- outcomes ------------------------------------------------------------------------------------


def test_outcome_of_a_row_is_what_the_reviewers_agree_on_or_the_adjudicator_says() -> None:
    def outcome(*decisions: Decision, required: int = 1) -> tuple[str, str]:
        result = outcomes(["x"], decisions, required)["x"]
        return result.choice, result.why

    yes, no = Decision("x", "ann", "accept"), Decision("x", "bob", "reject", "image")
    assert outcome() == ("undecided", "0 of 1 reviewers have decided")
    assert outcome(yes) == ("accept", "one reviewer")
    assert outcome(yes, required=2)[0] == "undecided"
    assert outcome(yes, no) == ("undecided", "the reviewers disagree")
    fix = Decision("x", "ann", "fix", corrections={"question": "a"})
    other = Decision("x", "bob", "fix", corrections={"question": "b"})
    assert outcome(fix, other)[0] == "undecided", "two different corrections are no agreement"
    settled = Decision("x", "cat", "reject", "question", adjudication=True)
    assert outcome(yes, no, settled) == ("reject", "adjudicated")


# --- the reviewed build --------------------------------------------------------------------------


def test_reviewed_build_has_the_accepted_and_fixed_rows_and_the_provenance(home: Workspace) -> None:
    out = home.path.parent / "reviewed"
    decide(home, "ann", dict.fromkeys(range(CLASH_ROWS), "accept") | {1: "reject", 4: "reject"})
    decide(home, "bob", dict.fromkeys(range(CLASH_ROWS), "accept") | {1: "reject"})
    decide(home, "bob", {2: "fix"}, corrections={"question": "Which colour has the cat?"})
    with pytest.raises(SpecError, match="2 of 12 rows are undecided"):
        reviewed(home, None, out=out)
    reviewed(home, "cat", "f", "4", "Which colour has the cat?", "", "r image", adjudicate=True)
    reviewed(home, None, out=out)
    source, new = Build.open(home.path.parent / "clash"), Build.open(out)
    before, after = [*source.rows()], [*new.rows()]
    assert len(after) == CLASH_ROWS - 2
    assert [row["original_caption"] for row in after] == [
        row["original_caption"] for n, row in enumerate(before) if n not in (1, 4)
    ]
    assert after[1]["question"] == "Which colour has the cat?"
    assert after[1]["id"] not in {row["id"] for row in before}, "another question is another sample"
    facts = new.manifest["review"]
    assert new.manifest["source"]["digest"] == source.digest
    assert facts["reviewers"] == {"ann": {"accept": 10, "reject": 2}, "bob": {"accept": 10, "fix": 1, "reject": 1}}
    assert facts["adjudicators"] == {"cat": 2}
    assert facts["outcome"] == {"accept": 9, "fix": 1, "reject": 2, "undecided": 0}
    assert facts["reasons"] == {"image": 1, "question": 1}
    assert facts["agreement"]["ann, bob"]["agreement"] == pytest.approx(10 / 12, abs=1e-6)
    skipped = [json.loads(line) for line in (out / "skipped.jsonl").read_text().splitlines()]
    assert {row["reason"] for row in skipped} == {"rejected: image", "rejected: question"}
    assert len(list((out / "media").iterdir())) == CLASH_ROWS - 2
    decide(home, "ann", {5: "reject"})
    decide(home, "bob", {5: "reject"})
    with pytest.raises(AnotherBuildError):
        reviewed(home, None, out=out)
    reviewed(home, None, out=out, replace=True)


def test_a_reviewed_build_runs_like_any_other(home: Workspace) -> None:
    decide(home, "ann", {n: "reject" if n < 3 else "accept" for n in range(CLASH_ROWS)})
    rashomon = Rashomon(home.path.parent)
    rashomon.run("review", home.path.parent / "clash", "--out", "good")
    rashomon.run("--batch", "--benchmark", "clash", "--data", "good", "--model", "policy:uniform", "--name", "r")
    assert rashomon.json("runs")[0]["done"] == (CLASH_ROWS - 3) * 4


def test_all_rows_of_an_example_leave_with_a_rejected_one_and_share_a_correction(home: Workspace) -> None:
    with current(home, "cmc").open() as store:
        rows = [store.row(item) for item in store.ids()]
    groups = [row["group"] for row in rows]
    fixed = next(n for n, row in enumerate(rows) if row["passage"])
    rejected = next(n for n, group in enumerate(groups) if group != groups[fixed])
    decide(home, "ann", dict.fromkeys(range(len(rows)), "accept") | {rejected: "reject"}, "cmc")
    decide(home, "ann", {fixed: "fix"}, "cmc", corrections={"passage": "A new passage.", "question": "A new question?"})
    reviewed(home, None, build="cmc", out=home.path.parent / "reviewed")
    source, new = Build.open(home.path.parent / "cmc"), Build.open(home.path.parent / "reviewed")
    after = [*new.rows()]
    assert groups[rejected] not in {row["group"] for row in after}
    siblings = [row for row in after if row["group"].startswith(groups[fixed])]
    originals = [row for row in source.rows() if row["group"] == groups[fixed]]
    assert len(siblings) == len(originals)
    assert all(row["question"] == "A new question?" for row in siblings)
    for row, original in zip(siblings, originals, strict=True):
        same = original["passage"] == rows[fixed]["passage"]
        assert row["passage"] == ("A new passage." if same else original["passage"])
        assert row["id"] != original["id"]
        assert row["id"].rpartition("/")[2] == original["id"].rpartition("/")[2]
    assert len({row["group"] for row in siblings}) == 1


def test_a_medium_that_is_gone_or_changed_is_named_and_the_row_can_be_rejected(
    home: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    build = home.path.parent / "clash"
    first, second = (row["image"]["sha256"] + row["image"]["suffix"] for row in [*Build.open(build).rows()][:2])
    (build / "media" / first).unlink()
    (build / "media" / second).write_bytes(b"not a picture")
    reviewed(home, "ann", "a")
    assert "cannot be shown" in capsys.readouterr().out
    decide(home, "ann", dict.fromkeys(range(CLASH_ROWS), "accept"))
    with pytest.raises(SourceError):
        reviewed(home, None, out=home.path.parent / "out")
    decide(home, "ann", {0: "reject"})
    with pytest.raises(SourceError, match="not the one that was built"):
        reviewed(home, None, out=home.path.parent / "out")
    decide(home, "ann", {1: "reject"})
    reviewed(home, None, out=home.path.parent / "out")


# --- spreadsheets --------------------------------------------------------------------------------


def sheet(home: Workspace, reviewer: str = "ann", build: str = "clash") -> tuple[Path, list[dict[str, str]]]:
    path = home.path.parent / f"{reviewer}.csv"
    reviewed(home, reviewer, build=build, export_file=path)
    return path, [*csv.DictReader(path.open(encoding="utf-8"))]


def save(path: Path, rows: list[dict[str, str]], **options: Any) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0].keys(), **options)
        writer.writeheader()
        writer.writerows(rows)


def test_a_sheet_with_rows_removed_and_reordered_is_matched_by_id(
    home: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    path, rows = sheet(home)
    assert len(rows) == CLASH_ROWS
    order = [row["id"] for row in rows]
    rows[0]["decision"] = "Accept"
    rows[3] |= {"decision": "reject", "reason": "answers"}
    rows[7] |= {"decision": "fix", "Question": "Which colour?"}
    save(path, [rows[7], rows[5], rows[3], rows[0]], delimiter=";")
    capsys.readouterr()
    reviewed(home, "ann", import_file=path)
    assert "3 new decisions, 0 changed, 0 as before; 1 rows without a decision, 8 rows not in the file" in (
        capsys.readouterr().out
    )
    assert [(d.item, d.choice) for d in made(home)] == [
        (order[0], "accept"),
        (order[3], "reject"),
        (order[7], "fix"),
    ]
    assert made(home)[2].corrections == {"question": "Which colour?"}
    path, rows = sheet(home)
    assert [row["decision"] for row in rows].count("") == CLASH_ROWS - 3
    assert rows[7]["Question"] == "Which colour?"
    rows[0] |= {"decision": "reject", "reason": "image"}
    save(path, rows)
    capsys.readouterr()
    reviewed(home, "ann", import_file=path)
    assert "0 new decisions, 1 changed, 2 as before; 9 rows without a decision, 0 rows not" in capsys.readouterr().out


BAD_SHEETS: Mapping[str, Callable[[list[dict[str, str]]], object]] = {
    "unknown id": lambda rows: rows[0].update(id="clash-0"),
    "unknown decision": lambda rows: rows[0].update(decision="maybe"),
    "no reason": lambda rows: rows[0].update(decision="reject"),
    "accept with a changed text": lambda rows: rows[0].update(decision="accept", Question="Why?"),
    "changed text without decision": lambda rows: rows[0].update(Question="Why?"),
    "fix without change": lambda rows: rows[0].update(decision="fix"),
    "row decided twice": lambda rows: rows.extend(
        {**rows[0], "decision": choice, "reason": "x"} for choice in ("accept", "reject")
    ),
    "another reviewer": lambda rows: rows[0].update(reviewer="bob"),
    "another build": lambda rows: rows[0].update(build="0" * 16),
    "no id": lambda rows: [row.pop("id") for row in rows],
}


@pytest.mark.parametrize("fault", BAD_SHEETS)
def test_a_bad_sheet_is_refused_whole(home: Workspace, fault: str) -> None:
    path, rows = sheet(home)
    rows[5]["decision"] = "accept"
    BAD_SHEETS[fault](rows)
    save(path, rows)
    with pytest.raises(SourceError):
        reviewed(home, "ann", import_file=path)
    assert made(home) == []


def test_hostile_texts_are_escaped_on_the_terminal_and_in_sheets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile = "=cmd|' /C calc'!A0\x1b[31m red‮"
    source = published_folder(tmp_path / "source", [published_row(1, question=hostile)])
    Clash().build([("published", str(source))], tmp_path / "clash", BuildOptions())
    home = Workspace(tmp_path / "workspace")
    reviewed(home, "ann", "f", "4", hostile + "!", "")
    assert "\x1b" not in capsys.readouterr().out
    path, rows = sheet(home)
    assert rows[0]["Question"].startswith("'=")
    assert "\x1b" not in path.read_text("utf-8")
    save(path, rows)
    with pytest.raises(RashomonError):  # the escaped text would be another correction
        review(home, str(tmp_path / "clash"), ReviewArguments(reviewer="bob", import_file=path))


# --- the command ---------------------------------------------------------------------------------


def test_the_command_prints_the_state_of_the_review_as_text_and_json(home: Workspace) -> None:
    rashomon, build = Rashomon(home.path.parent), home.path.parent / "clash"
    assert "nobody has decided" in rashomon.run("review", build).stdout
    decide(home, "ann", dict.fromkeys(range(CLASH_ROWS), "accept"))
    decide(home, "bob", dict.fromkeys(range(CLASH_ROWS - 2), "accept") | {3: "reject"})
    out = rashomon.run("review", build, "--require", "2").stdout
    for text in ("Decisions", "ann, bob", "AC1", "1 wait for an adjudicator"):
        assert text in out
    facts = rashomon.json("review", build)
    assert [*facts["outcomes"].values()].count("undecided") == 1
    for wrong in (("--adjudicate",), ("--export", "x.csv"), ("--undecided", "keep"), ("--reviewer", "a b")):
        assert "rashomon:" in rashomon.run("review", build, *wrong, code=2).stderr
    rashomon.run("review", "nothing-here", code=2)


def test_levels_are_decided_with_the_row_and_their_agreement_is_reported(home: Workspace) -> None:
    folder = home.path.parent / "crosscheck"
    rows = [crosscheck_row(task, number) for task in ("LD", "BI*") for number in (0, 1)]
    source = write_rows(folder / "rows", rows)
    CrossCheckBench().build([("rows", str(source))], home.path.parent / "cross", BuildOptions())
    reviewed(home, "ann", "L1", "a l1", "r L2", "ambiguous", "f L3", "1", "Which product?", "", build="cross")
    assert [(d.choice, d.reason, d.grade) for d in made(home, "cross")] == [
        ("accept", "", "L1"),
        ("accept", "", "L1"),
        ("reject", "ambiguous", "L2"),
        ("fix", "", "L3"),
    ]
    path, sheet_rows = sheet(home, "bob", "cross")
    for row, level in zip(sheet_rows, ("L1", "l2", "", "L4"), strict=True):
        row |= {"decision": "accept", "level": level}
    save(path, sheet_rows)
    with pytest.raises(SourceError, match="no level"):
        reviewed(home, "bob", build="cross", import_file=path)
    sheet_rows[3]["level"] = "L3"
    save(path, sheet_rows)
    reviewed(home, "bob", build="cross", import_file=path)
    facts = Rashomon(home.path.parent).json("review", home.path.parent / "cross")
    (row,) = next(table["rows"] for table in facts["tables"] if table["name"] == "levels")
    assert (row["cells"]["rows"], row["cells"]["agreement"]["value"]) == (3, pytest.approx(2 / 3))
    reviewed(home, "cat", "L1", "r L3", "4", "L3", "q", build="cross", adjudicate=True)
    reviewed(home, None, build="cross", out=home.path.parent / "good")
    levels = Build.open(home.path.parent / "good").manifest["review"]["levels"]
    assert (levels["decided"], levels["as_assigned"], levels["overridden"]) == (4, 4, 0)
