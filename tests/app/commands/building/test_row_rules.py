"""The column ``trust``: each row of a user's own table says what should win for it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.answer_behaviour import FOLLOWS
from benchmarks.vocabulary import RULES
from tests.support.command import Rashomon
from tests.support.data.small import picture

ROWS = 12
POLICIES = ("always-text", "always-image")


def home(folder: Path, trust: Sequence[str]) -> Rashomon:
    """A home with a table whose rows say these, and the runs of two policies over it."""
    rashomon = Rashomon(folder)
    for n in range(ROWS):
        (rashomon.home / f"{n}.png").write_bytes(picture(n))
    rows = "".join(f"{n}.png,How many on the page?,{n + 5},{rule}\n" for n, rule in enumerate(trust))
    (rashomon.home / "rows.csv").write_text(f"image,question,answer,Trust\n{rows}")
    rashomon.run("build", "cmc-bench", "--from", "rows.csv")
    for policy in POLICIES:
        asked = ("--benchmark", "cmc-bench", "--model", f"policy:{policy}", "--name", policy, "--display", "none")
        rashomon.run("--batch", *asked)
    return rashomon


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> Rashomon:
    """Nine rows whose text should win, two whose image should, and one to be flagged."""
    return home(tmp_path_factory.mktemp("every"), ["text"] * 9 + [" Image "] * 2 + ["flag"])


@pytest.fixture(scope="module")
def partly(tmp_path_factory: pytest.TempPathFactory) -> Rashomon:
    """Nine rows whose text should win, and three that do not say it."""
    return home(tmp_path_factory.mktemp("partly"), ["text"] * 9 + [""] * 3)


def card(rashomon: Rashomon, run: str, *options: str) -> dict[str, float | None]:
    """The lines of a run's scorecard."""
    (table,) = rashomon.json("show", run, "--table", "scorecard", *options)["tables"]
    return {row["label"]: next(iter(row["cells"].values()))["value"] for row in table["rows"]}


def recommended(rashomon: Rashomon, *options: str) -> dict[str, Any]:
    answer: dict[str, Any] = rashomon.json("recommend", *POLICIES, *options)
    return answer


def test_each_row_is_followed_by_its_own_rule(every: Rashomon) -> None:
    lines = card(every, "always-text")
    assert lines["conflict: follows your rule (each row's own)"] == pytest.approx(9 / 12)
    assert lines["conflict: follows the other source"] == pytest.approx(3 / 12)
    assert sum(value or 0 for name, value in lines.items() if name.startswith("conflict: ")) == pytest.approx(1)
    assert card(every, "always-image")["conflict: follows your rule (each row's own)"] == pytest.approx(2 / 12)


def test_where_every_row_says_it_nobody_asks(every: Rashomon) -> None:
    printed = every.run("show", "always-text").stdout
    assert "follows your rule (each row's own) in 75%" in printed
    assert "--trust" not in printed
    advice = recommended(every)
    assert (advice["best"], advice["by_rule"]) == ("always-text", [])
    assert next(iter(advice["table"]["rows"][0]["cells"])) == "obedience"


def test_a_rows_rule_goes_before_the_option(every: Rashomon) -> None:
    assert card(every, "always-text", "--trust", "image") == card(every, "always-text")
    assert recommended(every, "--trust", "image")["best"] == "always-text"


def test_a_metric_that_is_asked_for_decides(every: Rashomon) -> None:
    columns = recommended(every, "--metric", "accuracy")["table"]["rows"][0]["cells"]
    assert next(iter(columns)) == "accuracy"


def test_a_column_that_is_partly_filled_needs_the_option(partly: Rashomon) -> None:
    printed = partly.run("show", "always-text").stdout
    assert "Say what should win where they disagree" in printed
    assert "The rows themselves say what should win for 27 of 36 answers under conflict." in printed
    assert not any("your rule" in name for name in card(partly, "always-text"))
    assert next(iter(recommended(partly)["table"]["rows"][0]["cells"])) == "accuracy"
    lines = card(partly, "always-text", "--trust", "image")
    assert lines["conflict: follows your rule (each row's own)"] == pytest.approx(9 / 12)
    assert card(partly, "always-text", "--trust", "text")["conflict: follows your rule (text)"] == 1


def test_the_check_says_that_some_rows_have_no_rule(partly: Rashomon, every: Rashomon) -> None:
    remark = "9 of 12 rows say what should win"
    assert remark in partly.run("build", "cmc-bench", "--from", "rows.csv", "--check").stdout
    checked = every.run("build", "cmc-bench", "--from", "rows.csv", "--check").stdout
    assert "say what should win" not in checked
    assert "nothing is read from the column" not in checked


@pytest.mark.parametrize("cell", ["picture", "1", "image text"])
def test_another_word_is_refused_with_its_row_and_the_words_there_are(tmp_path: Path, cell: str) -> None:
    rashomon = Rashomon(tmp_path)
    for n in range(6):
        (rashomon.home / f"{n}.png").write_bytes(picture(n))
    rows = "".join(f"{n}.png,How many on the page?,{n + 5},{cell if n == 1 else 'image'}\n" for n in range(6))
    (rashomon.home / "rows.csv").write_text(f"image,question,answer,trust\n{rows}")
    checked = rashomon.run("build", "cmc-bench", "--from", "rows.csv", "--check").stdout
    assert "rows.csv:3" in checked
    assert "none of image, text, flag" in checked
    assert (
        "rows.csv:3: its trust is none of image, text, flag"
        in rashomon.run("build", "cmc-bench", "--from", "rows.csv").stdout
    )


def test_a_log_may_have_a_rule_in_each_line(tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    (rashomon.home / "p.png").write_bytes(picture(1))
    line = {"passages": ["It says so."], "images": ["p.png"], "answer": "4", "image_answer": "4"}
    log = [
        {**line, "question": "How many?", "text_answer": "7", "trust": "text"},
        {**line, "question": "How many now?", "text_answer": "8", "trust": "TEXT"},
        {**line, "question": "How many then?", "text_answer": "4", "trust": "flag"},
        {**line, "question": "How many there?", "text_answer": "9", "trust": "both"},
    ]
    (rashomon.home / "log.jsonl").write_text("\n".join(map(json.dumps, log)))
    checked = rashomon.run("build", "retrieval", "--from", "log.jsonl", "--check").stdout
    assert "what should win decides nothing in 1 row, whose sources agree" in checked
    assert "log.jsonl:4" in checked
    assert "none of image, text, flag" in checked
    rashomon.run("build", "retrieval", "--from", "log.jsonl")
    rashomon.run(
        "--batch", "--benchmark", "retrieval", "--model", "policy:always-text", "--name", "t", "--display", "none"
    )
    assert card(rashomon, "t")["conflict: follows your rule (text)"] == 1


def test_the_words_of_the_column_are_the_rules() -> None:
    assert [*RULES] == [*FOLLOWS]
