"""The policy baselines."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.errors import SpecError
from benchmarks.vocabulary import SHOWN_TEXT, Candidates, Decoding, Generation, Message, Request, Text
from judges.judge_registry import get_judge
from mlx_backends.policy_engine import (
    ABSTAIN,
    ABSTAIN_ALONE,
    PolicyBackend,
    lacks_references,
    policy_names,
    suitable_policies,
)
from tests.support.records import record

References = Mapping[str, tuple[str, ...]]

BOTH: References = {"image": ("42", "forty-two"), "text": ("17",)}


def request(references: Mapping[str, tuple[str, ...]], number: int = 0, seed: int = 0) -> Request:
    message = Message("user", (Text(f"Question {number}?"),))
    return Request(f"instance-{number}", 0, (message,), Decoding(seed=seed), references=references)


def answers(name: str, requests: list[Request]) -> dict[str, str]:
    policy = PolicyBackend(f"policy:{name}")
    texts: dict[str, str] = {}
    while requests:
        batch, requests = requests[: policy.capacity], requests[policy.capacity :]
        for pending in batch:
            policy.submit(pending)
        texts.update({done.request_id: done.text for done in policy.step()})
    return texts


def answer_of(name: str, references: Mapping[str, tuple[str, ...]]) -> str:
    return answers(name, [request(references)])["instance-0#0"]


@pytest.mark.parametrize(
    ("name", "references", "expected"),
    [
        ("always-image", BOTH, "42"),
        ("always-text", BOTH, "17"),
        ("always-abstain", BOTH, ABSTAIN),
        ("always-image", {"text": ("17",)}, ABSTAIN_ALONE),
        ("always-text", {"image": ("42",)}, ABSTAIN_ALONE),
        ("random", {"image": ("42",)}, "42"),
        ("random", {"text": ("17",)}, "17"),
        ("always-image", {}, ABSTAIN_ALONE),
        ("random", {}, ABSTAIN_ALONE),
        ("always-text", {"text": ()}, ABSTAIN_ALONE),
        ("always-text", {**BOTH, SHOWN_TEXT: ("42",)}, "42"),
        ("random", {**BOTH, SHOWN_TEXT: ("42",)}, "42"),
        ("always-image", {**BOTH, SHOWN_TEXT: ("9",)}, "42"),
        (
            "always-text",
            {**BOTH, SHOWN_TEXT: ("9",), "image letter": ("A",), "text letter": ("B",), "shown text letter": ("A",)},
            "(A)",
        ),
        ("always-yes", {"answer": ("no",)}, "Yes"),
        ("always-no", {"answer": ("yes",)}, "No"),
    ],
)
def test_policy_answers_from_the_displayed_sources(
    name: str, references: dict[str, tuple[str, ...]], expected: str
) -> None:
    assert answer_of(name, references) == expected


def test_abstentions_are_sentences_and_flag_a_conflict_only_between_two_sources() -> None:
    assert ABSTAIN == "The sources disagree, so the answer cannot be determined."
    assert ABSTAIN_ALONE == "The answer cannot be determined."
    for text, act in ((ABSTAIN, "conflict"), (ABSTAIN_ALONE, "abstain")):
        verdict = get_judge("match").judge(record(text, "42", "17"))
        assert (verdict.label, verdict.behaviour) == ("ABSTAIN", act)


def kinds(name: str, count: int, seed: int = 0) -> Counter[str]:
    texts = answers(name, [request(BOTH, number, seed) for number in range(count)])
    known = {
        "42": "IMAGE",
        "17": "TEXT",
        "Both sources are right: the image says 42, the text says 17.": "BOTH",
        ABSTAIN: "ABSTAIN",
    }
    return Counter(known.get(text, "NEITHER") for text in texts.values())


def test_random_gives_each_source_half_the_time() -> None:
    counted = kinds("random", 4000)
    assert set(counted) == {"IMAGE", "TEXT"}
    assert abs(counted["IMAGE"] - 2000) < 160  # five standard deviations


def test_uniform_gives_each_label_a_fifth_of_the_time() -> None:
    counted = kinds("uniform", 5000)
    assert set(counted) == {"IMAGE", "TEXT", "BOTH", "NEITHER", "ABSTAIN"}
    assert all(abs(count - 1000) < 145 for count in counted.values())  # five standard deviations


@pytest.mark.parametrize("name", ["random", "uniform"])
def test_draws_depend_only_on_request_and_seed(name: str) -> None:
    requests = [request(BOTH, number) for number in range(200)]
    forwards = answers(name, requests)
    assert answers(name, requests[::-1]) == forwards
    assert answers(name, requests[50:60]) == {r.id: forwards[r.id] for r in requests[50:60]}
    assert answers(name, [request(BOTH, number, seed=1) for number in range(200)]) != forwards


def test_uniform_abstains_for_a_label_that_needs_a_source_not_shown() -> None:
    texts = answers("uniform", [request({"image": ("42",)}, number) for number in range(500)])
    counts = Counter("NEITHER" if text not in ("42", ABSTAIN_ALONE) else text for text in texts.values())
    assert set(counts) == {"42", ABSTAIN_ALONE, "NEITHER"}
    assert counts[ABSTAIN_ALONE] > counts["42"]


@given(st.lists(st.text(max_size=40), max_size=5), st.lists(st.text(max_size=40), max_size=5), st.integers(0, 50))
def test_neither_is_a_value_of_neither_source(image: list[str], text: list[str], number: int) -> None:
    references = {"image": tuple(image), "text": tuple(text)}
    reply = answers("uniform", [request(references, number)])[f"instance-{number}#0"]
    first = {values[0] for values in (image, text) if values}
    both = f"Both sources are right: the image says {image[0]}, the text says {text[0]}." if image and text else None
    if reply not in first | {both, ABSTAIN}:
        assert reply.casefold() not in {value.casefold() for value in (*image, *text)}
        assert not any(reply.casefold() in value.casefold() for value in (*image, *text))
        assert not any(
            len(value) > 2 and value.isalnum() and value.casefold() in reply.casefold() for value in (*image, *text)
        )


@pytest.mark.parametrize("taken", ["Quito", "Ouagadougou", "Tbilisi, Quito, Reykjavik or OUAGADOUGOU"])
def test_neither_avoids_references_equal_to_its_values(taken: str) -> None:
    texts = answers("uniform", [request({"image": (taken,)}, number) for number in range(200)])
    others = set(texts.values()) - {taken, ABSTAIN_ALONE}
    assert len(others) == 1
    assert others.pop().casefold() not in taken.casefold()


def test_policy_has_a_capacity_and_needs_no_device() -> None:
    policy = PolicyBackend("policy:always-image")
    assert not policy.info.needs_device
    assert (policy.info.engine, policy.info.model) == ("policy", "policy:always-image")
    for number in range(policy.capacity):
        policy.submit(request(BOTH, number))
    with pytest.raises(RuntimeError):
        policy.submit(request(BOTH, policy.capacity))
    policy.cancel("instance-3#0")
    policy.cancel("unknown")
    done = policy.step()
    assert len(done) == policy.capacity - 1
    assert "instance-3#0" not in {generation.request_id for generation in done}
    assert all(generation.finish_reason == "stop" for generation in done)
    assert policy.step() == []


OF_SOURCES = ("always-image", "always-text", "always-abstain", "random", "uniform")
OF_WORDS = ("always-yes", "always-no", "chance")


def test_policy_without_its_references_is_detected() -> None:
    assert {f"policy:{name}" for name in OF_SOURCES + OF_WORDS} == set(policy_names())
    yes_or_no: References = {"answer": ("yes",)}
    sources: list[References] = [{"text": ("17",)}, BOTH]
    for name in OF_SOURCES:
        assert lacks_references(f"policy:{name}", [yes_or_no])
        assert not lacks_references(f"policy:{name}", sources)
        # Where the image alone is shown always-text abstains: that says something.
        assert not lacks_references(f"policy:{name}", [{"image": ("42",)}])
        assert lacks_references(f"policy:{name}", [{"image": ()}, {}])
    for name in OF_WORDS:
        assert lacks_references(f"policy:{name}", sources)
        assert not lacks_references(f"policy:{name}", [{}, yes_or_no])


@pytest.mark.parametrize(
    ("references", "choices"),
    [
        ({"answer": ("C",), "options": ("x", "y", "z", "w")}, {"A", "B", "C", "D"}),
        ({"answer": ("B",), "options": ("x", "y")}, {"A", "B"}),
        ({"answer": ("no",)}, {"Yes", "No"}),
        ({"answer": ("Nordbrew",)}, {ABSTAIN}),
    ],
)
def test_chance_draws_every_option_equally_often(references: References, choices: set[str]) -> None:
    texts = list(answers("chance", [request(references, number) for number in range(1200)]).values())
    assert set(texts) == choices
    assert all(abs(texts.count(choice) - 1200 / len(choices)) < 110 for choice in choices)


@pytest.mark.parametrize("model", ["always-image", "openai:gpt-5", "./folder", "policy:none", ""])
def test_other_names_are_not_refused_as_policies(model: str) -> None:
    assert not lacks_references(model, [])


def test_every_policy_is_created_by_its_name() -> None:
    assert policy_names() == tuple(PolicyBackend(name).info.model for name in policy_names())


@pytest.mark.parametrize("name", ["policy:", "policy:\x1b[31m", "policy:nam", "always-image "])
def test_unknown_policy_name_is_an_error(name: str) -> None:
    with pytest.raises(SpecError, match="there is no policy"):
        PolicyBackend(name)


@pytest.mark.parametrize(
    ("references", "names"),
    [
        ({"image": ("1",), "text": ("2",)}, {"always-image", "always-text", "always-abstain", "random", "uniform"}),
        ({"image": ("1",)}, {"always-image"}),
        ({"answer": ("yes",)}, {"always-yes", "always-no", "chance"}),
        ({"answer": ("A",), "options": ("one", "two")}, {"chance"}),
        ({"answer": ("open",)}, set()),
    ],
)
def test_only_policies_that_suit_the_questions_are_offered(
    references: dict[str, tuple[str, ...]], names: set[str]
) -> None:
    labels = ("IMAGE", "TEXT", "BOTH", "NEITHER", "ABSTAIN")
    assert set(suitable_policies(labels, [references])) == {f"policy:{name}" for name in names}
    assert "policy:uniform" not in suitable_policies(("YES", "NO"), [references])


@pytest.mark.parametrize(
    ("policy", "references", "scores"),
    [
        ("always-image", BOTH, (0, None, None, 0)),
        ("always-abstain", BOTH, (None, None, 0, 0)),
        ("random", BOTH, (math.log(0.5), math.log(0.5), None, math.log(0.5))),
        ("random", {"image": ("42",), "text": ("42",)}, (0, 0, None, 0)),
    ],
)
def test_a_policy_knows_its_own_odds(policy: str, references: References, scores: tuple[float | None, ...]) -> None:
    form = Candidates((references["image"][0], references["text"][0]), ABSTAIN)
    message = Message("user", (Text("?"),))
    generations: list[Generation] = []
    for asked in (form, None):
        backend = PolicyBackend(f"policy:{policy}")
        backend.submit(Request("i", 0, (message,), Decoding(), asked, references))
        generations += backend.step()
    scored, plain = generations
    assert scored.scores == scores
    assert (scored.text, plain.scores) == (plain.text, ())
