"""Checks of answers along a training: their rows, the verdict that two of them give, and what a log may contain."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from app.engine.training.training_answer_checks import change_line, check_line
from app.engine.training.training_log import LogReader, LogWriter
from app.engine.training.training_row_selection import drawn_for_check
from app.engine.training.training_spec_and_recipes import training_spec
from app.engine.training.training_verdict import verdict_of
from app.exit_codes import DONE, INCONCLUSIVE, REGRESSED
from benchmarks.training.training_set import ChatRow
from mlx_backends.training_settings import CheckReport
from tests.support.trainings import ended_curve


def check(conflict: str, kept: str, step: int = 30, *, names: bool = True) -> CheckReport:
    return CheckReport(step, {"conflict": conflict, "no conflict": kept}, {}, 1.0, names)


BASE = check("-" * 12, "+" * 12, 0)


@pytest.mark.parametrize(
    ("after", "code", "words"),
    [
        (check("+" * 9 + "---", "+" * 12), DONE, "names conflicts 0 to 9 of 12, keeps 12 to 12 of 12"),
        (check("+" * 9 + "---", "+" * 11 + "-"), DONE, "keeps 12 to 11 of 12 (too few to show a loss)"),
        (check("+" * 12, "+" * 12), DONE, "names conflicts 0 to 12 of 12, keeps 12 to 12 of 12"),
        # Always abstains: its loss may fall and it names every conflict.
        (check("+" * 12, "+" + "-" * 11), REGRESSED, "keeps 12 to 1 of 12"),
        (check("+" * 12, "+" * 5 + "-" * 7), REGRESSED, "keeps 12 to 5 of 12"),
        # Six losses of six have p = .031, which is corrected for two kinds unless the other kind is clear.
        (check("+" * 12, "+" * 6 + "-" * 6), REGRESSED, "keeps 12 to 6 of 12"),
        (check("-" * 12, "+" * 6 + "-" * 6), INCONCLUSIVE, "keeps 12 to 6 of 12 (too few to show a loss)"),
        # Fewer are no shown loss; from a quarter of the rows on they are no recommendation either.
        (check("+" * 12, "+" * 7 + "-" * 5), INCONCLUSIVE, "5 of 12 right answers may be lost; a run with the adapter"),
        (check("+" * 12, "+" * 9 + "-" * 3), INCONCLUSIVE, "3 of 12 right answers may be lost"),
        (check("+" * 12, "+" * 10 + "-" * 2), DONE, "keeps 12 to 10 of 12 (too few to show a loss)"),
        # What the rules cannot tell is no loss, and no proof that there is none.
        (check("+" * 12, "?" * 12), INCONCLUSIVE, "keeps 12 to 0 of 12 (12 cannot be told)"),
        (check("+" * 12, "+" * 10 + "??"), DONE, "keeps 12 to 10 of 12 (2 cannot be told)"),
        # A lower loss without a gain of right answers.
        (check("-" * 12, "+" * 12), INCONCLUSIVE, "no gain in right answers is shown; a run with the adapter"),
        (check("+" * 6 + "-" * 6, "+" * 12), INCONCLUSIVE, "no gain in right answers is shown"),
        (check("+" * 7 + "-" * 5, "+" * 12), DONE, "names conflicts 0 to 7 of 12"),
    ],
)  # fmt: skip
def test_loss_and_answers_decide_together(after: CheckReport, code: int, words: str) -> None:
    verdict = verdict_of(ended_curve(5.0, (30, 0.4), (BASE, after)))
    assert verdict.code == code
    assert words in verdict.sentence
    assert "loss 0.4 against 5 of the base" in verdict.sentence
    assert verdict.sentence.startswith(
        {DONE: "use best", REGRESSED: "do not use it: worse than the base", INCONCLUSIVE: "nothing can be told"}[code]
    )


def test_answers_that_are_none_are_counted() -> None:
    base = check("-" * 12, "+" * 12, 0)
    after = replace(
        check("-" * 12, "-" * 12), outcomes={"conflict": {"none": 12}, "no conflict": {"invents": 5, "none": 7}}
    )
    sentence = verdict_of(ended_curve(5.0, (30, 0.4), (base, after))).sentence
    assert "names conflicts 0 to 0 of 12 (12 give no answer), keeps 12 to 0 of 12 (7 give no answer)" in sentence


def test_conflicts_that_are_named_no_longer_count_too() -> None:
    base, after = check("+" * 12, "+" * 12, 0), check("-" * 12, "+" * 12)
    verdict = verdict_of(ended_curve(5.0, (30, 0.4), (base, after)))
    assert (verdict.code, "it names fewer conflicts; at best" in verdict.sentence) == (REGRESSED, True)


def test_a_higher_loss_is_worse_whatever_the_answers_are() -> None:
    curve = ended_curve(5.0, (30, 5.1), (BASE, check("+" * 12, "+" * 12)))
    assert verdict_of(curve).code == REGRESSED


@pytest.mark.parametrize(
    ("marks", "has_conflicts", "words"),
    [
        ({"conflict": "+" * 12}, True, "nothing was checked without a conflict: add such rows to the data"),
        ({"conflict": "+" * 12}, False, "nothing was checked without a conflict"),
        ({"no conflict": "+" * 12}, True, "nothing was checked with a conflict: add such rows to the data"),
        ({"no conflict": "+" * 12}, False, ""),
        ({"": "+" * 12}, True, ""),
    ],
)
def test_nothing_is_advised_of_a_kind_that_was_not_checked(
    marks: dict[str, str], has_conflicts: bool, words: str
) -> None:
    """As where all rows conflict, and the model learns to name a conflict always."""
    base = CheckReport(0, dict.fromkeys(marks, "-" * 12), {}, 1.0)
    curve = ended_curve(5.0, (30, 0.4), (base, CheckReport(30, marks, {}, 1.0)))
    verdict = verdict_of(curve, has_conflicts=has_conflicts)
    assert verdict.code == (INCONCLUSIVE if words else DONE)
    assert words in verdict.sentence


@pytest.mark.parametrize(
    ("base", "after", "code"),
    [
        ("-" * 10, "+" + "-" * 9, INCONCLUSIVE),
        ("+" + "-" * 11, "+" * 3 + "-" * 9, INCONCLUSIVE),
        ("+" + "-" * 11, "+" * 9 + "-" * 3, DONE),
        ("++" + "-" * 10, "++" + "-" * 10, DONE),
    ],
)
def test_answers_to_learn_that_the_base_never_gives_may_be_wrong(base: str, after: str, code: int) -> None:
    """As with random labels, whose check shows neither a loss nor a gain of what they call right."""
    checks = check("-" * 12, base, 0), check("+" * 12, after)
    verdict = verdict_of(ended_curve(5.0, (30, 0.4), checks))
    assert verdict.code == code
    doubt = f"only {base.count('+')} of {len(base)} answers to learn without a conflict, so they may be wrong"
    assert (doubt in verdict.sentence) == (code == INCONCLUSIVE)


def test_best_update_that_was_not_checked_is_not_advised() -> None:
    verdict = verdict_of(ended_curve(5.0, (20, 0.4), (BASE,)))
    assert (verdict.code, "were not checked" in verdict.sentence) == (INCONCLUSIVE, True)


def test_rows_of_other_kinds_have_words_of_their_own() -> None:
    values = check("+" * 3 + "-" * 9, "+" * 12, names=False)
    assert check_line(values) == "answers 3 of 12 conflicts, keeps 12 of 12"
    assert change_line(BASE, values).startswith("answers conflicts 0 to 3 of 12")
    elsewhere = CheckReport(30, {"": "++-?"}, {}, 1.0)
    assert check_line(elsewhere) == "gives the answer to learn in 2 of 4 (1 cannot be told)"
    assert change_line(CheckReport(0, {"": "----"}, {}, 1.0), elsewhere) == (
        "gives the answer to learn in 0 to 2 of 4 (1 cannot be told)"
    )


def row(number: int, kind: str, condition: str, group: str) -> ChatRow:
    return ChatRow(f"validation.jsonl:{number}", (), "x", (), group=group, kind=kind, condition=condition)


def test_rows_are_as_many_with_a_conflict_as_without_of_every_condition_and_one_of_an_example() -> None:
    conditions = ("aligned", "image-only", "text-only")
    rows = [row(n, "no conflict", conditions[n % 3], f"g{n // 3}") for n in range(90)]
    rows += [row(100 + n, "conflict", "image-correct" if n % 10 else "both-wrong", f"g{n}") for n in range(30)]
    chosen = drawn_for_check(rows, 24, 0)
    assert chosen == [row for row in rows if row in chosen]
    counts = Counter((row.kind, row.condition) for row in chosen)
    assert Counter(row.kind for row in chosen) == {"conflict": 12, "no conflict": 12}
    assert counts["conflict", "both-wrong"] == 3  # all that there are
    assert set(counts) >= {("no conflict", condition) for condition in conditions}
    assert len({(row.kind, row.group) for row in chosen}) == 24
    assert drawn_for_check(rows, 24, 0) == chosen
    assert drawn_for_check(rows, 24, 1) != chosen
    assert len(drawn_for_check(rows[:90], 24, 0)) == 24
    assert len(drawn_for_check(rows[:7], 24, 0)) == 3


@pytest.mark.parametrize(
    ("steps", "batch", "rows", "every"), [(800, 16, 24, 80), (100, 16, 24, 20), (60, 4, 24, 60), (1, 1, 24, 1), (800, 16, 0, 0)]
)  # fmt: skip
def test_checks_of_a_short_training_are_few(steps: int, batch: int, rows: int, every: int) -> None:
    spec = training_spec({"model": "m", "data": "/d", "steps": steps, "batch_size": batch, "check_rows": rows})
    settings = spec.settings(1000)
    assert settings.check_every == every
    assert ("check_rows" in spec.identity()) == (rows > 0)


def test_a_log_gives_the_checks_back_and_skips_what_is_none(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path, 0)
    report = CheckReport(3, {"conflict": "+-?"}, {"conflict": {"names": 1, "right": 1, "undecided": 1}}, 2.0)
    writer.write(report)
    entry = json.loads((tmp_path / "log.jsonl").read_text())
    bad = [
        {"marks": 3},
        {"marks": {"conflict": "+\x1b[2J"}},
        {"outcomes": []},
        {"step": "3"},
        {"step": -1},
        {"seconds": "x"},
    ]
    with (tmp_path / "log.jsonl").open("a") as log:
        for change in bad:
            log.write(json.dumps(entry | change) + "\n")
    reader = LogReader(tmp_path)
    reader.poll()
    assert reader.curve.checks == [report]
    assert (report.named, report.conflicts, report.kept, report.agreeing) == (1, 3, 0, 0)
