"""Fine-tuning of the demo model: what its training never shows, and the whole way from charts to a verdict."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from random import Random

import pytest

from assets.demo.recipe import remedy_cards, remedy_scenes
from assets.demo.recipe.remedy import NEW, TRAINED, distinct_values, in_model_words, remedy, write_charts
from assets.demo.recipe.scenes import held_out_things
from benchmarks.clash.clash_constants import CONFLICT_OPTION
from tests.support.command import Rashomon


def test_training_charts_share_nothing_with_new_ones(tmp_path: Path) -> None:
    for name, kind in (("trained", TRAINED), ("new", NEW)):
        write_charts(tmp_path / name, kind, 12)
    trained, new = (
        [json.loads(line) for line in (tmp_path / name / "rows.jsonl").read_text().splitlines()]
        for name in ("trained", "new")
    )
    for column in ("answer", "group"):
        assert not {row[column] for row in trained} & {row[column] for row in new}
    assert not set(TRAINED.questions) & set(NEW.questions)
    assert not set(TRAINED.bars) & set(NEW.bars)


def test_wrong_values_of_many_training_charts_differ_in_one_digit_alone(tmp_path: Path) -> None:
    write_charts(tmp_path / "charts", TRAINED, 100)
    groups: dict[str, set[str]] = {}
    for line in (tmp_path / "charts" / "rows.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        groups.setdefault(row["group"], set()).add(row["answer"])
    digits = [{len({answer[place] for answer in answers}) for place in (0, 1)} for answers in groups.values()]
    assert sum(1 in counts for counts in digits) > 0.5 * len(groups)
    assert sum(1 not in counts for counts in digits) > 5


def test_training_rows_get_answers_that_the_model_can_write(tmp_path: Path) -> None:
    write_charts(tmp_path / "charts", TRAINED, 20)
    rashomon = Rashomon(tmp_path)
    rashomon.run("build", "cmc-bench", "--source", f"rows={tmp_path / 'charts'}", "--out", tmp_path / "build")
    data = ("--data", tmp_path / "build", "--target", "compare")
    rashomon.run("training", "cmc-bench", *data, "--out", tmp_path / "set")
    in_model_words(tmp_path / "set")
    rows = [json.loads(line) for line in (tmp_path / "set" / "train.jsonl").read_text("utf-8").splitlines()]
    conditions = set()
    for row in rows:
        *readings, last = row["messages"][-1]["content"][0]["text"].splitlines()
        if row["kind"] == "conflict":
            assert last == CONFLICT_OPTION
        else:
            readings.append(last)
        openings, values = zip(*(reading.split(" ") for reading in readings), strict=True)
        assert openings[0].removesuffix(":") in TRAINED.names
        assert openings[1:] in ((), ("",))
        assert {int(value) for value in values} <= set(TRAINED.values)
        expected = {"image-only": (1, 1), "text-only": (1, 1), "aligned": (2, 1)}
        assert (len(values), len(set(values))) == expected.get(row["condition"], (2, 2))
        conditions.add(row["condition"])
    assert conditions >= {"aligned", "image-only", "text-only"}


def test_rejected_scenes_have_captions_that_are_both_true_and_new_ones_another_arrangement(tmp_path: Path) -> None:
    remedy_scenes.write_scenes(tmp_path / "rejected", remedy_scenes.TRAINED, 8, conflicting=False)
    remedy_scenes.write_scenes(tmp_path / "kept", remedy_scenes.TRAINED, 8)
    remedy_scenes.write_scenes(tmp_path / "new", remedy_scenes.NEW, 8)
    rejected, kept, new = (
        [json.loads(line) for line in (tmp_path / name / "rows.jsonl").read_text().splitlines()]
        for name in ("rejected", "kept", "new")
    )
    turned = {"above": "below", "below": "above"}
    for row in rejected:
        first, relation, second = re.split(" (above|below) a ", row["original_caption"].rstrip("."))
        assert row["conflicting_caption"] == f"A {second} {turned[relation]} a {first.removeprefix('A ')}."
    for row in (*rejected, *kept, *new):
        arrangement = "left|right" if row in new else "above|below"
        assert re.search(f"({arrangement}) (of )?a ", row["original_caption"])
        things = re.findall(r"\ba (\w+) (\w+)", row["original_caption"].lower())
        assert len(things) == 2
        assert not held_out_things() & {*things}


def test_answers_about_scenes_begin_with_what_picture_and_caption_say(tmp_path: Path) -> None:
    scenes = tmp_path / "scenes"
    remedy_scenes.write_scenes(scenes, remedy_scenes.TRAINED, 16)
    rashomon = Rashomon(tmp_path)
    rashomon.run("build", "clash", "--source", f"rows={scenes}", "--out", tmp_path / "build")
    rashomon.run("training", "clash", "--data", tmp_path / "build", "--out", tmp_path / "set")
    remedy_scenes.in_model_words(tmp_path / "set", [scenes])
    rows = [json.loads(line) for line in (tmp_path / "set" / "train.jsonl").read_text("utf-8").splitlines()]
    for row in rows:
        picture, caption, *verdict = row["messages"][-1]["content"][0]["text"].splitlines()
        shown = row["messages"][0]["content"][-1]["text"].splitlines()[-2]
        assert caption.lower() in shown.split()[1:3] + shown.rstrip(".").split()[-2:]
        assert (picture != caption) == (row["kind"] == "conflict")
        assert verdict == ([CONFLICT_OPTION] if row["kind"] == "conflict" else [])
    assert len({row["kind"] for row in rows}) == 2


def test_answers_about_cards_begin_with_what_card_and_text_say(tmp_path: Path) -> None:
    cards = tmp_path / "cards"
    remedy_cards.write_cards(cards, TRAINED, remedy_cards.TRAINED_WORDINGS, 24, part="test")
    rashomon = Rashomon(tmp_path)
    rashomon.run("build", "crosscheck-bench", "--source", f"rows={cards}", "--out", tmp_path / "build")
    rashomon.run("training", "crosscheck-bench", "--data", tmp_path / "build", "--out", tmp_path / "set")
    remedy_cards.in_model_words(tmp_path / "set", cards)
    rows = [json.loads(line) for line in (tmp_path / "set" / "train.jsonl").read_text("utf-8").splitlines()]
    verdicts = set()
    for row in rows:
        card, *rest = row["messages"][-1]["content"][0]["text"].replace("(A)", "\n(A)").splitlines()
        name, value = card.split(": ")
        assert name in TRAINED.names
        if not rest:
            continue
        prompt = "".join(part.get("text", "") for part in row["messages"][0]["content"])
        stated = rest[0].removeprefix(" ")
        assert stated in prompt
        agrees = int(value) <= int(stated) if "Rule" in prompt else value == stated
        assert rest[1] == ("(A)" if agrees else "(B)")
        verdicts.add(("Rule" in prompt, agrees))
    assert len(verdicts) == 4


def test_cards_of_close_prices_and_of_rare_digits_are_repeated(tmp_path: Path) -> None:
    answers = ["kale: 57", "kale: 57\n 57(A)", "kale: 57\n 54\n(B)", "kale: 57\n 37\n(B)", "kale: 61"]
    rows = [json.dumps({"messages": [{"content": [{"text": answer}]}]}) + "\n" for answer in answers]
    (tmp_path / "train.jsonl").write_text("".join(rows), "utf-8")
    remedy_cards.repeat_rare(tmp_path)
    repeated = [rows[2], rows[4], rows[4]]
    assert (tmp_path / "train.jsonl").read_text("utf-8") == "".join([*rows, *repeated])


def test_new_cards_share_no_name_price_or_wording_with_the_trained_ones() -> None:
    random = Random(0)
    for _ in range(20):
        name = random.choice(NEW.asked)
        prices = dict(distinct_values(random, NEW, name))
        assert prices[name] not in TRAINED.values
        assert name not in TRAINED.names
        assert len(prices) not in TRAINED.bars
    for trained, new in zip(
        dataclasses.astuple(remedy_cards.TRAINED_WORDINGS),
        dataclasses.astuple(remedy_cards.NEW_WORDINGS),
        strict=True,
    ):
        assert not {*trained} & {*new}


@pytest.mark.slow
def test_cards_are_learnt_and_counted_by_conflict(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    remedy_cards.remedy(tmp_path, examples=24, tests=8, steps=2, limit=4)
    printed = capfd.readouterr().out
    assert printed.count("model-4bit+cards") >= 2
    assert "new-names-tuned, conflict: " in printed


@pytest.mark.slow
def test_scenes_are_learnt_filtered_and_unfiltered(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    remedy_scenes.remedy(tmp_path, examples=20, new=4, steps=2, limit=2)
    printed = capfd.readouterr().out
    assert printed.count("model-4bit+filtered") >= 2
    assert printed.count("model-4bit+unfiltered") >= 2


@pytest.mark.slow
def test_one_command_leads_from_charts_to_a_verdict_and_another_on_to_cards(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    charts, cards = tmp_path / "charts", tmp_path / "cards"
    remedy(charts, examples=20, new=4, steps=2, limit=2)
    assert capfd.readouterr().out.count("model-4bit+remedy") >= 4
    assert {run.name for run in (charts / "workspace" / "runs").iterdir()} >= {
        f"{test}-{part}" for test in ("held-out", "new") for part in ("base", "tuned")
    }
    remedy_cards.remedy(cards, charts=charts, examples=24, tests=8, steps=2, limit=2)
    assert capfd.readouterr().out.count("charts-model+cards") >= 2
    rows = [json.loads(line) for line in (cards / "set" / "train.jsonl").read_text("utf-8").splitlines()]
    assert {row["benchmark"] for row in rows} == {"cmc-bench", "crosscheck-bench"}
