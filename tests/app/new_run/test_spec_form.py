"""A spec typed into a form: what is wrong is said by field, and its command line and its file mean the same spec."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from app.cli import cli
from app.new_run.spec_form import check_runs, command_line, read_form, save_spec, to_toml
from app.run_spec import BatchSpec, load_spec
from app.store.workspace import Workspace
from app.text.shell_quoting import shell_quote
from benchmarks.errors import SpecError
from benchmarks.registry import benchmark_names, get_benchmark
from tests.support.command import Rashomon

BASH = shutil.which("bash")


def parsed(line: str, monkeypatch: pytest.MonkeyPatch) -> BatchSpec:
    """The spec that ``rashomon --batch`` makes of a command line, as bash splits it."""
    assert BASH is not None
    split = subprocess.run([BASH, "-c", f"printf '%s\\0' {line}"], capture_output=True, check=True).stdout
    program, *arguments = [item.decode("utf-8", "surrogateescape") for item in split.split(b"\0")[:-1]]
    assert program == "rashomon"
    seen: list[BatchSpec] = []

    def batch(workspace: Workspace, spec: Path | None, overrides: dict[str, Any], *_: Any, **__: Any) -> int:
        seen.append(load_spec(spec, overrides))
        return 0

    monkeypatch.setattr("app.commands.running.batch_command.batch", batch)
    with cli.make_context("rashomon", arguments) as context:
        cli.invoke(context)
    return seen[0]


HOSTILE = [
    "a b",
    "it's",
    "$(touch x)",
    "`id`",
    "-x",
    "--batch",
    "--workspace",
    "a,b",
    " edge ",
    "back\\slash",
    "end\\",
    "\x1b]52;c;aGk=\x07",
    "new\nline",
    "tab\there",
    "[/nope]",
    "[@click=app.quit]x",
    "‮abc​",
    "\x9b31m",
    "ß€😀",
    "~",
    "~nobody-at-all/x",
    "*",
    ";",
    ",",
    "\\,",
    "!!",
]


@st.composite
def forms(draw: st.DrawFn) -> dict[str, Any]:
    """Strategy for valid forms."""
    benchmark = get_benchmark(draw(st.sampled_from(benchmark_names())))
    words = st.one_of(
        st.sampled_from(HOSTILE),
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=12),
    ).filter(lambda word: word.strip())
    typed: dict[str, Any] = {
        "benchmark": benchmark.name,
        "model": draw(st.lists(words, min_size=1, max_size=3, unique=True)),
    }
    optional = {
        "data": words.filter(lambda word: not word.strip().startswith("~")),
        "prompt_set": st.lists(st.sampled_from(list(benchmark.prompt_sets)), max_size=2, unique=True),
        "conditions": st.lists(st.sampled_from(benchmark.conditions), max_size=3, unique=True),
        "strata": st.dictionaries(
            st.sampled_from(["type", "a b", "-k"]), st.lists(words, min_size=1, max_size=3), max_size=2
        ),
        "judge": st.lists(words, max_size=2, unique=True),
        "limit": st.integers(1, 10**6).map(str),
        "seed": st.integers(0, 2**32 - 1).map(lambda n: f" {n} "),
        "exact": st.booleans(),
        "restarts": st.integers(0, 100).map(str),
        "max_tokens": st.integers(1, 10**5).map(str),
        "temperature": st.floats(0, 10).map(repr),
        "top_p": st.floats(0.01, 1).map(repr),
        "max_pixels": st.integers(1024, 10**7).map(str),
        "token_ceiling": st.integers(1, 10**9).map(str),
        "input_price": st.floats(0, 100).map(repr),
        "concurrency": st.integers(1, 256).map(str),
    }
    for key, values in optional.items():
        if draw(st.booleans()):
            typed[key] = draw(values)
    return typed


@pytest.mark.skipif(BASH is None, reason="no bash")
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(typed=forms())
@example(typed={"benchmark": "clash", "model": HOSTILE, "strata": {"type": HOSTILE}, "judge": HOSTILE})
@example(typed={"benchmark": "crosscheck-bench", "model": ["m"], "max_tokens": "256", "top_p": "1.0"})
def test_the_command_line_and_the_file_of_any_form_mean_the_same_spec(
    typed: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = Workspace(tmp_path / "a workspace's $HOME")
    spec, wrong = read_form(typed)
    assert spec is not None, wrong

    line = command_line(workspace, spec)
    again = parsed(line, monkeypatch)
    assert again == spec
    assert again.model_dump(exclude_unset=True) == spec.model_dump(exclude_unset=True)
    assert not [c for c in line if ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 or c in "‮​"]

    file = tmp_path / "spec.toml"
    save_spec(spec, file, replace=True)
    assert load_spec(file, {}) == spec


@pytest.mark.parametrize("word", [*HOSTILE, "\udcff", "x\udc80y", ""])
def test_quoting_is_what_bash_reads_back(word: str) -> None:
    if BASH is None:
        pytest.skip("no bash")
    stdout = subprocess.run([BASH, "-c", f"printf '%s' {shell_quote(word)}"], capture_output=True, check=True).stdout
    assert stdout.decode("utf-8", "surrogateescape") == word


@pytest.mark.parametrize(
    ("typed", "field", "says"),
    [
        ({}, "benchmark", "name"),
        ({}, "model", "name at least one"),
        ({"benchmark": "clsh"}, "benchmark", "did you mean 'clash'"),
        ({"limit": "0"}, "limit", "1"),
        ({"limit": "ten"}, "limit", "whole number"),
        ({"limit": "3.5"}, "limit", "whole number"),
        ({"seed": "-1"}, "seed", "0"),
        ({"name": "../x"}, "name", "letters"),
        ({"name": "x", "model": ["a", "b"]}, "name", "only name one run"),
        ({"temperature": "hot"}, "temperature", "a number"),
        ({"temperature": "nan"}, "temperature", "from 0 to 10"),
        ({"top_p": "1.5"}, "top_p", "1"),
        ({"max_pixels": "3"}, "max_pixels", "1,024"),
        ({"max_tokens": "9" * 5000}, "max_tokens", ""),
        ({"prompt_set": ["papr"]}, "prompt_set", "did you mean 'paper'"),
        ({"conditions": ["alined"]}, "conditions", "did you mean 'aligned'"),
        ({"strata": {"type": [""]}}, "strata", "not empty"),
        ({"cost_ceiling": "2"}, "cost_ceiling", "input_price"),
        ({"cost_ceiling": "-2"}, "cost_ceiling", "0"),
        ({"concurrency": "0"}, "concurrency", "1"),
        ({"data": "~nobody-at-all/x"}, "data", "home folder"),
        ({"model": ["\udcff"]}, "model", ""),
    ],
)
def test_each_field_says_what_is_wrong_with_it(typed: dict[str, Any], field: str, says: str) -> None:
    whole = {"benchmark": "cmc-bench", "model": ["policy:random"], **typed} if typed else {}
    spec, wrong = read_form(whole)
    assert spec is None
    assert says in wrong[field]
    assert len(wrong[field]) < 300
    if typed:
        assert list(wrong) == [field]


@pytest.mark.slow
def test_the_printed_line_and_the_saved_file_make_the_run_of_the_form(rashomon: Rashomon) -> None:
    spec, wrong = read_form(
        {
            "benchmark": "cmc-bench",
            "model": ["policy:always-image"],
            "strata": {"type": ["factual", "temporal"]},
            "conditions": ["aligned", "text-only"],
            "limit": "3",
            "seed": "7",
        }
    )
    assert spec is not None, wrong
    (checked,) = check_runs(Workspace(rashomon.workspace), spec)

    arguments = shlex.split(command_line(Workspace(rashomon.workspace), spec))[1:]
    stdout = rashomon.run(*arguments, "--dry-run").stdout
    assert stdout.startswith(
        f"{checked.folder.name}: the spec is valid, {len(checked.instances)} instances; nothing was run.\n"
    )
    save_spec(spec, rashomon.home / "my spec.toml")
    assert rashomon.run("--batch", "my spec.toml", "--dry-run").stdout == stdout
    with pytest.raises(SpecError, match="exists already"):
        save_spec(spec, rashomon.home / "my spec.toml")
    with pytest.raises(SpecError, match="cannot write"):
        save_spec(spec, rashomon.home / ("x" * 300))


def test_a_stratum_with_a_comma_can_be_said_on_the_command_line(rashomon: Rashomon) -> None:
    stderr = rashomon.run(
        *("--batch", "--benchmark", "cmc-bench", "--model", "policy:random", "--dry-run"),
        *("--strata", "type=fact\\,ual"),
        code=2,
    ).stderr
    assert "no type 'fact,ual'" in stderr


def test_a_spec_that_no_file_or_line_can_hold_says_so(tmp_path: Path) -> None:
    spec = BatchSpec(benchmark="clash", model=("a\0b",))
    with pytest.raises(SpecError, match="--model"):
        command_line(Workspace(tmp_path), spec)
    assert load_spec_of(to_toml(spec), tmp_path) == spec


def load_spec_of(text: str, folder: Path) -> BatchSpec:
    (folder / "spec.toml").write_text(text, "utf-8")
    return load_spec(folder / "spec.toml", {})
