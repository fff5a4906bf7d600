"""Runs that a script begins every night: their names, and new answers with one option."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.engine.runs_to_resume import command_runs, fresh_name
from app.run_name_patterns import NAME, PATTERN, Moment, moment_of, name_at
from app.run_spec import load_spec
from app.store.run_store import RunStore
from app.store.run_summary import read_summary
from app.store.workspace import Workspace
from benchmarks.errors import SpecError
from tests.support.command import Rashomon, kill_all
from tests.support.demo import write_table

IMAGE, TEXT = "policy:always-image", "policy:always-text"
EVENING, MORNING = Moment("2026-11-29", "233000"), Moment("2026-11-30", "013000")
OPTIONS = ("--batch", "--benchmark", "cmc-bench", "--limit", "2", "--display", "none")


def night(rashomon: Rashomon, *options: str | Path, code: int = 0) -> list[str]:
    """Run a night's command, and return the names of all runs."""
    rashomon.run(*OPTIONS, *options, code=code)
    return names(rashomon)


def names(rashomon: Rashomon) -> list[str]:
    return [run.name for run in Workspace(rashomon.workspace).summaries()]


def answered(rashomon: Rashomon, name: str) -> int:
    return read_summary(Workspace(rashomon.workspace).runs_folder / name).done


def set_clock(monkeypatch: pytest.MonkeyPatch, moment: Moment) -> None:
    monkeypatch.setattr(Moment, "now", lambda: moment)


def interrupt(rashomon: Rashomon, *options: str) -> None:
    """Kill a run and its workers after a few answers."""
    process = rashomon.held().start(*OPTIONS[:3], *options, "--display", "json")
    assert process.stdout is not None
    while '"done": 8' not in (line := process.stdout.readline()):
        assert line, "it ended"
    kill_all(process)


