"""The prompts of CLASH's official code: read from a clone of the user's, checked, never run; the judge and the construction."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from app.store.run_facts import judge_progress
from app.store.store_types import ConditionProgress, JudgedCounts
from benchmarks.build import BuildOptions
from benchmarks.clash import Clash, clash_official_code
from benchmarks.clash.clash_official_code import COMMIT, FILE, read_prompts
from benchmarks.clash.construction.caption_checks import ANSWERS, ATTRIBUTE, OBJECT, QUESTIONS
from benchmarks.clash.construction.clash_construction_sets import OfficialPrompts
from benchmarks.errors import SourceError, SpecError
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Generation, Request, Text
from judges.base import newest, newest_versions
from judges.judge_registry import find_judges
from judges.rubric_judge import MAX_REPLIES
from tests.benchmarks.clash.test_clash_construction import DRAFT
from tests.benchmarks.clash.test_clash_rubric import _record
from tests.support.command import Rashomon
from tests.support.data.clash import own_folder, own_sample
from tests.support.data.clash_code import CLONE, NAMES, OURS, own_code, text_of
from tests.support.data.small import write_picture
from tests.support.text_models import CachedModel

needs_clone = pytest.mark.skipif(not CLONE, reason="RASHOMON_CLASH_CODE names no clone of the official code")
JUDGE = "endpoint:llm@http://127.0.0.1:1/v1"


def test_texts_are_read_and_nothing_of_the_file_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hostile = f"open({str(tmp_path / 'ran')!r}, 'w')\nX = 'a' + 'b'\nY = f'{{open}}'\nraise SystemExit(3)\n"
    prompts = read_prompts(own_code(tmp_path / "clone", monkeypatch, hostile + OURS))
    assert prompts == {name: text_of(name) for name in NAMES}
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("kind", ["missing", "another", "fifo", "folder", "large", "no-folder"])
def test_another_file_is_refused_with_the_commit_to_check_out(tmp_path: Path, kind: str) -> None:
    clone = tmp_path / "clone"
    file = clone / FILE
    if kind != "no-folder":
        file.parent.mkdir(parents=True)
    if kind == "another":
        file.write_text(OURS)
    elif kind == "fifo":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    elif kind == "large":
        with file.open("wb") as stream:
            stream.truncate(1 << 40)
    with pytest.raises(SourceError) as refusal:
        read_prompts(clone)
    message = str(refusal.value)
    assert message.endswith(
        f"clone tpopordanoska/clash from GitHub, check out commit {COMMIT}, and name that folder with --official-code."
    )
    assert message.count("; clone ") == 1


def test_the_judge_is_asked_as_the_official_code_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clash, clone = Clash(), own_code(tmp_path / "clone", monkeypatch)
    rubric = clash.official_rubric(clone)
    assert rubric.prompt(_record("It is\nblack.")) == (
        f"{text_of('JUDGE_PROMPT')} Now classify: \n Image-only answer: White \n Text-only answer: Black \n"
        " Prediction: It is black.  \n    "
    )
    replies = {" image\n": "IMAGE", "TEXT": "TEXT", "Conflict": "CONFLICT", "none": "INCORRECT"}
    assert {reply: rubric.read(reply) for reply in replies} == replies
    # The paper's judge reads these; the official code takes a label alone.
    for reply in ("**TEXT**", '"TEXT"', "TEXT.", '{"label": "TEXT"}', "Label: TEXT", "INCORRECT", ""):
        assert rubric.read(reply) is None
    (judge,) = find_judges([JUDGE], clash, official_code=clone)
    assert judge.id == f"{JUDGE}@clash-official-1"
    assert judge.conditions == clash.rubric.conditions
    failed = judge.verdict([Generation("", "Label: TEXT", "stop")] * MAX_REPLIES)  # type: ignore[attr-defined]
    assert failed.status == "judge-failed"


def test_both_prompts_of_a_model_are_judges_of_their_own() -> None:
    printed, official = f"{JUDGE}@clash-1", f"{JUDGE}@clash-official-1"
    ids = [f"{JUDGE}@clash-0", printed, official, "strict@1", "human:a-1", "human:a-2"]
    assert newest(JUDGE, ids) == printed
    assert newest(JUDGE, [official]) is None, "a run's own judge has not judged"
    assert newest_versions(ids) == [printed, official, "strict@1", "human:a-1", "human:a-2"]
    judged = {judge: JudgedCounts() for judge in (printed, official)}
    progress = [
        ConditionProgress(condition, 4, 4, 0, 0, 0, 0.0, 0, judged=judged)
        for condition in ("open-original", "mc-original")
    ]
    spec = {"benchmark": "clash", "judge": [JUDGE]}
    assert {entry.judge: entry.total for entry in judge_progress(spec, progress)} == {printed: 4, official: 4}


@pytest.mark.parametrize(("benchmark", "judge"), [("clash", "strict"), ("cmc-bench", JUDGE)])
def test_where_it_has_no_use_the_option_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, benchmark: str, judge: str
) -> None:
    clone = own_code(tmp_path / "clone", monkeypatch)
    with pytest.raises(SpecError, match="leave --official-code out"):
        find_judges([judge], get_benchmark(benchmark), official_code=clone)


def test_wrong_folders_end_the_commands_with_a_sentence(rashomon: Rashomon, tmp_path: Path) -> None:
    rows = own_folder(tmp_path / "own", [own_sample(1)])
    rashomon.run("build", "clash", "--source", f"rows={rows}")
    batch = ("--batch", "--benchmark", "clash", "--model", "policy:always-image", "--conditions", "open-original")
    rashomon.run(*batch, "--name", "run")
    judged = rashomon.run("judge", "run", "--judge", JUDGE, "--official-code", tmp_path, code=2)
    built = rashomon.run(
        *("build", "clash", "--source", f"rows={rows}", "--official-code", tmp_path, "--out", tmp_path / "out"), code=2
    )
    other = rashomon.run("build", "mmkc-bench", "--source", f"rows={rows}", "--official-code", tmp_path, code=2)
    assert COMMIT in judged.stderr
    assert "--official-code is for coco and spatial" in built.stderr
    assert "mmkc-bench has no use for --official-code" in other.stderr
    assert all(len(done.stderr.strip().splitlines()) == 1 for done in (judged, built, other))


# --- the construction ----------------------------------------------------------------------------


def test_inputs_are_put_below_the_prompts_as_in_the_official_code() -> None:
    prompts = OfficialPrompts({name: f"{name}\n" for name in NAMES})
    assert prompts.caption("A cat.") == (
        "GENERATE_CONFLICTING_CAPTION_AND_ANSWER\n\n    The original image caption is: A cat.\n    "
    )
    assert prompts.answers(DRAFT) == (
        'GENERATE_MCQA_ANSWERS\n Input:\n    - Original Caption: "A fluffy white cat sitting on a red couch."\n'
        '    - Conflicting Caption: "A fluffy black cat sitting on a red couch."\n'
        '    - Question: "What color is the cat sitting on a couch?"\n'
    )
    expected = [
        (ATTRIBUTE, "ATTRIBUTE_CHECK\n Input:\n    - Original: white\n    - Conflicting: black\n"),
        (OBJECT, "OBJECT_CHECK\n Input:\n        - Original: white\n        - Conflicting: black\n"),
        (ANSWERS, "ANSWERS_CHECK\n Input: White, Black, Orange"),
        (
            QUESTIONS,
            'QUESTION_CHECK\n Input: \n        - Question: "What color is the cat sitting on a couch?"\n'
            "        - Changed words: white, black\n        - Answers: White, Black, Orange\n",
        ),
    ]
    for check, text in expected:
        assert prompts.check(check, DRAFT) == text


def _coco(folder: Path, *captions: str) -> Path:
    (folder / "annotations").mkdir(parents=True)
    (folder / "val2017").mkdir()
    images = [{"id": number, "file_name": f"{number:012d}.jpg"} for number in range(1, len(captions) + 1)]
    for image in images:
        write_picture(folder / "val2017" / str(image["file_name"]), int(str(image["id"])))
    annotations = [{"id": n, "image_id": n, "caption": text} for n, text in enumerate(captions, 1)]
    file = folder / "annotations" / "captions_val2017.json"
    file.write_text(json.dumps({"images": images, "annotations": annotations}))
    return folder


def _write(request: Request) -> Generation:
    (part,) = request.messages[0].parts
    assert isinstance(part, Text)
    assert part.text.startswith(tuple(text_of(name) for name in NAMES)), "no prompt of the paper's is sent"
    yes = {**ATTRIBUTE.expected_answers, **OBJECT.expected_answers, **ANSWERS.expected_answers}
    fields: dict[str, object] = {**yes, **QUESTIONS.expected_answers}
    fields |= {
        "conflicting_caption": "A black cat sits on a couch.",
        "question": "What color is the cat on the couch?",
        "change_type": "attribute",
        "changed_words": {"original": "white", "conflicting": "black"},
        "image_only": "White",
        "text_only": "Black",
        "irrelevant_but_plausible": "Orange",
    }
    stays = "caption is: A dog" in part.text
    return Generation(request.id, "None" if stays else json.dumps(fields), "stop")


def test_a_construction_uses_the_prompts_of_the_clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = _coco(tmp_path / "coco", "A white cat sits on a couch.", "A dog and its double.")
    model = CachedModel(_write)
    options = BuildOptions(per_stratum=2, writer=model, official_code=own_code(tmp_path / "clone", monkeypatch))
    built = Clash().build([("coco", str(source))], tmp_path / "out", options)
    assert [row["conflicting_caption"] for row in built.rows()] == ["A black cat sits on a couch."]
    assert built.manifest["options"] == {"per_stratum": 2, "prompts": "official"}
    assert built.manifest["sources"]["coco"]["skipped"] == {"no-change": 1}
    assert len(model.asked) == 1 + 5, "a caption that the writer leaves as it is costs one request"


# --- the real code -------------------------------------------------------------------------------


@needs_clone
def test_the_published_file_has_every_prompt() -> None:
    prompts = read_prompts(Path(CLONE))
    assert {*NAMES} <= {*prompts}
    assert "IMAGE, TEXT, CONFLICT, or NONE" in Clash().official_rubric(Path(CLONE)).prompt(_record("Black"))
    assert clash_official_code.SHA256 == "f3d581c7c62b81acef10d4d12b73d2e8bb03886b32212772a688ea45095c4a15"
