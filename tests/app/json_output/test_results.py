"""The JSON of commands that print results: their types, what their text says, and nothing of this machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app.json_output.show_json import spec_facts
from app.json_output.tables_json import keys
from app.run_spec import RunSpec
from app.store.run_store import RunStore
from tests.support.command import Rashomon
from tests.support.demo import write_table
from tests.support.json_output import json_result, named

TEXT, IMAGE = "policy:always-text", "policy:always-image"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Rashomon:
    """A question set with two models tried, whose runs are called ``one`` and ``two`` beside it."""
    rashomon = Rashomon(tmp_path_factory.mktemp("json"))
    rashomon.run("build", "cmc-bench", "--from", write_table(rashomon.home, 12))
    for name, model in (("one", TEXT), ("two", IMAGE)):
        rashomon.run("batch", "--benchmark", "cmc-bench", "--data", "charts", "--model", model, "--name", name)
    rashomon.run("try", TEXT, "--against", IMAGE, "--trust", "text")
    with RunStore.open(rashomon.workspace / "runs" / "two") as store:  # as a model in a folder of this machine
        spec, identity = store.meta("spec"), store.meta("identity")
        store.set_meta("spec", {**spec, "model": str(rashomon.home / "secret" / "m-4bit")})
        store.set_meta("identity", {**identity, "model": str(rashomon.home / "secret" / "m-4bit")})
    return rashomon


def sample_of(home: Rashomon) -> str:
    with RunStore.read(home.workspace / "runs" / "one") as store:
        return str(store.ids()[0])


COMMANDS: tuple[tuple[str, ...], ...] = (
    ("audit", "one"),
    ("audit", "BUILD"),
    ("cite", "one", "two"),
    ("compare", "one", "two"),
    ("compare", "one", "two", "--table", "differences"),
    ("history",),
    ("parity", "one", "two"),
    ("published",),
    ("published", "contra4"),
    ("recommend", "one", "two"),
    ("recommend", "one", "two", "--plan"),
    ("runs",),
    ("show", "one", "two"),
    ("show", "two", "--table", "main", "--trust", "text"),
    ("show", "one", "two", "--spec"),
    ("show", "one", "two", "--sample", "ID"),
    ("show", "one", "two", "--speed"),
    ("try", TEXT),
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_commands_json_has_its_type_and_names_no_folder(home: Rashomon, command: tuple[str, ...]) -> None:
    build = home.workspace / "benchmarks" / "cmc-bench"
    words = [{"ID": sample_of(home), "BUILD": str(build)}.get(word, word) for word in command]
    printed = json.loads(home.run(*words, "--json").stdout)  # which checks its type, and that it names no folder
    assert printed["result"]
    assert (printed["command"], printed["format"]) == (command[0], 1)


def sentences(value: Any) -> list[str]:
    """Return the texts in a result, at any depth."""
    if isinstance(value, dict):
        return [text for item in value.values() for text in sentences(item)]
    if isinstance(value, list):
        return [text for item in value for text in sentences(item)]
    return [value] if isinstance(value, str) else []


@pytest.mark.parametrize(
    "command",
    [
        ("show", "one"),
        ("compare", "one", "two"),
        ("recommend", "one", "two"),
        ("history",),
        ("audit", "one"),
        ("try", TEXT),
    ],
    ids=lambda command: command[0],
)
def test_the_lines_of_the_text_are_in_the_json(home: Rashomon, command: tuple[str, ...]) -> None:
    """Lines above the first table, or the last block of a trial, are texts of the result, alone or in parts."""
    printed = home.run(*command).stdout.rstrip("\n")
    block = printed.rpartition("\n\n")[2] if command[0] == "try" else printed.partition("\n\n")[0]
    lines = {"audit": printed.splitlines()[-2:-1], "history": printed.splitlines()[:1]}.get(
        command[0], block.splitlines()
    )
    assert lines
    texts = sentences(home.json(*command))
    for line in lines:
        rest = line.removeprefix("! ")
        parts = [text for text in texts if text and text in rest]
        assert max(map(len, parts), default=0) >= len(rest) / 2 or rest in texts, line


def test_a_comparison_says_which_bundle_a_run_is_of(home: Rashomon, tmp_path: Path) -> None:
    bundle = tmp_path / "theirs.zip"
    home.run("bundle", "two", "--out", bundle)
    printed = json.loads(home.run("show", "one", f"{bundle}:two", "--json").stdout)
    assert [(run["name"], run["bundle"]) for run in printed["runs"]] == [("one", None), ("two", "theirs.zip")]
    assert printed["judge"] == {"id": "match", "version": printed["judge"]["version"]}
    assert printed["benchmark"] == "cmc-bench"
    assert len(printed["data_digest"]) == 64


def test_an_export_is_in_the_envelope(home: Rashomon, tmp_path: Path) -> None:
    home.run("export", "one", "two", "--format", "json", "--out", tmp_path / "out")
    text = (tmp_path / "out" / "results.json").read_text("utf-8")
    result = json_result(text)
    assert [run["name"] for run in result["runs"]] == ["one", "two"]
    assert named(result["runs"][1]["spec"])["model"] == "m-4bit"
    assert str(home.home) not in text


def test_every_key_of_a_spec_is_a_fact() -> None:
    spec = RunSpec(benchmark="cmc-bench", model="/folder/m", prompt_set="paper", strata={"type": ("factual",)}, seed=3)
    values = {fact.name: fact.value for fact in spec_facts(spec.model_dump(mode="json"))}
    assert {name.partition(".")[0] for name in values} == spec.model_dump(mode="json").keys() - {"data"}
    assert (values["model"], values["strata.type"], values["decoding.max_tokens"]) == ("m", ("factual",), 256)


def test_keys_of_columns_start_with_a_letter_and_differ() -> None:
    assert keys(("p (Holm)", "ΔAcc", "2 Modalities / All", "p (Holm)", "模型", "PD*")) == [
        *("p_holm", "delta_acc", "column_2_modalities_all", "p_holm_2", "value", "pd_star")
    ]
