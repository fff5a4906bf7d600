"""The answer is printed first, then the main table, and then where the rest is."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.build import Build
from tests.support.charts import draw_sources
from tests.support.command import Rashomon
from tests.support.data.small import picture

ROWS = 12


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Rashomon:
    """A home with two runs over a table of somebody's own rows."""
    rashomon = Rashomon(tmp_path_factory.mktemp("own"))
    for n in range(ROWS):
        (rashomon.home / f"{n}.png").write_bytes(picture(n))
    rows = "".join(f"{n}.png,How many on the page?,{n + 5}\n" for n in range(ROWS))
    (rashomon.home / "rows.csv").write_text(f"image,question,answer\n{rows}gone.png,x?,3\n")
    rashomon.run("build", "cmc-bench", "--from", "rows.csv")
    for policy in ("always-text", "always-image"):
        asked = ("--benchmark", "cmc-bench", "--model", f"policy:{policy}", "--name", policy, "--display", "none")
        rashomon.run("--batch", *asked)
    return rashomon


def lines(rashomon: Rashomon, *arguments: str) -> list[str]:
    return rashomon.run(*arguments).stdout.splitlines()


def test_show_says_what_a_run_comes_to_before_its_main_table(own: Rashomon) -> None:
    result = lines(own, "show", "always-text")
    assert result[0] == "always-text: done, 96 of 96 answered"
    sentence = "Where its sources disagree, policy:always-text follows the text in 100% of 36 answers."
    assert result[1].startswith(sentence)
    assert "reads the image alone in 0% of 12, reads the text alone in 100% of 12" in result[1]
    assert "It does not read the images" in result[1]
    assert result[2].startswith("Say what should win where they disagree with --trust image, text or flag")
    assert lines(own, "show", "always-text", "--trust", "text")[1].startswith(
        sentence.replace("the text", "your rule (text)")
    )
    assert result[4].rstrip() == "What it does with its sources, in %"
    assert result[-1].startswith(
        "More tables: main, by-type, labels, gap, arbitration, failures, both-audit, behaviours, abstention, risk-coverage, "
        "utility (--table "
    )
    assert len(result) < 27
    every = "\n".join(lines(own, "show", "always-text", "--all"))
    assert every.count("Labels by match@") > 4
    assert "More tables" not in every


def test_no_paper_stands_over_a_users_own_rows(own: Rashomon, tmp_path: Path) -> None:
    for arguments in (("show", "always-text", "--all"), ("show", "always-text", "always-image", "--table", "main")):
        message = "\n".join(lines(own, *arguments))
        assert "(paper)" not in message
        assert "Table 3" not in message
    rashomon = Rashomon(tmp_path)
    draw_sources(tmp_path / "sources")
    rashomon.run("build", "cmc-bench", "--source", tmp_path / "sources")
    asked = (
        "--benchmark",
        "cmc-bench",
        "--model",
        "policy:always-text",
        "--limit",
        "4",
        "--name",
        "r",
        "--display",
        "plain",
    )
    assert "(paper)" in rashomon.run("--batch", *asked).stdout
    assert "Qwen3-VL-4B (paper)" in rashomon.run("show", "r").stdout


def test_a_batch_over_own_rows_ends_without_the_papers_rows(own: Rashomon) -> None:
    asked = (
        "--benchmark",
        "cmc-bench",
        "--model",
        "policy:always-image",
        "--name",
        "always-image",
        "--display",
        "plain",
    )
    stdout = own.run("--batch", *asked).stdout
    assert "policy:always-image" in stdout
    assert "(paper)" not in stdout


def test_json_and_exports_are_complete_without_a_paper(own: Rashomon) -> None:
    tables = own.json("show", "always-text")["tables"]
    assert [table["name"] for table in tables] == [
        "main",
        "by-type",
        "labels",
        "gap",
        "arbitration",
        "failures",
        "both-audit",
        "behaviours",
        "scorecard",
        "abstention",
        "risk-coverage",
        "utility",
    ]
    assert tables[0]["title"] == "Main results"
    assert not any(row["label"].endswith("(paper)") for row in tables[0]["rows"])
    own.run("export", "always-text", "--format", "md", "--out", "files")
    assert r"\(paper\)" not in (own.home / "files" / "tables.md").read_text("utf-8")
    assert own.run("compare", "always-text", "published:Qwen3-VL-4B", code=2).stderr
    compared = own.json("compare", "always-text", "always-image")
    assert [table["name"] for table in compared["tables"]] == [
        *("values", "transitions", "differences", "changes", "flips", "abstention-differences", "cost")
    ]


def test_compare_says_whether_runs_differ_before_the_table(own: Rashomon) -> None:
    result = lines(own, "compare", "always-text", "always-image")
    rules = "policy:always-text (always the text's value) and policy:always-image (always the image's value) are rules that "
    assert result[0].startswith(
        f"{rules}answer without looking: floors that a model must beat, not candidates. By benchmark accuracy"
    )
    assert (
        "policy:always-image is right on 50.0% of the 48 answers that count in both, policy:always-text on 50.0%: 0 points ("
    ) in result[0]
    assert result[1].startswith("policy:always-text answers 60 prompts from the sources: ")
    assert " policy:always-image loses 12 of these 60 (20.0%, " in result[1]
    assert " Of those that policy:always-text answers otherwise, it gains 12 of these 12 (100.0%, " in result[1]
    assert result[1].endswith(" Under conflict, changed but not lost: 36 (36 text to image).")
    assert (
        " differ significantly (corrected for 10 comparisons; metrics that follow from one another count once): "
        in result[2]
    )
    titles = ("What became of the answers", "Differences")
    assert [line.startswith(titles[1]) for line in result if line.startswith(titles)] == [False, True]
    assert not [line for line in result if "Which label became which" in line]
    assert result[-1].startswith("More tables: values, changes, flips, abstention-differences, cost (--table NAME)")
    assert any(
        "Which label became which" in line for line in lines(own, "compare", "always-text", "always-image", "--all")
    )
    flips = lines(own, "compare", "always-text", "always-image", "--table", "flips")
    assert flips[:2] == result[:2]
    assert not [line for line in flips if line.startswith("Differences")]
    assert "did you mean 'flips'" in own.run("compare", "always-text", "always-image", "--table", "flip", code=2).stderr


def test_recommend_says_which_to_take_before_the_table(own: Rashomon) -> None:
    result = lines(own, "recommend", "always-text", "always-image")
    assert result[0].startswith("There is no model among these runs.")
    assert result[2].rstrip() == "Within 3 points of the best"


def test_a_build_says_what_came_of_it_in_words(own: Rashomon) -> None:
    result = lines(own, "build", "cmc-bench", "--from", "rows.csv", "--out", "again")
    assert result[0].endswith(f"{8 * ROWS} instances, {ROWS} media")
    assert "  examples: factual 12" in result
    assert "  left out: rows.csv:14: the image is missing; put the file in its place" in result
    assert not any(character in line for line in result for character in "{}")
    assert not any("shortfalls" in line for line in result)
    every = lines(own, "build", "cmc-bench", "--from", "rows.csv", "--out", "again", "--all")
    assert any(line.startswith("  shortfalls: entity 250, ") for line in every)
    manifest = own.json("build", "cmc-bench", "--from", "rows.csv", "--out", "again")["manifest"]
    assert manifest["shortfalls"]["entity"] == 250
    assert Build.open(own.home / "again").manifest == manifest
