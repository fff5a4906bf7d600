"""The scorecard: what a model does with its sources, and the rules that a user may choose."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.answer_behaviour import ACTS, FOLLOWS, act_of_label, acts_of, has_scorecard, names_sources
from benchmarks.answers import Answers
from benchmarks.errors import SpecError
from benchmarks.plain import DATA_SETS
from benchmarks.registry import BUILT_IN, get_benchmark
from benchmarks.tables.scorecard import CEILING, RIGHT, scorecard_sentences, scorecard_table
from benchmarks.vocabulary import Estimate, Record, Table, Verdict
from tests.support.labelled import labelled

JUDGE = "match@4"
CMC = get_benchmark("cmc-bench")


def answer(outcome: str | Verdict, group: str, condition: str, *, cut_off: bool = False, error: bool = False) -> Record:
    strata = {"type": "factual", "correct": "both"}
    record = labelled(
        {JUDGE: outcome}, id=f"{group}/{condition}", group=group, condition=condition, strata=strata, error=error
    )
    if not cut_off or record.answer is None:
        return record
    return replace(record, generations=(replace(record.answer, finish_reason="length"),))


def does(behaviour: str) -> Verdict:
    return Verdict(JUDGE, "labelled", "NEITHER", behaviour=behaviour)


def card(*records: Record, rule: str | None = None) -> Table:
    table = scorecard_table(CMC, {"m": Answers.of(records, CMC)}, JUDGE, rule=rule, resamples=200, seed=0)
    assert table is not None
    return table


def line(table: Table, name: str) -> Estimate:
    (cell,) = dict(table.rows)[name]
    assert isinstance(cell, Estimate)
    return cell


CONFLICT = [
    answer("IMAGE", "a", "image-correct"),
    answer("TEXT", "b", "image-correct"),
    answer("TEXT", "c", "text-correct"),
    answer("BOTH", "d", "text-correct"),
    answer("ABSTAIN", "e", "both-wrong"),
    answer(does("invents"), "f", "both-wrong"),
    answer("NEITHER", "g", "both-wrong"),
    answer(does("right"), "h", "both-wrong"),
    answer("unparsed", "i", "both-wrong"),
    answer("IMAGE", "j", "image-correct", cut_off=True),
]


def test_each_answer_is_one_act_and_the_acts_add_up() -> None:
    table = card(*CONFLICT)
    shares = {act: line(table, f"conflict: {ACTS[act]}") for act in acts_of(CMC)}
    assert {act: round((share.value or 0) * 10) for act, share in shares.items()} == {
        "image": 1,
        "text": 2,
        "both": 1,
        "flags": 1,
        "right": 1,
        "invents": 2,
        "none": 2,
    }
    assert {share.n for share in shares.values()} == {10}


@pytest.mark.parametrize("rule", [None, *FOLLOWS])
def test_the_right_value_is_counted_whatever_should_win(rule: str | None) -> None:
    """The image's where it is right, the text's or both where the text is, and the one that no source has."""
    share = line(card(*CONFLICT, rule=rule), RIGHT)
    assert (round((share.value or 0) * 10), share.n) == (4, 10)


@pytest.mark.parametrize(("rule", "follows"), [("image", 1), ("text", 2), ("flag", 1)])
def test_a_rule_names_the_acts_that_follow_it(rule: str, follows: int) -> None:
    table = card(*CONFLICT, rule=rule)
    share = line(table, f"conflict: follows your rule ({rule})")
    assert round((share.value or 0) * 10) == follows
    assert all(f"conflict: {ACTS[act]}" not in dict(table.rows) for act in FOLLOWS[rule])


def test_no_rule_is_followed_by_an_invention_or_by_no_answer() -> None:
    assert set().union(*FOLLOWS.values()).isdisjoint({"invents", "none", "right"})
    assert act_of_label("NEITHER") == "invents"


def test_answers_whose_label_is_not_known_are_in_no_share_and_named() -> None:
    table = card(*CONFLICT, answer("undecided", "k", "both-wrong"), answer("judge-failed", "l", "both-wrong"))
    share = line(table, f"conflict: {ACTS['flags']}")
    assert (share.n, share.missing) == (10, 2)
    assert any("undecided by the judge (1), not labelled by the judge (1)" in note for note in table.notes)
    assert not any("without an answer" in note for note in table.notes)


def test_the_ceiling_is_over_the_examples_whose_sources_were_asked_alone() -> None:
    records = [
        answer("TEXT", "a", "image-correct"),
        answer("IMAGE", "a", "image-only"),
        answer("TEXT", "b", "image-correct"),
        answer("NEITHER", "b", "image-only"),
        answer("TEXT", "c", "image-correct"),
    ]
    ceiling = line(card(*records, rule="image"), CEILING)
    assert (ceiling.value, ceiling.n) == (0.5, 2)
    assert CEILING not in dict(card(*records, rule="text").rows)  # the text was not asked alone
    assert CEILING not in dict(card(*records).rows)


def test_all_answers_missing_leave_no_share() -> None:
    table = card(*(answer("undecided", str(n), "image-correct") for n in range(3)))
    share = line(table, f"conflict: {ACTS['image']}")
    assert (share.value, share.n, share.missing) == (None, 0, 3)
    assert "no answer that counts where its sources disagree" in scorecard_sentences("m", table, 0)[0]


def test_sentences_name_what_is_done_and_by_how_many_answers() -> None:
    reads = [answer("IMAGE", str(n), "image-only") for n in range(4)]
    first, second, *_ = scorecard_sentences("m", card(*CONFLICT, *reads, rule="text"), 0)
    assert "m follows your rule (text) in 20%" in first
    assert "invents a value in 20%" in first
    assert "of 10 answers" in first
    assert "reads the image alone in 100% of 4" in second


PASSAGES = get_benchmark("k-passages")
PASSAGE_JUDGE = "which-passage@1"


def passages(*outcomes: tuple[str, str]) -> Table:
    """The scorecard of answers to instances of k passages, by condition and outcome."""
    records = [
        labelled({PASSAGE_JUDGE: outcome}, id=f"{n}/k", group=str(n), condition=condition, strata={"passages": "3"})
        for n, (condition, outcome) in enumerate(outcomes)
    ]
    runs = {"m": Answers.of(records, PASSAGES)}
    table = scorecard_table(PASSAGES, runs, PASSAGE_JUDGE, rule=None, resamples=50, seed=0)
    assert table is not None
    return table


def test_passages_have_the_same_acts_by_how_many_are_wrong() -> None:
    tie = [("tie", label) for label in (*PASSAGES.labels, "unparsed", "undecided")]
    wrong = [("majority-wrong", label) for label in ("WRONG", "WRONG", "NEITHER", "RIGHT")]
    table = passages(*tie, *wrong, ("no-conflict", "RIGHT"), ("no-conflict", "WRONG"), ("closed-book", "RIGHT"))
    acts = {name.removeprefix("tie: "): line(table, name) for name, _ in table.rows if name.startswith("tie: ")}
    assert [*acts] == [ACTS[act] for act in acts_of(PASSAGES)]
    assert {round((cell.value or 0) * 7) for cell in acts.values()} == {1}, "each of them once"
    assert {(cell.n, cell.missing) for cell in acts.values()} == {(7, 1)}
    assert line(table, "majority-wrong: gives the wrong passages' value").value == 0.5
    assert line(table, "majority-wrong: invents a value").value == 0.25
    assert line(table, "gives the value on which they agree").value == 0.5
    assert line(table, "knows without sources").value == 1
    assert not any("follow" in name or name.startswith(("reads", "conflict")) for name, _ in table.rows)
    first, second, *_ = scorecard_sentences("m", table, 0)
    assert first.startswith("Where one passage is right and one wrong, m ")
    assert second == (
        "Where most of the passages that answer are wrong, m gives the right passage's value in 25%, gives the wrong passages' "
        "value in 50% and invents a value in 25% of 4 answers."
    )


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(SpecError):
        card(*CONFLICT, rule="neither")


def test_benchmarks_whose_labels_name_no_source_have_none() -> None:
    with_scorecard = {"cmc-bench", "retrieval", "k-passages", *DATA_SETS}
    assert {name for name in BUILT_IN if has_scorecard(get_benchmark(name))} == with_scorecard
    naming = {name for name in DATA_SETS if {"IMAGE", "TEXT"} <= {*get_benchmark(name).labels}}
    assert {name for name in BUILT_IN if names_sources(get_benchmark(name))} == {"cmc-bench", "retrieval", *naming}
    clash = get_benchmark("clash")
    assert scorecard_table(clash, {}, "strict@1", rule=None, resamples=10, seed=0) is None
