"""POPE: its questions with COCO's images, its metrics, and CLASH's Table 14."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.answers import Answers
from benchmarks.build import Build, BuildOptions
from benchmarks.errors import SourceError, SpecError
from benchmarks.pope import Pope
from benchmarks.pope.pope_constants import SETTINGS
from benchmarks.protocols.protocols import DirectProtocol
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import (
    Decoding,
    Estimate,
    Generation,
    Instance,
    Media,
    Record,
    Table,
    Text,
    Verdict,
)
from judges.yes_no_judge import YesNo
from mlx_backends.policy_engine import PolicyBackend
from tests.support.data.pope import small_pope
from tests.support.data.small import bomb

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "clash"
JUDGE = YesNo().id


def build(tmp_path: Path, *sources: tuple[str, str]) -> Build:
    return Pope().build(sources, tmp_path / "build", BuildOptions())


def records(instances: list[Instance], answer: Callable[[Instance], str | None]) -> list[Record]:
    """Return the instances answered and judged; an answer of None leaves an instance unanswered."""
    judged = []
    for instance in instances:
        text = answer(instance)
        record = Record(instance, () if text is None else (Generation(f"{instance.id}#0", text, "stop"),))
        judged.append(record if text is None else replace(record, verdicts={JUDGE: YesNo().judge(record)}))
    return judged


def table(name: str, runs: Mapping[str, list[Record]]) -> Table:
    answers = {run: Answers.of(of, Pope()) for run, of in runs.items()}
    return next(t for t in Pope().tables(answers, JUDGE, resamples=200, seed=0) if t.name == name)


def cells(name: str, judged: list[Record]) -> dict[str, dict[str, Estimate]]:
    result = table(name, {"run": judged})
    return {
        row: {column: cell for column, cell in zip(result.columns, values, strict=True) if isinstance(cell, Estimate)}
        for row, values in result.rows
    }


@pytest.fixture
def instances(tmp_path: Path) -> list[Instance]:
    source = small_pope(tmp_path / "pope")
    return list(Pope().instances(build(tmp_path, ("pope", str(source))), "plain"))


def test_a_small_folder_becomes_questions_in_three_settings(tmp_path: Path) -> None:
    source = small_pope(tmp_path / "pope")
    built = build(tmp_path, ("pope", str(source)))
    assert built.manifest["settings"] == {"random": 24, "popular": 24, "adversarial": 24}
    assert built.manifest["media"] == 4
    instances = list(get_benchmark("pope").instances(built, "plain"))
    assert len({instance.id for instance in instances}) == 72
    assert len({instance.group for instance in instances}) == 4
    first = instances[0]
    media, text = first.parts
    assert isinstance(media, Media)
    assert built.media_path(media).is_file()
    assert text == Text("Is there a random thing 0 in the image?")
    assert first.references == {"answer": ("yes",)}
    short = next(get_benchmark("pope").instances(built, "short"))
    assert short.parts[1] == Text(f"{first.question}\nAnswer the question using a single word or phrase.")
    assert short.id == first.id
    again = Pope().build([("pope", str(source))], tmp_path / "again", BuildOptions(seed=0))
    assert again.digest == built.digest


def test_hostile_rows_and_images_are_skipped_and_counted(tmp_path: Path) -> None:
    source = small_pope(tmp_path / "pope")
    good = {"image": "COCO_val2014_000000000001.jpg", "text": "Is there a cat in the image?", "label": "yes"}
    (source / "val2014" / "COCO_val2014_000000000003.jpg").write_bytes(bomb(60000, 60000))
    (source / "val2017" / "000000000002.jpg").unlink()
    bad: list[Any] = [
        {**good, "image": "../../etc/passwd"},
        {**good, "image": "COCO_val2014_000000000001.jpg/../x"},
        {**good, "label": "maybe"},
        {**good, "text": "x" * 10**6},
        {**good, "text": "Is there\na cat?"},
        {**good, "text": 3},
        {"image": good["image"]},
        good,
        {**good, "label": "No", "question_id": 9},
        {**good, "image": "000000000004.jpg", "label": " YES "},
    ]
    lines = "\n".join(["not json", "[]", "[" * 100_000, *(json.dumps(row) for row in bad)])
    (source / "coco_pope_random.json").write_text(lines, "utf-8")
    built = build(tmp_path, ("pope", str(source)))
    assert built.manifest["settings"] == {"random": 2, "popular": 12, "adversarial": 12}
    assert sum(built.manifest["skipped"].values()) == 24 + 11
    reasons = built.manifest["skipped"]
    assert reasons["the line is not a question: it needs image, text and label"] == 8
    assert reasons["the image's name is not COCO's"] == 2
    assert reasons["repeated: another row of the setting has its image and question"] == 1
    assert reasons["the image is missing; put the file in its place"] == 12
    assert sum(1 for _ in (built.path / "skipped.jsonl").open()) == 35


@pytest.mark.parametrize("source", ["poop", "images"])
def test_a_wrong_source_says_what_is_expected(tmp_path: Path, source: str) -> None:
    with pytest.raises(SpecError, match="pope"):
        build(tmp_path, (source, str(tmp_path)))
    with pytest.raises(SourceError, match=r"expected a folder with coco_pope_random\.json"):
        build(tmp_path, ("pope", str(tmp_path)))
    small_pope(tmp_path / "pope")
    for image in tmp_path.glob("pope/val*/*"):
        image.unlink()
    with pytest.raises(SourceError, match="72 times: the image is missing"):
        build(tmp_path, ("pope", str(tmp_path / "pope")))


@pytest.mark.skipif(not SHARED.exists(), reason="the published questions are not here")
def test_published_questions_on_available_images(tmp_path: Path) -> None:
    built = build(tmp_path, ("pope", str(SHARED / "pope")), ("images", str(SHARED / "coco")))
    lines = [json.loads(line) for line in (SHARED / "coco" / "index.jsonl").read_text("utf-8").splitlines()]
    here = {str(line["image_id"]) for line in lines if line["in_pope"]}
    assert {row["image_id"] for row in built.rows()} == here
    assert built.manifest["settings"] == {setting: 6 * len(here) for setting in SETTINGS}
    missing = built.manifest["skipped"]["the image is missing; put the file in its place"]
    assert sum(built.manifest["settings"].values()) + missing == 9000
    answers = [instance.references["answer"][0] for instance in Pope().instances(built, "plain")]
    assert answers.count("yes") == answers.count("no")


def test_correct_answers_score_one_and_always_yes_half(instances: list[Instance]) -> None:
    right = cells("main", records(instances, lambda i: i.references["answer"][0].capitalize()))["run"]
    assert [(cell.value, cell.sd, cell.n) for cell in right.values()] == [(1.0, 0.0, 24)] * 3
    assert list(right) == ["Random", "Popular", "Adversarial"]
    yes = cells("pope", records(instances, lambda i: "Yes"))["run / popular"]
    assert {name: cell.value for name, cell in yes.items()} == {
        "Accuracy": 0.5,
        "Precision": 0.5,
        "Recall": 1.0,
        "F1": pytest.approx(2 / 3),
        "Yes ratio": 1.0,
        "Neither": 0.0,
    }
    no = cells("pope", records(instances, lambda i: "No"))["run / random"]
    assert no["Precision"].value is None
    assert no["Precision"].reason
    assert (no["Accuracy"].value, no["Recall"].value, no["F1"].value, no["Yes ratio"].value) == (0.5, 0.0, 0.0, 0.0)


def test_answer_without_yes_or_no_is_wrong_but_officially_yes(
    instances: list[Instance],
) -> None:
    judged = records(instances, lambda i: "A dog" if i.condition == "random" else "No")
    ours = cells("pope", judged)["run / random"]
    assert (ours["Accuracy"].value, ours["Neither"].value, ours["Recall"].value) == (0.0, 1.0, 0.0)
    official = cells("official", judged)["run / random"]
    assert (official["Accuracy"].value, official["Yes ratio"].value) == (0.5, 1.0)
    failures = dict(table("failures", {"run": judged}).rows)
    assert failures["run / random"] == (24, 24, 0, 0, 0, 0, 0, 0)
    assert failures["run / popular"] == (24, 24, 0, 0, 0, 0, 0, 0)


def test_empty_answers_and_human_labels_are_counted(
    instances: list[Instance],
) -> None:
    judged = records(instances, lambda i: "  " if i.condition == "random" else "It cannot be determined.")
    assert cells("pope", judged)["run / random"]["Neither"].value == 1
    person = "human:ann@1"
    by_person = [
        replace(record, verdicts={**record.verdicts, person: Verdict(person, "labelled", "WRONG")}) for record in judged
    ]
    by_name = {t.name: t for t in Pope().tables({"run": Answers.of(by_person, Pope())}, person, resamples=20, seed=0)}
    for row, values in by_name["pope"].rows:
        assert row.startswith("run / ")
        assert [cell.value for cell in values if isinstance(cell, Estimate)][-2:] == [0, 1]
    assert (by_name["official"].judges, by_name["main"].judges, by_name["failures"].judges) == ((), None, None)


def test_answers_that_a_person_skips_say_neither(instances: list[Instance]) -> None:
    person = "human:ann@1"
    skipped = [
        replace(record, verdicts={person: Verdict(person, "unparsed", reason="skipped by hand")})
        for record in records(instances, lambda _: "Yes")
    ]
    by_name = {t.name: t for t in Pope().tables({"run": Answers.of(skipped, Pope())}, person, resamples=20, seed=0)}
    for _, values in by_name["pope"].rows:
        assert [cell.value for cell in values if isinstance(cell, Estimate)][-2:] == [0, 1]
    assert by_name["pope"].notes[0].startswith("Counted as WRONG: ")
    assert not any(note.startswith("Counted as WRONG: ") for note in by_name["official"].notes)


@pytest.mark.parametrize(("policy", "ratio"), [("always-yes", 1.0), ("always-no", 0.0)])
def test_baselines_are_always_yes_and_always_no(instances: list[Instance], policy: str, ratio: float) -> None:
    backend = PolicyBackend(f"policy:{policy}")
    answers = {}
    for instance in instances[: backend.capacity]:
        request = DirectProtocol(Decoding()).next(instance, ())
        assert request is not None
        backend.submit(request)
    answers = {reply.request_id.partition("#")[0]: reply.text for reply in backend.step()}
    row = cells("pope", records(instances[: backend.capacity], lambda i: answers[i.id]))["run / popular"]
    assert (row["Accuracy"].value, row["Yes ratio"].value, row["Neither"].value) == (0.5, ratio, 0.0)


def test_unanswered_questions_are_excluded_and_counted(instances: list[Instance]) -> None:
    def answer(instance: Instance) -> str | None:
        return None if instance.condition == "adversarial" else "Yes"

    judged = records(instances, answer)
    error = Record(judged[0].instance, (Generation(f"{judged[0].instance.id}#0", "", "error", error="no memory"),))
    judged[0] = error
    main = cells("main", judged)["run"]
    assert main["Adversarial"].value is None
    assert main["Adversarial"].reason == "no labelled answer"
    assert main["Random"].n == 23
    assert main["Random"].value == pytest.approx(11 / 23)
    assert dict(table("failures", {"run": judged}).rows)["run / random"] == (23, 23, 0, 0, 0, 1, 0, 0)


def test_bootstrap_resamples_images_not_questions(instances: list[Instance]) -> None:
    # All of an image's questions right, all of another's wrong: four draws of zero or one, not 24.
    def answer(instance: Instance) -> str:
        right = instance.references["answer"][0]
        odd = int(instance.group.removeprefix("pope-")) % 2
        return right if odd else {"yes": "no", "no": "yes"}[right]

    cell = cells("main", records(instances, answer))["run"]["Random"]
    assert cell.value == 0.5
    assert cell.sd == pytest.approx(0.25, abs=0.04)


@given(
    st.lists(
        st.tuples(st.sampled_from(["yes", "no"]), st.sampled_from(["Yes.", "No.", "A dog"])), min_size=1, max_size=30
    )
)
def test_figures_agree_with_their_definitions(pairs: list[tuple[str, str]]) -> None:
    instances = [
        Instance(str(n), str(n), "random", "?", (Text("?"),), {"answer": (gold,)}, {"answer": gold})
        for n, (gold, _) in enumerate(pairs)
    ]
    answers = {str(n): answer for n, (_, answer) in enumerate(pairs)}
    metrics = {
        name: cell.value
        for name, cell in cells("pope", records(instances, lambda i: answers[i.id]))["run / random"].items()
    }
    true = sum(gold == "yes" and answer == "Yes." for gold, answer in pairs)
    says_yes = sum(answer == "Yes." for _, answer in pairs)
    is_yes = sum(gold == "yes" for gold, _ in pairs)
    right = true + sum(gold == "no" and answer == "No." for gold, answer in pairs)
    assert metrics["Accuracy"] == pytest.approx(right / len(pairs))
    assert metrics["Yes ratio"] == pytest.approx(says_yes / len(pairs))
    assert metrics["Precision"] == (pytest.approx(true / says_yes) if says_yes else None)
    assert metrics["Recall"] == (pytest.approx(true / is_yes) if is_yes else None)
    assert metrics["F1"] == (pytest.approx(2 * true / (says_yes + is_yes)) if says_yes + is_yes else None)


def test_another_build_or_prompt_set_is_refused(tmp_path: Path) -> None:
    built = build(tmp_path, ("pope", str(small_pope(tmp_path / "pope"))))
    with pytest.raises(SpecError, match="plain"):
        Pope().instances(built, "plane")
    with pytest.raises(SourceError, match="not of pope"):
        Pope().instances(replace(built, manifest={**built.manifest, "benchmark": "clash"}), "plain")
    assert Pope().correct("random", "CORRECT")
    assert not Pope().correct("random", "WRONG")
