"""Methods of judges: which of several judges count as one."""

from __future__ import annotations

import pytest

from benchmarks.vocabulary import Record, Verdict
from judges.base import FunctionJudge
from judges.judge_methods import method_of, one_per_method


@pytest.mark.parametrize(
    ("judges", "counted"),
    [
        (("gpt-5@published", "published@1", "relaxed@1", "strict@1"), ["gpt-5@published", "strict@1"]),
        (("published@1", "relaxed@1"), ["relaxed@1"]),
        (("match@9", "match@10", "human:ann@1", "human:bea@1"), ["match@10", "human:ann@1", "human:bea@1"]),
        (("extracted@2", "printed@1"), ["extracted@2", "printed@1"]),
        (("majority(match@5, openai:gpt-5@cmc-1)", "match@5"), ["match@5"]),
        (("majority(match, openai:gpt-5)", "match@5"), ["match@5"]),
        (("first(strict@1, human:ann@1)", "relaxed@1"), ["relaxed@1"]),
        (
            ("majority(match@5, human:ann@1)", "openai:gpt-5@cmc-1"),
            ["majority(match@5, human:ann@1)", "openai:gpt-5@cmc-1"],
        ),
        (("all(match@5, human:ann@1)", "any(match@5, human:bea@1)"), ["all(match@5, human:ann@1)"]),
        (("model(x)@cmc-1", "match@5"), ["model(x)@cmc-1", "match@5"]),
        ((), []),
    ],
)
def test_one_judge_counts_for_each_method(judges: tuple[str, ...], counted: list[str]) -> None:
    chosen = one_per_method(judges)
    assert list(chosen.counted) == counted
    assert sorted((*chosen.counted, *chosen.left_out)) == sorted(judges)
    assert set(chosen.left_out.values()) <= set(chosen.counted)


def test_string_matching_is_one_method_and_no_other_rule_is_of_it() -> None:
    assert method_of("strict@1") == method_of("relaxed@1") == method_of("published@1")
    others = [
        method_of(judge) for judge in ("match@5", "extracted@2", "printed@1", "choice@2", "official@1", "strict-ish@1")
    ]
    assert len({method_of("strict@1"), *others}) == 1 + len(others)


def test_a_judge_of_ones_own_is_a_method_by_itself() -> None:
    class Mine(FunctionJudge):
        name, version, benchmarks, description = "mine", "1", ("clash",), "mine"

        def judge(self, record: Record) -> Verdict:
            return Verdict(self.id, "unparsed")

    assert Mine().method == ""
    assert method_of(Mine().id) == "mine"
