"""Tests of the counts of answers that were cut while reasoning, are degenerate, or all the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from app.cli import run_cli
from app.report.tables.table_inputs import read_inputs
from app.store import run_tail
from app.store.run_summary import read_summary
from app.store.stored_answers import empty_quality
from app.store.workspace import Workspace
from benchmarks.answer_quality import AnswerQuality, is_repetition
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import FinishReason, Generation, Instance, Media, Text
from tests.support.runs import instances, make_run, says

REASONING = "<think>The chart shows 12, the passage says"


def charts(count: int, values: Callable[[int], str] = lambda n: str(20 + n)) -> list[Instance]:
    return [
        Instance(f"i{n}", f"g{n}", "c", "?", (Text("?"), Media(f"{n:064x}", ".png")), {"image": (values(n),)})
        for n in range(count)
    ]


def quality_of(
    items: Iterable[Instance],
    answer: Callable[[int], str],
    finish: Callable[[int], FinishReason] = lambda n: "stop",
    tokens: Callable[[int], int | None] = lambda n: 3,
    *,
    options: tuple[str, ...] = (),
) -> AnswerQuality:
    quality = AnswerQuality(frozenset({"neither"}))
    for n, item in enumerate(items):
        text = answer(n)
        quality.add(item, text, finish(n), tokens(n), generated=2, options=lambda _: options)
    return quality


@pytest.mark.parametrize(
    "text",
    [
        "!!!!!!!!!!!!",
        "43 43 43 43 43 43",
        "the the the the the th",
        "addCriterion\naddCriterion\naddCriterion\naddCriterion\naddCriterion",
        "@@@@@@@@@@@@@@@@",
        "0" * 40,
        "The bar is 43. " * 12 + "The bar",
        "的" * 30,
        "The chart shows 43. " + "It is a chart. " * 30,
        "The answer is " + "the " * 60,
    ],
)
def test_one_token_or_phrase_over_and_over_is_a_repetition(text: str) -> None:
    assert is_repetition(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "43",
        "1111",
        "5555555555",
        "1010101010",
        "no no",
        "-----",
        "100,000,000",
        "12, 12, 12, 15",
        "| a | b |\n|---|---|\n| 1 | 2 |",
        "The bar is 43. The bar is 44. The bar is 45. The bar is 46. The bar is 47.",
        "ha ha ha",
        "The bars are 43, 44 and 45. I looked at the chart again, and again, and again, and again, and again.",
        "| crop | 2019 | 2020 | 2021 | 2022 | 2023 |\n|---|---|---|---|---|---|\n| rye | - | - | - | - | - | - | - | - |",
        "Mississippi",
    ],
)
def test_values_and_sentences_are_no_repetition(text: str) -> None:
    assert not is_repetition(text)


def test_four_times_the_limit_is_advised_where_reasoning_is_cut() -> None:
    def clauses(cut: int, text: str, tokens: int | None = 512, generated: int = 2) -> tuple[str, ...]:
        quality = AnswerQuality()
        for n, item in enumerate(charts(20)):
            finish = "length" if n < cut else "stop"
            quality.add(item, text if n < cut else f"4{n}", finish, tokens, generated=generated, options=lambda _: ())
        return quality.clauses

    advised = ("2 of 20 answers gave no answer (cut while reasoning; try --max-tokens 2048)",)
    assert clauses(2, REASONING) == advised
    assert clauses(2, "", generated=0) == advised, "a server that hides the reasoning"
    assert "cut while reasoning" not in clauses(2, "", generated=512)[0], "control tokens that decoding drops"
    assert clauses(20, REASONING)[0].endswith("try --max-tokens 2048)")
    assert clauses(20, REASONING, None) == ("20 of 20 answers gave no answer (cut while reasoning)",)
    assert clauses(2, REASONING + "</think>43") == ()
    limited = AnswerQuality(max_tokens=256)
    limited.add(charts(1)[0], REASONING, "length", 5, generated=0, options=lambda _: ())
    assert limited.cut_clause.endswith("try --max-tokens 1024)"), "whatever a server counts"


def test_one_text_for_all_pictures_is_counted() -> None:
    assert quality_of(charts(16), lambda n: "The value is 43.").same == 16
    assert quality_of(charts(20), lambda n: "43" if n else "44").same == 19
    ends = ("The value is 43.", "The value is 43", "the value is **43**!")
    assert quality_of(charts(18), lambda n: ends[n % 3]).same == 18
    assert quality_of(charts(16), lambda n: "-43" if n % 2 else "43").same == 0
    assert quality_of(charts(16), lambda n: "The bar is at 43" if n % 2 else "43").same == 0


@pytest.mark.parametrize("word", ["Yes.", "no", "B", "(C)", "NEITHER"])
def test_a_bias_towards_a_choice_is_a_result(word: str) -> None:
    assert quality_of(charts(40), lambda n: word).same == 0


def test_the_abstention_that_a_prompt_asks_for_is_a_choice() -> None:
    quality = empty_quality(benchmark := get_benchmark("cmc-bench"), {"model": "m"})
    for item in charts(40):
        quality.add(item, f"{benchmark.abstention_phrase}!", "stop", 3, generated=2, options=lambda _: ())
    assert quality.same == 0


def test_equal_answers_to_equal_questions_are_normal() -> None:
    assert quality_of(charts(40, lambda n: "12"), lambda n: "12").same == 0
    assert quality_of(charts(40, lambda n: "12" if n % 3 else str(n)), lambda n: "12").same == 0
    assert quality_of(charts(40), lambda n: "43", options=("43", "44")).same == 0
    assert quality_of(charts(7), lambda n: "43").same == 0


@pytest.mark.parametrize(
    ("text", "finish", "named"),
    [
        (
            REASONING,
            "length",
            "24 of 24 answers gave no answer (cut while reasoning; try --max-tokens 1024)",
        ),
        ("<pad><pad><pad><pad>", "length", "24 of 24 answers are empty, or hold nothing but control tokens or blanks"),
        ("!!!!!!!!!!!!!!!!", "length", "24 of 24 answers are one token or phrase repeated"),
    ],
)
def test_the_first_line_of_show_and_every_table_say_it(
    text: str, finish: FinishReason, named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = Workspace(tmp_path)
    answer = says(text)

    def answering(instance: Instance) -> Generation:
        return replace(answer(instance), finish_reason=finish)

    folder = make_run(workspace, "poor", instances(4), answering)
    good = make_run(workspace, "good", instances(4), says("12"))
    assert run_cli(["--workspace", str(tmp_path), "show", "poor"]) == 0
    assert named in capsys.readouterr().out.splitlines()[0]
    assert run_cli(["--workspace", str(tmp_path), "show", "good"]) == 0
    assert capsys.readouterr().out.splitlines()[0].endswith("24 of 24 answered")
    inputs = read_inputs([folder, good])
    assert [remark for remark in inputs.remarks if named in remark] == [f"poor: {named}."]
    assert len(inputs.runs["poor"]) == 24


def test_live_reads_the_same_a_piece_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_tail, "_MOST_ANSWERS", 10)
    folder = make_run(Workspace(tmp_path), "poor", instances(4), says("!!!!!!!!!!!!"))
    reader = run_tail.Tail(folder)
    amounts = ("10 of 10", "20 of 20", "24 of 24", "24 of 24")
    assert [reader.read().poor for _ in amounts] == [
        (f"{amount} answers are one token or phrase repeated",) for amount in amounts
    ]


def test_blank_and_empty_answers_are_named() -> None:
    for text in ("", "\n\n\n"):
        quality = quality_of(charts(12), lambda n, text=text: "43" if n % 2 else text)  # type: ignore[misc]
        assert quality.control == 6
        assert quality.clauses[0].startswith("6 of 12 answers are empty")


def test_runs_counts_hidden_reasoning_that_was_cut(tmp_path: Path) -> None:
    def hides(instance: Instance) -> Generation:
        return Generation(f"{instance.id}#0", "", "length", (), 30, 64)

    folder = make_run(Workspace(tmp_path), "hidden", instances(2), hides)
    assert read_summary(folder).cut_reasoning == 12


@pytest.mark.slow
def test_comparison_recommendation_and_report_say_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    workspace = Workspace(tmp_path)

    def answering(instance: Instance) -> Generation:
        return replace(says(REASONING)(instance), finish_reason="length", completion_tokens=64)

    make_run(workspace, "poor", instances(4), answering)
    make_run(workspace, "good", instances(4), says("12"))
    assert run_cli(["--workspace", str(tmp_path), "runs"]) == 0
    assert ["24 cut while reasoning" in line for line in capsys.readouterr().out.splitlines() if line[:1] != " "] in (
        [True, False],
        [False, True],
    )
    named = "24 of 24 answers gave no answer (cut while reasoning; try --max-tokens 1024)"
    for command in ("compare", "recommend"):
        assert run_cli(["--workspace", str(tmp_path), command, "good", "poor"]) == 0
        assert named in capsys.readouterr().out
    report = tmp_path / "report"
    assert run_cli(["--workspace", str(tmp_path), "report", "good", "poor", "--out", str(report)]) == 0
    assert any(named in file.read_text("utf-8") for file in report.rglob("*.html"))
