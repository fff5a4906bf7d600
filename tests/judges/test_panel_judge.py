"""Panels of judges."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.errors import RashomonError, SpecError
from benchmarks.vocabulary import Record, Verdict
from judges.panel_judge import Panel, panel_id, panel_judge, parse_panel
from tests.support.labelled import LABELS, labelled

IDS = ("match@1", "match@2", "openai:gpt-5@cmc-1", "human:ann@1", "endpoint:m@http://127.0.0.1:8080/v1@cmc-1")


def _verdict(text: str, *label: str | Verdict) -> Verdict | None:
    """Return the verdict of the panel ``text`` over judges a, b, c ... with these labels."""
    ids = [f"{name}@1" for name in "abcde"[: len(label)]]
    panel = parse_panel(text)
    assert panel is not None
    record = labelled(dict(zip(ids, label, strict=True)))
    return panel_judge(panel, ids, LABELS)(record).verdicts.get(panel_id(panel, ids))


def _label(text: str, *label: str | Verdict) -> str | None:
    verdict = _verdict(text, *label)
    assert verdict is not None
    return verdict.label if verdict.status == "labelled" else verdict.status


@pytest.mark.parametrize("text", ["match", "match@1", "openai:gpt-5", "human:ann", "endpoint:m@http://h:1/v1", ""])
def test_a_single_judge_is_no_panel(text: str) -> None:
    assert parse_panel(text) is None


def test_panel_text_round_trips() -> None:
    panel = parse_panel(" Majority ( match,openai:gpt-5 , human:ann )")
    assert panel == Panel("majority", ("match", "openai:gpt-5", "human:ann"))
    assert not panel.counts_flags
    any_of = parse_panel("any(a, b)")
    assert any_of is not None
    assert any_of.counts_flags


def test_panel_member_name_means_its_newest_version() -> None:
    panel = parse_panel("all(match, endpoint:m@http://127.0.0.1:8080/v1, human:ann@1)")
    assert panel is not None
    assert panel_id(panel, IDS) == "all(match@2, endpoint:m@http://127.0.0.1:8080/v1@cmc-1, human:ann@1)"


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("majorty(a, b)", "did you mean 'majority'?"),
        ("most-of-all(a, b)", "known are any, all, majority, first."),
        ("all()", "has no members"),
        ("all(  )", "has no members"),
        ("all(match)", "only one member"),
        ("all(a, b", "no closing bracket"),
        ("all(a,, b)", "empty member"),
        ("all(a, b,)", "empty member"),
        ("any(a, b, a)", "2 times"),
    ],
)
def test_invalid_panel_is_refused_with_advice(text: str, label: str) -> None:
    with pytest.raises(SpecError) as refused:
        parse_panel(text)
    assert label in str(refused.value)


def test_a_member_that_has_labelled_nothing_is_refused() -> None:
    panel = parse_panel("all(match, human:anne)")
    assert panel is not None
    with pytest.raises(SpecError, match=r"'human:anne' .*did you mean 'human:ann@1'"):
        panel_judge(panel, IDS, LABELS)
    with pytest.raises(SpecError, match="no judge has labelled anything here"):
        panel_id(panel, ())


def test_name_and_id_of_a_judge_are_one_member() -> None:
    panel = parse_panel("all(match, match@2)")
    assert panel is not None
    with pytest.raises(SpecError, match=r"'match@2' as a member 2 times"):
        panel_id(panel, IDS)


def test_rule_all_needs_one_common_label() -> None:
    assert _label("all(a, b)", "IMAGE", "IMAGE") == "IMAGE"
    disagree = _verdict("all(a, b)", "IMAGE", "TEXT")
    assert disagree is not None
    assert (disagree.status, disagree.reason) == ("judge-failed", "the judges disagree: a@1 IMAGE, b@1 TEXT")
    failed = _verdict("all(a, b)", "IMAGE", "judge-failed")
    assert failed is not None
    assert (failed.status, failed.reason) == ("judge-failed", "the judges disagree: a@1 IMAGE, b@1 judge-failed")


def test_rule_majority_needs_more_than_half() -> None:
    assert _label("majority(a, b, c)", "TEXT", "IMAGE", "TEXT") == "TEXT"
    assert _label("majority(a, b, c)", "TEXT", "judge-failed", "TEXT") == "TEXT"
    # Half is not more than half, and a member without a label is still a member.
    assert _label("majority(a, b, c, d)", "TEXT", "TEXT", "IMAGE", "IMAGE") == "judge-failed"
    assert _label("majority(a, b, c, d)", "TEXT", "TEXT", "judge-failed", "unparsed") == "judge-failed"
    none = _verdict("majority(a, b, c)", "TEXT", "IMAGE", "BOTH")
    assert none is not None
    assert none.reason == "no majority: a@1 TEXT, b@1 IMAGE, c@1 BOTH"


def test_rule_any_counts_each_label() -> None:
    both = _verdict("any(a, b)", "NEITHER", "IMAGE")
    assert both is not None
    assert (both.status, both.label, both.flags) == ("labelled", "IMAGE", ("IMAGE", "NEITHER"))
    verdict = _verdict("any(a, b)", "judge-failed", "TEXT")
    assert verdict is not None
    assert (verdict.label, verdict.flags) == ("TEXT", ("TEXT",))
    assert _label("any(a, b)", "judge-failed", "unparsed") == "judge-failed"


def test_rule_any_uses_non_exclusive_flags() -> None:
    flags = Verdict("a@1", "labelled", "TEXT", flags=("BOTH", "TEXT"))
    panel = _verdict("any(a, b)", flags, "IMAGE")
    assert panel is not None
    assert panel.flags == ("IMAGE", "TEXT", "BOTH")


@pytest.mark.parametrize("rule", ["any", "all", "majority"])
def test_answer_empty_to_all_members_is_unparsed(rule: str) -> None:
    assert _label(f"{rule}(a, b)", "unparsed", "unparsed") == "unparsed"


def test_an_undecided_member_abstains() -> None:
    assert _label("all(a, b, c)", "IMAGE", "undecided", "IMAGE") == "IMAGE"
    assert _label("majority(a, b, c, d)", "TEXT", "undecided", "IMAGE", "TEXT") == "TEXT"
    assert _label("majority(a, b, c)", "TEXT", "undecided", "IMAGE") == "judge-failed"
    assert _label("any(a, b)", "undecided", "TEXT") == "TEXT"
    assert _label("any(a, b, c)", "undecided", "judge-failed", "unparsed") == "judge-failed"
    assert _label("majority(a, b)", "undecided", "unparsed") == "unparsed"


@pytest.mark.parametrize("rule", ["any", "all", "majority", "first"])
def test_a_panel_of_undecided_members_is_undecided(rule: str) -> None:
    assert _label(f"{rule}(a, b)", "undecided", "undecided") == "undecided"


def test_rule_first_passes_over_undecided_members() -> None:
    verdict = _verdict("first(a, b, c)", "undecided", "TEXT", "IMAGE")
    assert verdict is not None
    assert (verdict.label, verdict.reason) == ("TEXT", "b@1: ")
    assert _label("first(a, b)", "TEXT", "undecided") == "TEXT"


@pytest.mark.parametrize("rule", ["any", "all", "majority"])
def test_panel_waits_for_every_member(rule: str) -> None:
    panel = parse_panel(f"{rule}(a, b, c)")
    assert panel is not None
    ids = ("a@1", "b@1", "c@1")
    waiting = labelled({"a@1": "IMAGE", "b@1": "IMAGE"})
    broken = labelled(dict.fromkeys(ids, "IMAGE"), error=True)
    unanswered = Record(waiting.instance, (), labelled(dict.fromkeys(ids, "IMAGE")).verdicts)
    for record in (waiting, broken, unanswered):
        assert panel_judge(panel, ids, LABELS)(record) == record


def test_panel_leaves_members_verdicts_alone() -> None:
    before = labelled({"a@1": "IMAGE", "b@1": "TEXT", "z@1": "BOTH"})
    after = panel_judge(Panel("all", ("a", "b")), before.verdicts, LABELS)(before)
    assert {judge: after.verdicts[judge] for judge in before.verdicts} == dict(before.verdicts)
    assert set(after.verdicts) - set(before.verdicts) == {"all(a@1, b@1)"}


@given(st.lists(st.sampled_from([*LABELS, "unparsed", "undecided", "judge-failed"]), min_size=2, max_size=5))
def test_stricter_rules_label_a_subset(label: list[str]) -> None:
    members = ", ".join("abcde"[: len(label)])
    every, most, subset = (_label(f"{rule}({members})", *label) for rule in ("all", "majority", "any"))
    if every in LABELS:
        assert most == every == subset
    if most in LABELS:
        verdict = _verdict(f"any({members})", *label)
        assert verdict is not None
        assert most in verdict.flags
        assert label.count(most) * 2 > len(label) - label.count("undecided")


@given(st.text(max_size=60) | st.from_regex(r"(any|all|majority)\s*\(.*", fullmatch=True))
def test_hostile_panel_text_is_handled(text: str) -> None:
    try:
        panel, message = parse_panel(text), ""
    except RashomonError as error:
        panel, message = None, str(error)
    assert message.isprintable()
    assert panel is None or len(set(panel.members)) == len(panel.members) >= 2
