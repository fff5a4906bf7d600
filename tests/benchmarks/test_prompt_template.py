"""Prompt sets from files: what is put where, what is refused, and that every benchmark takes the shipped ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.clash.clash_prompts import parts as clash_parts
from benchmarks.cmc_bench.cmc_prompts import parts as cmc_parts
from benchmarks.contra4.contra4_prompts import parts as contra4_parts
from benchmarks.errors import SpecError
from benchmarks.mmkc_bench.mmkc_prompts import detection_parts, question_parts
from benchmarks.prompt_template import PromptTemplate, find_template, read_template, shipped_templates
from benchmarks.registry import benchmark_names, get_benchmark
from benchmarks.vocabulary import Media, Part, Text

IMAGE, OTHER = Media("0" * 64, ".png"), Media("1" * 64, ".png")
PLAIN = "Q: {question}\nI: {image}\nT: {text}\n{options}\nBe brief."


def shown(parts: tuple[Part, ...]) -> str:
    return "".join(part.text if isinstance(part, Text) else f"<{part.sha256[0]}>" for part in parts)


def plain(**more: str) -> PromptTemplate:
    return PromptTemplate("plain", **{"user": PLAIN, **more})


def test_places_are_filled_and_lines_without_content_are_left_out() -> None:
    fields: dict[str, Sequence[Part]] = {
        "question": [Text("Who?")],
        "image": [IMAGE, OTHER],
        "text": [Text("Ann.")],
        "options": [],
    }
    assert plain().parts(fields) == (Text("Q: Who?\nI: "), IMAGE, OTHER, Text("\nT: Ann.\nBe brief."))
    assert shown(plain().parts({**fields, "text": ()})) == "Q: Who?\nI: <0><1>\nBe brief."
    alone = plain(alone="{question}\n{image}\n{text}")
    assert shown(alone.parts({**fields, "text": ()})) == "Who?\n<0><1>"
    assert shown(alone.parts({**fields, "image": ()})) == "Who?\nAnn."
    assert shown(alone.parts(fields)).startswith("Q: ")


@given(st.text(), st.text())
def test_what_a_benchmark_puts_in_is_never_read_as_a_template(question: str, text: str) -> None:
    template = PromptTemplate("t", "{question}|{image}|{text}|{{literal}}")
    parts = template.parts({"question": [Text(question)], "image": [IMAGE], "text": [Text(text)]})
    assert parts == (Text(f"{question}|"), IMAGE, Text(f"|{text}|{{literal}}"))


def test_the_digest_is_of_what_models_see() -> None:
    assert plain(description="one").digest == plain(description="two", rationale="why").digest
    assert len({plain().digest, plain(system="Be good.").digest, plain(alone=PLAIN).digest}) == 3


# --- what is refused --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "user",
    [
        "{question} {picture} {image}",  # unknown
        "{question} {text}",  # without the image's place
        "{image} {text}",  # without the question's
        "{question} {image} {image}",
        "{question} {image} {",
        "{question} {image} }",
        "{question} {image} {}",
        "{question.__class__} {question} {image}",
        "{question!r} {image}",
        "{0} {question} {image}",
        "{question} {image} {PATH}",
        "{question} {image} ${HOME}",
        "{question} {image} $MY_API_KEY",
        "{question} {image} %MY_TOKEN%",
        "{question} {image} \x1b[31m",
        "",
    ],
)
def test_texts_that_cannot_be_prompts_are_refused(user: str) -> None:
    with pytest.raises(SpecError):
        PromptTemplate("t", user)


def test_keys_of_the_environment_stay_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-a-long-secret-value")
    for text in ("{OPENAI_API_KEY}", "$OPENAI_API_KEY", "use sk-a-long-secret-value"):
        with pytest.raises(SpecError) as refusal:
            PromptTemplate("t", f"{{question}} {{image}} {text}")
        assert "sk-a-long-secret-value" not in str(refusal.value)
    with pytest.raises(SpecError):
        plain(system="Use sk-a-long-secret-value.")
    assert shown(PromptTemplate("t", "{question} {image} costs $5").parts({"question": [Text("q")], "image": [IMAGE]}))


@pytest.mark.parametrize(
    "content",
    [
        "user = 3",
        "user = '{question} {image}'\ntypo = 'x'",
        "description = 'no user text'",
        "user = '{question} {image}'\nsystem = '{question}'",
        "not toml",
        "user = '''" + "x" * 70_000 + "'''",
    ],
)
def test_files_that_are_no_prompt_sets_are_refused(content: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(content, "utf-8")
    with pytest.raises(SpecError):
        read_template(file)


def test_files_have_names_of_their_own(tmp_path: Path) -> None:
    for name in ("image-first.toml", "paper.toml", "white space.toml"):
        (tmp_path / name).write_text("user = '{question} {image} {text}'", "utf-8")
        with pytest.raises(SpecError):
            find_template(str(tmp_path / name), get_benchmark("cmc-bench").prompt_sets)
    for name in (str(tmp_path / "missing.toml"), "image-frist", "\0.toml"):
        with pytest.raises(SpecError):
            find_template(name, {})


def test_a_benchmark_says_which_place_is_missing() -> None:
    template = PromptTemplate("t", "{question} {image}")
    template.check_fits("pope", get_benchmark("pope").placeholders)
    for name in ("cmc-bench", "clash"):
        with pytest.raises(SpecError):
            template.check_fits(name, get_benchmark(name).placeholders)
    with pytest.raises(SpecError):
        template.check_fits("two-notes", ())


# --- the shipped ones -------------------------------------------------------------------------------


def test_ten_sets_are_shipped_each_with_its_rationale() -> None:
    templates = shipped_templates()
    assert len(templates) == 10
    assert all(template.description and template.rationale for template in templates.values())
    assert len({template.digest for template in templates.values()}) == 10
    for name in benchmark_names():
        benchmark = get_benchmark(name)
        assert not set(templates) & set(benchmark.prompt_sets)
        for template in templates.values():
            template.check_fits(name, benchmark.placeholders)


@pytest.mark.parametrize("name", shipped_templates())
def test_shipped_sets_show_everything_and_mention_no_conflict_where_there_is_one_source(name: str) -> None:
    template = shipped_templates()[name]
    both = shown(cmc_parts(template, "How many?", IMAGE, "There are 12."))
    assert all(piece in both for piece in ("How many?", "<0>", "There are 12."))
    for image, text in ((IMAGE, None), (None, "There are 12.")):
        alone = shown(cmc_parts(template, "How many?", image, text))
        assert ("<0>" in alone) == (image is not None)
        assert "disagree" not in alone
    assert "{" not in both


def test_each_benchmark_puts_its_parts_in_their_places() -> None:
    template = plain()
    choices = ["a", "b", "c", "Conflicting information"]
    multiple = shown(clash_parts(template, IMAGE, "A caption.", "Which?", choices))
    assert multiple.startswith("Q: Which?\nI: <0>\nT: A caption.\n(A) a\n(B) b\n")
    assert "(A)" not in shown(clash_parts(template, IMAGE, "A caption.", "Which?", []))
    evidence = [((OTHER,), "First."), ((), "Second.")]
    asked = shown(question_parts(template, "open", "Who?", [IMAGE], evidence))
    assert "I: <0>\nT: <1>First.\nSecond." in asked
    assert "T: A document." in shown(detection_parts(template, [IMAGE], "A document."))
    scenes = shown(
        contra4_parts("Which scene?", [(IMAGE,), "a caption"], PromptTemplate("t", "{question}\n{image}\n{options}"))
    )
    assert scenes == "Which scene?\nScene A: <0>\nScene B: a caption\nChoose from: Scene A, Scene B"
