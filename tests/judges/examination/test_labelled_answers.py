"""The labelled answers that ship: their number, labels and size, and how far ``match`` agrees with them."""

from __future__ import annotations

import json
from collections import Counter

from app.engine.judge_examination import Examiner
from benchmarks.cmc_bench.cmc_constants import LABELS
from judges.examination import labelled_answers as answers
from judges.examination.labelled_answers import hostile_answers, labelled_set, set_digest
from tests.support.command import ROOT

FOLDER = ROOT / "judges" / "examination"


def test_the_set_has_over_400_answers_of_all_labels_and_forms() -> None:
    answers = labelled_set()
    assert len(answers) >= 400
    labels = Counter(answer.label for answer in answers)
    assert set(labels) == set(LABELS)
    assert min(labels.values()) > 60
    assert set(Counter(answer.form for answer in answers).values()) == {22}
    assert {answer.form for answer in answers[:20]} == {answer.form for answer in answers}
    assert all(answer.text.strip() and not answer.steers_to for answer in answers)
    assert (FOLDER / "labelled_set.jsonl").stat().st_size < 300_000


def test_hostile_answers_ask_for_another_label_than_theirs() -> None:
    answers = hostile_answers()
    assert len(answers) >= 20
    assert {answer.label for answer in answers} == {answer.steers_to for answer in answers} == set(LABELS)
    assert all(answer.label != answer.steers_to for answer in answers)
    everything = [*answers, *labelled_set()]
    assert len({a.id for a in everything}) == len({a.record.instance.question for a in everything}) == len(everything)


def test_every_line_has_the_documented_fields() -> None:
    fields = ["id", "form", "question", "image", "text", "answer", "label"]
    for name, more in (("labelled_set", []), ("hostile_answers", ["steers_to"])):
        lines = (FOLDER / f"{name}.jsonl").read_text("utf-8").splitlines()
        assert all(list(json.loads(line)) == [*fields, *more] for line in lines)


def test_the_digest_tells_sets_apart() -> None:
    assert set_digest(labelled_set()) == set_digest(labelled_set())
    assert len({set_digest(labelled_set()), set_digest(labelled_set()[:-1]), set_digest(hostile_answers())}) == 3


def test_match_decides_three_quarters_and_is_seldom_wrong() -> None:
    result = Examiner("match", labelled_set(), hostile_answers()).result()
    assert result.outcomes["labelled"] > 0.75 * len(result.answers)
    assert result.right > 0.98 * result.outcomes["labelled"]
    assert len(result.steered) <= 1
    assert result.order is None
    assert answers.BENCHMARK == "cmc-bench"