def test_a_night_has_a_run_of_its_own_and_the_same_night_resumes_it(
    rashomon: Rashomon, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("--model", IMAGE, "--model", TEXT, "--name", "nightly-{date}-{model}")
    set_clock(monkeypatch, EVENING)
    evening = [f"nightly-2026-11-29-policy-always-{source}" for source in ("image", "text")]
    assert night(rashomon, *options) == night(rashomon, *options) == evening
    set_clock(monkeypatch, MORNING)
    assert night(rashomon, *options) == [*evening, *(name.replace("29", "30") for name in evening)]


def test_a_pattern_in_a_spec_file_is_one_on_the_command_line(
    rashomon: Rashomon, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_clock(monkeypatch, EVENING)
    spec = rashomon.home / "night.toml"
    spec.write_text(f'benchmark = "cmc-bench"\nmodel = "{IMAGE}"\nlimit = 2\nname = "n-{{date}}-{{time}}"\n')
    rashomon.run("--batch", spec, "--display", "none")
    assert names(rashomon) == ["n-2026-11-29-233000"]
    assert "n-2026-11-29-233000" in rashomon.run("show", "n-", "--spec").stdout


def test_an_interrupted_night_is_resumed_after_midnight_but_not_by_the_next_one(
    rashomon: Rashomon, monkeypatch: pytest.MonkeyPatch
) -> None:
    today = date.today()
    evening, morning = (f"nightly-{day}" for day in (today, today + timedelta(1)))
    set_clock(monkeypatch, Moment(f"{today + timedelta(1)}", "013000"))
    interrupt(rashomon, "--model", IMAGE, "--name", evening)
    workspace, values = Workspace(rashomon.workspace), {"benchmark": "cmc-bench", "model": [IMAGE]}
    spec = load_spec(None, {**values, "name": "nightly-{date}"})
    other = load_spec(None, {**values, "model": [TEXT], "name": "nightly-{date}"})
    with RunStore.open(workspace.runs_folder / evening) as store:
        began = store.meta("created")
        for hours, name in ((13, morning), (0, evening)):
            store.set_meta("created", began - hours * 3600)
            assert [run.name for run in command_runs(workspace, spec)] == [name]
    assert other.runs()[0].name == morning
    command = ("--batch", "--benchmark", "cmc-bench", "--model", IMAGE, "--name", "nightly-{date}", "--display", "none")
    rashomon.run(*command)
    assert names(rashomon) == [evening]
    rashomon.run(*command)  # it was finished, so this is another night's
    assert names(rashomon) == [evening, morning]


def test_fresh_asks_all_anew_in_a_new_run_each_time(rashomon: Rashomon) -> None:
    options = ("--model", IMAGE, "--model", TEXT, "--fresh")
    first = night(rashomon, *options)
    second = night(rashomon, *options)
    assert second == [*first, *(f"{name}-2" for name in first)]
    rashomon.run(*OPTIONS, *options, "--dry-run")
    assert names(rashomon) == second
    assert {answered(rashomon, name) for name in second} == {answered(rashomon, first[0])}
    assert night(rashomon, *options)[-2:] == [f"{name}-3" for name in first]


def test_an_interrupted_fresh_command_is_resumed_as_a_whole(rashomon: Rashomon) -> None:
    done, cut = ("--model", IMAGE, "--fresh"), ("--model", TEXT, "--fresh")
    rashomon.run("--batch", "--benchmark", "cmc-bench", *done, "--display", "none")
    interrupt(rashomon, *cut)
    before = names(rashomon)
    rashomon.run("--batch", "--benchmark", "cmc-bench", *done, *cut, "--display", "none")
    assert names(rashomon) == before
    rashomon.run("--batch", "--benchmark", "cmc-bench", *done, *cut, "--display", "none")
    assert names(rashomon) == [*before, *(f"{name}-2" for name in before)]


def test_a_killed_night_of_an_older_table_stays_and_a_fresh_one_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    today = date.today()
    set_clock(monkeypatch, Moment(f"{today}", "230000"))
    rashomon = Rashomon(tmp_path)
    table = write_table(tmp_path, 24)
    build = ("build", "cmc-bench", "--from", table)
    rashomon.run(*build)
    night = ("--benchmark", "cmc-bench", "--data", "charts", "--model", IMAGE, "--name", "n-{date}")
    killed, second, morning = f"n-{today}", f"n-{today}-2", f"n-{today + timedelta(1)}"
    process = rashomon.held().start("--batch", *night, "--fresh", "--display", "json")
    assert process.stdout is not None
    while '"done": 8' not in (line := process.stdout.readline()):
        assert line, "it ended"
    kill_all(process)
    (old,) = names(rashomon)
    runs = rashomon.workspace / "runs"
    (runs / old).rename(runs / killed)  # a process of its own has the machine's clock
    before = answered(rashomon, killed)
    assert 0 < before < read_summary(runs / killed).total
    table.write_text(table.read_text("utf-8").replace("What", "Now, what", 1), "utf-8")
    rashomon.run(*build)
    set_clock(monkeypatch, Moment(f"{today + timedelta(1)}", "013000"))
    message = rashomon.run("--batch", *night, "--display", "none", code=2).stderr
    assert f"`rashomon resume {killed}`" in message
    set_clock(monkeypatch, Moment(f"{today}", "233000"))
    fresh = ("--batch", *night, "--fresh", "--display", "none")
    rashomon.run(*fresh)
    rashomon.run(*fresh)  # it is finished
    assert names(rashomon) == [killed, second]
    assert answered(rashomon, killed) == before
    with RunStore.open(runs / second) as store:
        store.repeat((), errors_only=False)
    set_clock(monkeypatch, Moment(f"{today + timedelta(1)}", "013000"))
    rashomon.run(*fresh)  # resumes it
    assert names(rashomon) == [killed, second]
    rashomon.run(*fresh)
    assert names(rashomon) == [killed, second, morning]
    assert answered(rashomon, second) == read_summary(runs / second).total
    rashomon.run("resume", killed, "--display", "none")
    assert read_summary(runs / killed).state == "done"


def test_a_long_name_is_numbered_within_the_longest(tmp_path: Path) -> None:
    workspace, stem = Workspace(tmp_path), f"{'x' * 75}-01234567"
    assert fresh_name(workspace, stem) == stem
    folder = workspace.runs_folder / stem
    folder.mkdir(parents=True)
    (folder / "run.sqlite").write_text("damaged")
    second = fresh_name(workspace, stem)
    assert re.fullmatch(NAME, second)
    assert second.endswith("x-01234567-2")
    folder.rename(workspace.runs_folder / second)
    assert fresh_name(workspace, stem) == f"{second.removesuffix('2')}3"


@pytest.mark.parametrize(
    "name",
    [
        "{date}/x",
        "../{date}",
        "{year}",
        "{date",
        "{{date}}",
        "{date.year}",
        "{0}",
        "%Y-{date}",
        "x{model!r}",
        ".{date}",
    ],
)
def test_nothing_else_in_braces_is_a_name(rashomon: Rashomon, name: str) -> None:
    night(rashomon, "--model", IMAGE, "--name", name, code=2)
    assert names(rashomon) == []


def test_a_pattern_that_names_two_runs_alike_is_refused() -> None:
    for name in ("{date}", "{date}-{model}"):
        values = {"benchmark": "cmc-bench", "model": ["one/m", "two/m"], "name": name}
        with pytest.raises(SpecError):
            load_spec(None, values).runs()
    with pytest.raises(SpecError):
        load_spec(None, {"benchmark": "cmc-bench", "model": ["m" * 60], "name": f"{'x' * 40}{{model}}"}).runs()


@given(
    st.from_regex(PATTERN, fullmatch=True),
    st.datetimes(datetime(1970, 1, 1)),
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=60),
)
def test_the_moment_is_read_back_from_a_name(pattern: str, moment: datetime, model: str) -> None:
    at = Moment(f"{moment:%Y-%m-%d}", f"{moment:%H%M%S}")
    name = name_at(pattern, at, model)
    assert re.fullmatch(r"[A-Za-z0-9._-]*", name)
    read = moment_of(pattern, name, ["another/model", model])
    assert read is not None
    if "{model}" not in pattern:
        assert read == Moment(at.date if "{date}" in pattern else "", at.time if "{time}" in pattern else "")
        assert moment_of(pattern, f"{name}x", [model]) is None
