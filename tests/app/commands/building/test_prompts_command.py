"""Prompt sets from files, from the command line: runs with them, what a run keeps of them, and `rashomon prompts`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.run_spec import RunSpec, load_spec
from app.store.run_store import RunStore
from benchmarks.vocabulary import Text
from tests.support.command import ROOT, Rashomon

SOURCE = ROOT / "assets" / "demo" / "held_out" / "cmc-bench"
MINE = """description = "mine"
system = "You are careful. {abstention}"
user = '''
Look: {image}
Read: {text}
Answer: {question}
'''
"""
RUN = ("--batch", "--benchmark", "cmc-bench", "--model", "policy:always-image", "--limit", "4", "--display", "none")


@pytest.fixture(scope="module")
def rashomon(tmp_path_factory: pytest.TempPathFactory) -> Rashomon:
    home = tmp_path_factory.mktemp("prompts")
    rashomon = Rashomon(home)
    rashomon.run("build", "cmc-bench", "--source", f"rows={SOURCE}")
    (home / "careful.toml").write_text(MINE, "utf-8")
    rashomon.run(*RUN, "--prompt-set", home / "careful.toml", "--prompt-set", "image-first", "--prompt-set", "paper")
    return rashomon


def runs(rashomon: Rashomon) -> dict[str, list[str]]:
    """Return the names of the runs of each prompt set."""
    names: dict[str, list[str]] = {}
    for run in rashomon.json("runs"):
        names.setdefault(run["prompt_set"], []).append(run["name"])
    return names


def stored(rashomon: Rashomon, name: str) -> tuple[dict[str, Any], dict[str, Any], list[Any]]:
    with RunStore.read(rashomon.home / "workspace" / "runs" / name) as store:
        return store.meta("spec"), store.meta("identity"), [record.instance for record in store.records()]


@pytest.mark.slow
def test_a_run_keeps_the_prompt_set_and_its_digest(rashomon: Rashomon) -> None:
    (name,) = runs(rashomon)["careful"]
    spec, identity, instances = stored(rashomon, name)
    assert spec["prompt"]["user"].strip().startswith("Look: {image}")
    assert len(identity["prompt digest"]) == 64
    first = next(instance for instance in instances if instance.condition == "aligned")
    assert isinstance(first.parts[0], Text)
    assert first.parts[0].text == "Look: "
    request = RunSpec.model_validate(spec).to_protocol().next(first, ())
    assert request is not None
    system = request.messages[0]
    assert (system.role, request.messages[1].parts) == ("system", first.parts)
    assert "cannot be determined" in str(system.parts[0])
    (plain,) = runs(rashomon)["paper"]
    assert "prompt" not in stored(rashomon, plain)[0]
    assert "prompt digest" not in stored(rashomon, plain)[1]


def test_runs_of_several_prompt_sets_are_compared_in_pairs(rashomon: Rashomon) -> None:
    names = [runs(rashomon)[prompts][0] for prompts in ("paper", "careful", "image-first")]
    compared = rashomon.json("compare", *names)
    tables = {table["name"]: table for table in compared["tables"]}
    rows = [row["label"] for row in tables["abstention-differences"]["rows"]]
    assert any("(careful)" in row for row in rows)
    assert any("(image-first)" in row for row in rows)


def test_a_changed_file_is_another_run_and_the_first_one_can_be_repeated(rashomon: Rashomon, tmp_path: Path) -> None:
    (before,) = runs(rashomon)["careful"]
    file = tmp_path / "careful.toml"
    file.write_text(MINE.replace("Look", "See"), "utf-8")
    rashomon.run(*RUN, "--prompt-set", file)
    (after,) = set(runs(rashomon)["careful"]) - {before}
    assert stored(rashomon, after)[1]["prompt digest"] != stored(rashomon, before)[1]["prompt digest"]
    rashomon.run("resume", before)  # the file plays no part
    repeated = tmp_path / "again.toml"
    repeated.write_text(rashomon.run("show", before, "--spec").stdout, "utf-8")
    (spec,) = load_spec(repeated, {}).runs()
    assert spec.prompts == RunSpec.model_validate(stored(rashomon, before)[0]).prompts
    same = tmp_path / "elsewhere" / "careful.toml"
    same.parent.mkdir()
    same.write_text(MINE.replace('"mine"', '"described in other words"'), "utf-8")
    assert f"{before}: all 32 instances" in rashomon.run(*RUN[:-1], "plain", "--prompt-set", same).stdout


def test_a_file_is_relative_to_the_spec_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(MINE, "utf-8")
    (tmp_path / "spec.toml").write_text(
        'benchmark = "cmc-bench"\nmodel = "policy:random"\nprompt_set = ["mine.toml", "question-last"]', "utf-8"
    )
    assert [spec.prompt_set for spec in load_spec(tmp_path / "spec.toml", {}).runs()] == ["mine", "question-last"]


@pytest.mark.parametrize(
    "content",
    [
        "user = '{question} {image} {typo}'",
        "user = '{question} {text}'",
        "user = '{question} {image} {text} $X_API_KEY'",
        "x",
    ],
)
def test_a_wrong_file_is_refused_before_anything_runs(rashomon: Rashomon, tmp_path: Path, content: str) -> None:
    (tmp_path / "wrong.toml").write_text(content, "utf-8")
    for arguments in ((*RUN, "--prompt-set", tmp_path / "wrong.toml"), ("prompts", tmp_path / "wrong.toml")):
        assert "Traceback" not in rashomon.run(*arguments, code=2).stderr
    rashomon.run(*RUN, "--prompt-set", "no-such-set", code=2)


def test_prompt_sets_are_listed_printed_and_previewed(rashomon: Rashomon, tmp_path: Path) -> None:
    listed = rashomon.json("prompts")
    assert len(listed) == 10
    (tmp_path / "copy.toml").write_text(rashomon.run("prompts", "verify-the-text").stdout, "utf-8")
    preview = rashomon.json("prompts", tmp_path / "copy.toml", "--benchmark", "cmc-bench")
    assert set(preview["prompts"]) >= {"aligned", "image-only", "text-only", "closed-book"}
    assert "Someone claims:" in preview["prompts"]["aligned"][0]["text"]
    assert "<image>" not in preview["prompts"]["text-only"][0]["text"]
    careful = rashomon.run("prompts", rashomon.home / "careful.toml", "--benchmark", "cmc-bench").stdout
    assert "[system] You are careful." in careful
    rashomon.run("prompts", "verify-the-text", "--benchmark", "no-such-benchmark", code=2)
