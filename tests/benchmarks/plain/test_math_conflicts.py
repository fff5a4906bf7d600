"""Math conflicts: the artifact's role-neutral prompt, levels as types, and the paper's metric."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from app.papers.published_results import published_rows
from benchmarks.answers import Answers
from benchmarks.build import BuildOptions
from benchmarks.plain.plain_build import NO_CONFLICT, REPEATED
from benchmarks.vocabulary import Record, Text
from tests.support.data.plain import answers_of, data_set_of, main_table
from tests.support.data.small import write_lines, write_picture

MATH = data_set_of("math-conflicts")
ROBE = "A robe takes 2 bolts of blue fiber and half that much white fiber.  How many bolts in total does it take?"
EGGS = "Sixteen eggs, three eaten and four baked; the rest is sold for $2 each. How much is earned?"
PROMPTS = {0: "3e0df44d6cc0581e", 1: "8cf9d03d6ae6ef0d"}
"""The beginning of the sha256 of the artifact's own ``mismatch_prompt`` for ROBE, by the number of the image's problem."""


def row(
    number: int, channel: str = "image", level: str = "clean", shown: str = ROBE, answer: str = "3"
) -> dict[str, object]:
    """A row as the set's card describes it."""
    return {
        "id": f"gsm8k-{channel}-L0-{number:04}",
        "source": "gsm8k",
        "conflict_type": "mismatch",
        "channel": channel,
        "degradation_name": level,
        "image": f"{number}.png",
        "image_question": EGGS,
        "text_question": ROBE,
        "image_answer": "18",
        "text_answer": answer,
        "image_problem_id": number,
        "text_problem_id": number + 1,
        "prompt": f"Solve the following math problem step by step. End with '#### <answer>'.\n\nProblem: {shown}",
    }


def test_the_prompt_is_the_artifacts_and_shows_the_text_as_it_was_degraded(tmp_path: Path) -> None:
    for number in (0, 1):
        write_picture(tmp_path / f"{number}.png", number)
    corrupted = ROBE.replace("bolts", "bxlts")
    rows = [row(0), row(1), row(0, "text"), row(0, "text", "heavy_corruption", corrupted), row(1, answer="18.0")]
    write_lines(tmp_path / "rows.jsonl", rows)
    build = MATH.build([("published", str(tmp_path))], tmp_path / "out", BuildOptions())
    assert build.manifest["types"] == {"clean": 2, "heavy_corruption": 1}
    skipped = [json.loads(line)["reason"] for line in (build.path / "skipped.jsonl").read_text("utf-8").splitlines()]
    assert skipped[0] == REPEATED, "both channels have the same clean rows"
    assert skipped[1].startswith(NO_CONFLICT)
    shown = [instance.parts[-1] for instance in MATH.instances(build, "neutral")]
    texts = [part.text for part in shown if isinstance(part, Text)]
    for number, place in ((0, 0), (1, 3)):
        assert hashlib.sha256(texts[place].encode()).hexdigest()[:16] == PROMPTS[number]
    assert texts[6] == texts[0].replace("bolts", "bxlts")
    assert texts[2] == f"{ROBE}\n\n{texts[1]}"


def test_the_levels_of_a_problem_are_not_independent(tmp_path: Path) -> None:
    for number in range(4):
        write_picture(tmp_path / f"{number}.png", number)
    rows = [row(0), {**row(0, level="blur_light"), "image": "1.png"}, row(2), row(3)]
    for number in (2, 3):
        del rows[number]["image_problem_id"]  # which says nothing of independence then
    write_lines(tmp_path / "rows.jsonl", rows)
    build = MATH.build([("published", str(tmp_path))], tmp_path / "out", BuildOptions())
    assert not (build.path / "warnings.jsonl").exists(), "a problem does not state its solution"
    records = [Record(instance) for instance in MATH.instances(build, "neutral") if instance.condition == "conflict"]
    answers = Answers.of(records, MATH)
    assert [*answers.clusters.own] == [0, 0, 1, 2]
    assert len(answers.kinds) == 2, "a problem is no kind of answer"


def test_text_preference_is_over_answers_that_solve_one_problem() -> None:
    outcomes = ["IMAGE", *["TEXT"] * 3, "BOTH", "NEITHER", "ABSTAIN", "undecided"]
    assert main_table("math-conflicts", outcomes)[1] == {"Right": (2 / 7, 7), "Text preference": (0.75, 4)}
    tables = MATH.tables({"m": answers_of("math-conflicts", outcomes)}, "match@4", resamples=20, seed=0)
    (levels,) = (table for table in tables if table.name == "by-type")
    assert [name for name, _ in levels.rows] == ["m / clean"]
    published = dict(published_rows(levels, "math-conflicts"))
    assert len(published) == 18
    _, preference = published["Qwen2.5-VL-7B / clean (paper)"]
    assert preference is not None
    assert (preference.value, preference.n) == (0.268671, 1031)
