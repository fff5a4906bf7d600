"""Builds of retrieval logs: sources are read alone, disagreements become instances, nothing is rewritten."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from benchmarks.build import Build, BuildOptions
from benchmarks.errors import ModelError, NothingUsableError, SourceError, SpecError
from benchmarks.registry import get_benchmark
from benchmarks.text_model import TextModel
from benchmarks.vocabulary import Generation, Media, Request, Text
from tests.support.command import ROOT
from tests.support.pdf_files import encrypted_pdf, picture_pdf
from tests.support.retrieval_logs import MISLEADING, write_log

RETRIEVAL = get_benchmark("retrieval")
CASES = ROOT.parent / "shared" / "cases"
LONG = "Rye and oats were counted again. " * 1667  # 10,000 words


class ScriptedReader(TextModel):
    """A reader whose reply is a function of the number of images and the text that it is shown."""

    def __init__(self, reply: Callable[[int, str], str | None], name: str = "reader") -> None:
        self.name, self._reply = name, reply
        self.requests: list[Request] = []

    def generate(self, requests: Iterable[Request]) -> Iterator[Generation]:
        for request in requests:
            self.requests.append(request)
            parts = request.messages[0].parts
            text = "".join(part.text for part in parts if isinstance(part, Text))
            reply = self._reply(sum(isinstance(part, Media) for part in parts), text)
            if reply is None:
                yield Generation(request.id, "", "error", error="the context is too long")
            else:
                yield Generation(request.id, reply, "stop")


def stated(images: int, text: str) -> str:
    """Read 43 in every image, and of a text what stands behind its last "is"."""
    return "43" if images else text.rpartition(" is ")[2].partition(".")[0]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(3):
        Image.new("RGB", (20, 20), (number, 90, 200)).save(tmp_path / f"{number}.png")
    return tmp_path


def line(**fields: Any) -> dict[str, Any]:
    return {"question": "What is the value of kale?", "passages": ["It is 12."], "images": ["0.png"], **fields}


def build(folder: Path, lines: list[dict[str, Any]], *readers: TextModel) -> Build:
    log = write_log(folder / "log.jsonl", lines)
    return RETRIEVAL.build([("log", str(log))], folder / "build", BuildOptions(readers=readers, replace=True))


def skipped(built: Build) -> list[str]:
    return [json.loads(text)["reason"] for text in (built.path / "skipped.jsonl").read_text("utf-8").splitlines()]


def test_a_disagreement_becomes_three_instances_with_unchanged_sources(folder: Path) -> None:
    passages = ["Rye was not counted.\n\n  It is 12. ", "\tOats: see 2.1"]
    reader = ScriptedReader(lambda images, text: "kale: 43" if images else "12")
    built = build(folder, [line(passages=passages, images=["0.png", "1.png"], answer="43")], reader)
    both, image_only, text_only = RETRIEVAL.instances(built, "paper")
    assert [i.condition for i in (both, image_only, text_only)] == ["image-correct", "image-only", "text-only"]
    assert both.references == {"image": ("43",), "text": ("12",)}
    texts = "".join(part.text for part in both.parts if isinstance(part, Text))
    assert all(passage in texts for passage in passages)
    assert [sum(isinstance(p, Media) for p in i.parts) for i in (both, image_only, text_only)] == [2, 2, 0]
    assert text_only.strata["correct"] == "none"
    assert RETRIEVAL.single_source(image_only) == "image"
    assert RETRIEVAL.single_source(text_only) == ""


def test_a_reader_is_shown_what_a_run_shows_it_alone(folder: Path) -> None:
    reader = ScriptedReader(stated)
    built = build(folder, [line(answer="43")], reader)
    alone = [instance.parts for instance in RETRIEVAL.instances(built, "paper")][1:]
    assert [request.messages[0].parts for request in reader.requests] == alone


def test_a_log_that_says_what_its_sources_answer_needs_no_reader(folder: Path) -> None:
    built = build(folder, [line(image_answer="43", text_answer="12", answer="43")])
    assert built.manifest["conditions"]["image-correct"] == 1
    with pytest.raises(SpecError):
        build(folder, [line(answer="43")])


def test_readers_that_differ_decide_nothing(folder: Path) -> None:
    readers = [ScriptedReader(stated), ScriptedReader(lambda images, text: "44" if images else stated(images, text))]
    lines = [line(answer="43"), line(image_answer="43", answer="43", passages=["It is 13."])]
    built = build(folder, lines, *readers)
    assert built.manifest["examples"] == {"conflicts": 1, "aligned": 0}
    assert skipped(built) == ["the readers differ on what the images say"]


def test_a_log_without_a_conflict_is_refused(folder: Path) -> None:
    with pytest.raises(NothingUsableError, match="2 agree"):
        build(folder, [line(passages=["It is 43."]), line(passages=["So it is 43."])], ScriptedReader(stated))
    assert not (folder / "build").exists()


def test_a_conflict_without_a_right_answer_is_undecided(folder: Path) -> None:
    built = build(folder, [line()], ScriptedReader(stated))
    instance = next(iter(RETRIEVAL.instances(built, "paper")))
    assert instance.condition == "undecided"
    assert [RETRIEVAL.correct("undecided", label) for label in RETRIEVAL.labels] == [False, False, True, False, True]


def test_passages_of_10000_words_are_kept_whole(folder: Path) -> None:
    built = build(folder, [line(passages=[LONG, LONG + "It is 12."], answer="43")], ScriptedReader(stated))
    both = next(iter(RETRIEVAL.instances(built, "paper")))
    assert len("".join(part.text for part in both.parts if isinstance(part, Text)).split()) > 20_000


def test_unusable_lines_are_left_out_with_reasons(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (folder / "locked.pdf").write_bytes(encrypted_pdf())
    (folder / "broken.pdf").write_bytes(picture_pdf()[:200])
    (folder / "good.pdf").write_bytes(picture_pdf(2))
    bad = [
        line(images=["locked.pdf#page=1"]),
        line(images=["broken.pdf#page=1"]),
        line(images=["good.pdf#page=3"]),
        line(images=["good.pdf"]),
        line(images=["missing.png"]),
        line(images=[]),
        line(images=[{"file": "good.pdf", "page": True}]),
        line(passages=[]),
        line(passages=[3]),
        line(passages=["x" * 200_001]),
        line(question=" "),
        line(images=["https://example.org/a.png"]),
    ]
    good = line(images=[{"file": "good.pdf", "page": 2}], answer="43")
    built = build(folder, [good, *bad], ScriptedReader(stated))
    assert len(skipped(built)) == len(bad)
    assert built.manifest["examples"]["conflicts"] == 1


def test_a_reader_that_always_fails_ends_the_build(folder: Path) -> None:
    lines = [line(passages=[f"It is {number}."]) for number in range(10, 16)]
    with pytest.raises(ModelError):
        build(folder, lines, ScriptedReader(lambda images, text: None))
    refused_texts = ScriptedReader(lambda images, text: "43" if images else None)
    with pytest.raises(NothingUsableError):
        build(folder, lines, refused_texts)


@pytest.mark.parametrize(
    "text",
    ["", '{"question": "x", "passage_list": [], "images": []}\n', "not JSON\n", "[]\n"],
    ids=["empty", "wrong keys", "no JSON", "a list"],
)
def test_a_file_that_is_no_log_is_refused(folder: Path, text: str) -> None:
    (folder / "log.jsonl").write_text(text, "utf-8")
    with pytest.raises(SourceError):
        RETRIEVAL.build([("log", str(folder / "log.jsonl"))], folder / "build", BuildOptions())


def test_check_says_what_each_line_becomes(folder: Path) -> None:
    lines = [
        line(image_answer="43", text_answer="12", answer="12"),
        line(),
        line(images=["4.png"]),
        line(image_answer="43", text_answer="43", answer="12"),
    ]
    check = RETRIEVAL.check_rows(write_log(folder / "log.jsonl", lines), BuildOptions())
    assert [row.usable for row in check.rows] == [True, True, False, False]
    preview = check.rows[0].preview()
    assert [instance.condition for instance in preview.instances] == ["text-correct"]
    assert len(preview.media) == 1


def test_check_remarks_on_a_log_without_any_conflict(folder: Path) -> None:
    agreeing = line(image_answer="43", text_answer="43", answer="43")
    for lines in ([agreeing], [agreeing, line()], [agreeing, line(image_answer="43", text_answer="12")]):
        check = RETRIEVAL.check_rows(write_log(folder / "log.jsonl", lines), BuildOptions())
        assert any("nothing can be built" in remark for remark in check.remarks) == (lines == [agreeing])


NOTATIONS = [
    ("Number of inhabitants?", "9 400", "9,400"),
    ("When did it open?", "3 May 1889", "May 3, 1889"),
    ("Which country exports most?", "UK", "United Kingdom"),
    ("How long is it?", "150 minutes", "2 h 30 min"),
    ("Which share?", "75%", "3/4"),
    ("When does it close?", "6:15 pm", "18:15"),
    ("How many?", "eleven", "11"),
]
SUBSTANCE = [("Price?", "$7", "€7"), ("Distance?", "90 km", "90 miles"), ("Height?", "210 m", "180 m")]
NEEDS_CONTEXT = [("Rise?", "5", "5%"), ("Length?", "8", "8 m"), ("Sales?", "3", "3 million")]


def notation_log(rows: list[tuple[str, str, str]], *, answered: bool) -> list[dict[str, Any]]:
    return [
        line(question=question, image_answer=image, text_answer=text, **({"answer": text} if answered else {}))
        for question, image, text in rows
    ]


@pytest.mark.parametrize("answered", [False, True])
def test_answers_in_two_notations_agree_and_answers_that_need_context_are_listed(folder: Path, answered: bool) -> None:
    lines = notation_log([*NOTATIONS, *SUBSTANCE, *NEEDS_CONTEXT], answered=answered)
    built = build(folder, lines)
    conditions = {name: count for name, count in built.manifest["conditions"].items() if "only" not in name and count}
    assert conditions == {"aligned": len(NOTATIONS), "text-correct" if answered else "undecided": len(SUBSTANCE)}
    reasons = skipped(built)
    assert len(reasons) == len(NEEDS_CONTEXT)
    assert all(reason.startswith("unclear whether its answers are the same") for reason in reasons)
    assert "only one of them names a unit" in reasons[1]
    check = RETRIEVAL.check_rows(folder / "log.jsonl", BuildOptions())
    assert [row.usable for row in check.rows] == [True] * 10 + [False] * 3
    assert all(row.fix for row in check.rows if not row.usable)


@pytest.mark.skipif(not CASES.exists(), reason="the logs are not here")
@pytest.mark.parametrize(("name", "conflict"), [("notation_log", "undecided"), ("notation_log_answer", "text-correct")])
def test_logs_that_differ_in_notation_agree(tmp_path: Path, name: str, conflict: str) -> None:
    text = (CASES / f"{name}.jsonl").read_text("utf-8")
    for number, image in enumerate(
        dict.fromkeys(image for row in text.splitlines() for image in json.loads(row)["images"])
    ):
        (tmp_path / image).parent.mkdir(exist_ok=True)
        Image.new("RGB", (20, 20), (number, 90, 200)).save(tmp_path / image)
    (tmp_path / "log.jsonl").write_text(text, "utf-8")
    built = RETRIEVAL.build([("log", str(tmp_path / "log.jsonl"))], tmp_path / "build", BuildOptions())
    assert built.manifest["conditions"]["aligned"] == 7
    assert {row["question"] for row in built.rows() if row["condition"] == conflict} == {
        "Price?",
        "Distance?",
        "Height?",
    }
    assert not skipped(built)


def test_readers_that_may_agree_are_named(folder: Path) -> None:
    readers = [ScriptedReader(stated), ScriptedReader(lambda images, text: "43 km" if images else stated(images, text))]
    lines = [line(answer="43 km"), line(image_answer="43 km", text_answer="12 km", answer="43 km", images=["1.png"])]
    reasons = skipped(build(folder, lines, *readers))
    assert reasons == ["unclear whether the readers agree on what the images say: only one of them names a unit"]


@pytest.mark.slow
@pytest.mark.skipif(not MISLEADING.exists(), reason="the real charts are not here")
def test_misleading_charts_are_conflicts_as_published(tmp_path: Path) -> None:
    built = RETRIEVAL.build([("misleading-chartqa", str(MISLEADING))], tmp_path / "build", BuildOptions())
    assert built.manifest["conditions"]["text-correct"] == 17
    assert built.manifest["media"] == 17
    assert not skipped(built)
