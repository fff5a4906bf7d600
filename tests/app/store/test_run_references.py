"""Everything that stands for a run: what each text names, and what is refused in a sentence."""

from __future__ import annotations

import os
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.engine.run_plan import without_none
from app.store.run_database import DATABASE
from app.store.run_references import (
    PublishedRow,
    StoredRun,
    changeable_run,
    find_reference,
    run_folder,
    stored_models,
)
from app.store.run_store import RunStore
from app.store.store_types import NewAnswer
from app.store.tried_models import TriedModels, update_tried
from app.store.workspace import Workspace
from benchmarks.errors import RashomonError, SpecError, StoreError
from benchmarks.vocabulary import Generation
from tests.support.command import Rashomon
from tests.support.demo import write_table
from tests.support.trust import seal

TEXT, IMAGE = "policy:always-text", "policy:always-image"
NAMES = {"text-run": TEXT, "image-run": IMAGE}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a question set, a run of two policies on it, and a bundle of both."""
    home = tmp_path_factory.mktemp("references")
    rashomon = Rashomon(home)
    rashomon.run("build", "cmc-bench", "--from", write_table(home, 4, "charts", None))
    for name, model in NAMES.items():
        rashomon.run(
            *("batch", "--benchmark", "cmc-bench", "--data", "charts", "--model", model, "--name", name),
            *("--display", "none"),
        )
    rashomon.run("bundle", *NAMES, "--media", "none", "--out", "both.zip")
    rashomon.run("bundle", "text-run", "--media", "none", "--out", "single.zip")
    return home


@pytest.fixture
def rashomon(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rashomon:
    shutil.copytree(home, tmp_path, dirs_exist_ok=True, symlinks=True)
    monkeypatch.chdir(tmp_path)
    return Rashomon(tmp_path)


@pytest.fixture
def workspace(rashomon: Rashomon) -> Workspace:
    return Workspace(rashomon.workspace)


def add_run(workspace: Workspace, name: str, *, created: float | None = None, **spec: Any) -> Path:
    """Add a copy of a run, made later by default, with these values of its spec, to which its answers do not matter."""
    folder = workspace.runs_folder / name
    shutil.copytree(workspace.runs_folder / "text-run", folder)
    with RunStore._connect(folder) as store:
        store.set_meta("spec", {**store.meta("spec"), **spec})
        store.set_meta("created", time.time() if created is None else created)
        (folder / "spec.toml").write_text(tomli_w.dumps(without_none(store.meta("spec"))), "utf-8")
    seal(folder)
    return folder


def folder_name(workspace: Workspace, text: str) -> str:
    reference = find_reference(workspace, text)
    assert isinstance(reference, StoredRun)
    return reference.folder.name


# --- names, folders, bundles, rows ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("text-run", "text-run"),
        ("te", "text-run"),
        ("./workspace/runs/image-run", "image-run"),
        ("workspace/runs/image-run/", "image-run"),
        ("both.zip:image-run", "image-run"),
        ("both.zip:im", "image-run"),
        ("./single.zip", "text-run"),
        (f"latest:{TEXT}", "text-run"),
        (f"latest:{TEXT}@charts", "text-run"),
        (f"latest:{IMAGE}@CHARTS", "image-run"),
        ("@charts", "image-run"),
    ],
)
def test_each_form_names_its_run(workspace: Workspace, text: str, name: str) -> None:
    reference = find_reference(workspace, text)
    assert isinstance(reference, StoredRun)
    assert reference.folder.name == name
    assert (reference.folder / DATABASE).is_file()
    assert (reference.bundle is not None) == (".zip" in text)


def test_a_row_is_the_papers_unless_a_bundle_has_that_name(workspace: Workspace) -> None:
    assert find_reference(workspace, "published:Qwen3-VL-4B") == PublishedRow("Qwen3-VL-4B")
    row = find_reference(workspace, "published:both.zip:text-run")
    assert isinstance(row, PublishedRow)
    assert row.folder is not None
    assert row.folder.name == "text-run"


@pytest.mark.parametrize(
    "text",
    [
        *("", "nothing", "t ", "\0", "\x1b[31m", "../runs/text-run", "~nobody/x", "x" * 5000, "\ud800"),
        *("both.zip", "both.zip:", "both.zip:nothing", "both.zip:../text-run", "charts.csv", "workspace"),
        *("latest:", "latest:nothing", f"latest:{TEXT}@", f"latest:{TEXT}@nothing", "latest:@charts", "latest:@"),
        *("@", "@nothing", "@../charts", "@charts@1", "@charts/1", "published:", "published:both.zip:nothing"),
    ],
)
def test_what_names_no_run_is_refused_in_a_sentence(rashomon: Rashomon, workspace: Workspace, text: str) -> None:
    with pytest.raises((SpecError, StoreError)) as raised:
        find_reference(workspace, text)
    assert len(str(raised.value)) < 1000
    if "\0" not in text and text.isprintable():
        assert rashomon.run("show", text, code=2).stderr.count("\n") == 1


def test_a_damaged_bundle_is_refused(rashomon: Rashomon, workspace: Workspace) -> None:
    whole = (rashomon.home / "both.zip").read_bytes()
    (rashomon.home / "half.zip").write_bytes(whole[: len(whole) // 2])
    for text in ("half.zip", "half.zip:text-run", "published:half.zip:text-run"):
        with pytest.raises(StoreError):
            find_reference(workspace, text)
        rashomon.run("compare", "text-run", text, code=2)


@pytest.mark.parametrize("content", [b"", b"no bundle"])
@pytest.mark.parametrize("end", ["", ":text-run"])
def test_a_file_that_is_no_bundle_any_more_is_named(
    rashomon: Rashomon, workspace: Workspace, content: bytes, end: str
) -> None:
    (rashomon.home / "empty.rashomon.zip").write_bytes(content)
    with pytest.raises(StoreError, match=r"'empty\.rashomon\.zip' is .* damaged"):
        find_reference(workspace, f"empty.rashomon.zip{end}")


def test_a_model_without_a_run_is_named_apart_from_the_set(workspace: Workspace) -> None:
    with pytest.raises(SpecError, match="model 'other/model' on the set charts"):
        find_reference(workspace, "latest:other/model@CHARTS")
    with pytest.raises(SpecError, match="model 'other/model@nothing'"):
        find_reference(workspace, "latest:other/model@nothing")


def test_a_runs_name_is_not_taken_by_a_folder_or_file_beside_it(rashomon: Rashomon, workspace: Workspace) -> None:
    shutil.copytree(workspace.runs_folder / "image-run", rashomon.home / "text-run")
    assert run_folder(workspace, "text-run") == workspace.runs_folder / "text-run"
    assert run_folder(workspace, "./text-run") == rashomon.home / "text-run"
    shutil.copytree(workspace.runs_folder / "image-run", rashomon.home / "te")
    assert run_folder(workspace, "te") == rashomon.home / "te", (
        "a folder's whole name comes before the beginning of another"
    )


def test_a_hostile_name_of_a_received_run_stands_for_no_other(workspace: Workspace) -> None:
    for name in (f"latest:{TEXT}", "@charts", "published:Human"):
        shutil.copytree(workspace.runs_folder / "image-run", workspace.runs_folder / name)
    assert folder_name(workspace, f"latest:{TEXT}") == "text-run"
    assert isinstance(find_reference(workspace, "published:Human"), PublishedRow)
    path = workspace.runs_folder / "@charts"
    assert run_folder(workspace, str(path)) == path


def test_runs_that_begin_alike_are_listed_with_their_question_sets(workspace: Workspace) -> None:
    elsewhere = add_run(workspace, "text-old", created=1.0)
    with RunStore._connect(elsewhere) as store:
        store.set_meta("identity", {**store.meta("identity"), "data digest": "ab" * 32})
    seal(elsewhere)
    with pytest.raises(StoreError) as raised:
        run_folder(workspace, "text-")
    assert ", set charts@1), text-old (" in str(raised.value)
    assert ", data abababababab);" in str(raised.value)


def test_several_runs_of_a_bundle_that_begin_alike_are_listed(rashomon: Rashomon, workspace: Workspace) -> None:
    add_run(workspace, "text-run-2")
    rashomon.run("bundle", "text-run", "text-run-2", "--media", "none", "--out", "alike.zip")
    assert folder_name(workspace, "alike.zip:text-run") == "text-run"
    with pytest.raises(StoreError, match=r"alike\.zip:text-run, alike\.zip:text-run-2"):
        find_reference(workspace, "alike.zip:te")


def test_a_set_is_audited_as_its_build_unless_a_run_has_its_name(rashomon: Rashomon, workspace: Workspace) -> None:
    assert rashomon.json("audit", str(workspace.path / "sets" / "charts" / "1")) == rashomon.json("audit", "charts@1")
    assert rashomon.json("audit", "Charts") == rashomon.json("audit", "charts@1")
    assert "charts@1" in rashomon.run("audit", "charts@x", code=2).stderr
    rashomon.run("audit", "charts@2", code=2)
    add_run(workspace, "charts")
    assert rashomon.run("audit", "charts").stdout == rashomon.run("audit", "text-run").stdout


# --- latest:MODEL and @SET -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        *("pytorch:org/name", "openai:gpt-4o-2024-08-06", "endpoint:m@http://host:8000/v1", "cuda:org/name@fp32@cpu"),
        *("org/name", "org/name+/adapters/mine", "baseline:agree:org/name", "policy:always-text@charts", "charts"),
    ],
)
def test_a_models_name_may_have_colons_slashes_and_ats(workspace: Workspace, model: str) -> None:
    add_run(workspace, "newer", model=model)
    assert folder_name(workspace, f"latest:{model}") == "newer"
    assert folder_name(workspace, f"latest:{model}@charts") == "newer"
    assert folder_name(workspace, f"latest:{TEXT}") == "text-run"


def test_a_model_in_a_folder_is_named_by_its_last_part_unless_two_have_it(
    rashomon: Rashomon, workspace: Workspace
) -> None:
    (rashomon.home / "a" / "mine").mkdir(parents=True)
    add_run(workspace, "first", model=str(rashomon.home / "a" / "mine"))
    assert folder_name(workspace, "latest:mine") == folder_name(workspace, "latest:a/mine") == "first"
    add_run(workspace, "second", model="/b/mine")
    with pytest.raises(SpecError, match="2 models"):
        find_reference(workspace, "latest:mine")
    assert folder_name(workspace, "latest:a/mine") == "first"
    assert folder_name(workspace, "latest:/b/mine") == "second"


def test_the_newest_run_is_the_one_that_was_planned_last_and_has_answers(workspace: Workspace) -> None:
    add_run(workspace, "older", created=1000.0)
    assert folder_name(workspace, f"latest:{TEXT}") == "text-run"
    newer = add_run(workspace, "newer")
    assert folder_name(workspace, f"latest:{TEXT}") == "newer"
    with RunStore.open(workspace.runs_folder / "text-run") as store:
        store.set_meta("remarks", [])  # a later change makes no run newer
    assert folder_name(workspace, f"latest:{TEXT}") == "newer"
    with RunStore.open(newer) as store:
        store.repeat([])
    assert folder_name(workspace, f"latest:{TEXT}") == "text-run"


def test_answers_that_are_all_errors_are_answers(workspace: Workspace) -> None:
    """Otherwise a night on which every answer failed would be passed over for the one before."""
    folder = add_run(workspace, "failed")
    with RunStore.open(folder) as store:
        store.repeat([])
        store.use_engine({"engine": "policy", "model": TEXT})
        pending = next(iter(store.pending()))
        answer = Generation(f"{pending.instance.id}#0", "", "error", error="no")
        store.commit([NewAnswer(pending.ordinal, pending.instance.condition, 0, "x", answer, True)])
    assert folder_name(workspace, f"latest:{TEXT}") == "failed"


def test_a_run_from_the_future_is_as_old_as_its_last_change(workspace: Workspace) -> None:
    folder = add_run(workspace, "future", created=9e12)
    os.utime(folder / DATABASE, (1000.0, 1000.0))
    assert folder_name(workspace, f"latest:{TEXT}") == "text-run"


def test_the_database_has_the_last_word_on_the_model(workspace: Workspace) -> None:
    for name, text in (("forged", f'model = "{IMAGE}"\n'), ("broken", "["), ("missing", None)):
        spec = add_run(workspace, name) / "spec.toml"
        spec.unlink() if text is None else spec.write_text(text)
    assert stored_models(workspace) | {"broken": None, "missing": None} == stored_models(workspace)
    assert folder_name(workspace, f"latest:{IMAGE}") == "image-run"
    assert folder_name(workspace, f"latest:{TEXT}") == "missing"


@pytest.mark.parametrize("model", ["\0", "~nobody/x+y", "cuda:~nobody/x+~nobody/z", "+", "x" * 100_000, "imported:\n"])
def test_a_hostile_model_of_a_received_run_hides_no_other(workspace: Workspace, model: str) -> None:
    spec = add_run(workspace, "received") / "spec.toml"
    spec.write_text(tomli_w.dumps({"model": model}), "utf-8")
    assert folder_name(workspace, f"latest:{TEXT}") == "text-run"
    with pytest.raises((SpecError, StoreError)):
        find_reference(workspace, "latest:nothing")


def test_a_damaged_newest_run_is_not_passed_over_for_an_older_one(workspace: Workspace) -> None:
    damaged = add_run(workspace, "damaged", model=IMAGE)
    (damaged / DATABASE).write_bytes(b"garbage" * 400)
    with pytest.raises(StoreError, match="damaged"):
        find_reference(workspace, f"latest:{IMAGE}")
    assert folder_name(workspace, f"latest:{TEXT}") == "text-run"
    assert folder_name(workspace, "@charts") == "image-run"


def test_a_set_stands_for_the_run_of_the_model_in_use_as_in_try(rashomon: Rashomon, workspace: Workspace) -> None:
    rashomon.run("try", IMAGE, "--against", TEXT, code=6)
    assert folder_name(workspace, "@charts") == "text-run"
    rashomon.run("build", "cmc-bench", "--from", write_table(rashomon.home, 5, "charts", None))
    assert folder_name(workspace, "@charts") == "text-run", "the newest version that it has answered"
    rashomon.run("try", IMAGE, code=6)
    assert folder_name(workspace, "@charts").startswith("charts-2-policy-always-text")
    update_tried(rashomon.workspace / "sets" / "charts", lambda _: TriedModels(incumbent="org/never"))
    with pytest.raises(SpecError, match=r"org/never.*rashomon try"):
        find_reference(workspace, "@charts")


def test_a_set_may_be_named_like_a_run_or_a_model(rashomon: Rashomon, workspace: Workspace) -> None:
    rashomon.run("build", "cmc-bench", "--from", write_table(rashomon.home, 5, "other", None), "--name", "text-run")
    assert folder_name(workspace, "text-run") == "text-run"
    with pytest.raises(SpecError, match="set text-run"):
        find_reference(workspace, "@text-run")
    with pytest.raises(SpecError, match="set text-run"):
        find_reference(workspace, f"latest:{TEXT}@text-run")


def test_held_out_rows_never_stand_for_a_set(workspace: Workspace) -> None:
    add_run(workspace, "opened", part="final")
    assert folder_name(workspace, f"latest:{TEXT}@charts") == "text-run"
    assert folder_name(workspace, "@charts") == "image-run"


def test_only_what_can_be_the_newest_is_opened(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest of thousands of runs takes a second or two (opening one takes most of a millisecond)."""
    for number in range(40):
        folder = workspace.runs_folder / f"night-{number}"
        shutil.copytree(workspace.runs_folder / "text-run", folder)
        os.utime(folder / DATABASE, (1e9 + number * 86400, 1e9 + number * 86400))
    opened: list[str] = []
    read = RunStore.read

    def note(folder: Path) -> RunStore:
        opened.append(folder.name)
        return read(folder)

    monkeypatch.setattr(RunStore, "read", note)
    shutil.rmtree(workspace.runs_folder / "text-run")
    assert folder_name(workspace, f"latest:{TEXT}") == "night-39"
    assert folder_name(workspace, f"latest:{TEXT}@charts") == "night-39"
    assert len(opened) <= 4
    opened.clear()
    with pytest.raises(SpecError):
        find_reference(workspace, "latest:nothing")
    assert not opened


# --- commands ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        ("judge", "--judge", "match"),
        ("resume",),
        ("label", "--as", "ann"),
        ("override", "x", "TEXT", "--as", "ann", "--reason", "so"),
    ],
)
@pytest.mark.parametrize("text", ["both.zip:text-run", "published:Qwen3-VL-4B", "published:both.zip:text-run"])
def test_commands_that_change_a_run_refuse_what_they_cannot_change(
    rashomon: Rashomon, command: tuple[str, ...], text: str
) -> None:
    name, *options = command
    stderr = rashomon.run(name, text, *options, code=2).stderr
    assert stderr.count("\n") == 1
    if not text.startswith("published:"):
        assert f"rashomon adopt {rashomon.home / text}" in stderr


@pytest.mark.parametrize(
    "command", ["show", "recommend", "report", "export", "cite", "audit", "bundle", "baselines", "doctor", "adopt"]
)
def test_commands_that_take_no_row_say_so(rashomon: Rashomon, command: str) -> None:
    assert "published:Human" in rashomon.run(command, "published:Human", code=2).stderr


@pytest.mark.slow
@pytest.mark.parametrize("run", [f"latest:{TEXT}", f"latest:{TEXT}@charts", "@charts", "both.zip:text-run"])
@pytest.mark.parametrize(
    "command",
    [
        ("show",),
        ("compare", "./workspace/runs/image-run", "--baseline"),
        ("recommend", "text-run"),
        ("cite",),
        ("audit",),
        ("doctor",),
        ("parity", "text-run", "--probe", "0"),
    ],
)
def test_every_command_that_reads_a_run_takes_every_form(
    rashomon: Rashomon, workspace: Workspace, command: tuple[str, ...], run: str
) -> None:
    if command[0] == "compare" and run == "@charts":
        run = f"latest:{TEXT}"  # @charts is the run that it is compared with
    if command[0] in ("recommend", "parity") and TEXT in run:
        run = f"latest:{IMAGE}"  # beside itself no run is compared
    rashomon.run(*command, run)


@pytest.mark.parametrize("run", ["te", "both.zip:te"])
def test_a_gate_takes_no_beginning_of_a_name(rashomon: Rashomon, run: str) -> None:
    """Once ``text`` is deleted, ``text-run`` would stand for it."""
    for command in (
        ("check", "image-run", "--baseline", run),
        ("check", run, "--baseline", "image-run"),
        ("compare", "image-run", "text-run", "--baseline", run),
    ):
        assert "text-run" in rashomon.run(*command, code=2).stderr
    rashomon.run("show", run)


def test_parity_takes_a_bundles_run_and_a_row(rashomon: Rashomon) -> None:
    alone = rashomon.run("parity", "image-run", "text-run", "--probe", "0").stdout
    assert (
        rashomon.run("parity", "image-run", "both.zip:te", "--probe", "0").stdout.split("\n")[0].split()[:3]
        == (alone.split("\n")[0].split()[:3])
    )
    rashomon.run("parity", "text-run", "published:both.zip:image-run", "--probe", "0", code=2)
    rashomon.run("parity", "--model", TEXT, "text-run", code=2)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(text=st.data())
def test_any_text_gives_a_reference_or_one_sentence(workspace: Workspace, text: st.DataObject) -> None:
    pieces = st.sampled_from(
        [
            *("latest:", "published:", "@", ":", "/", ".", "..", "~", "both.zip", "single.zip", "text-run", "charts"),
            *(TEXT, "workspace/runs/", "+", "\0", "\ud800", "", " "),
        ]
    )
    written = "".join(text.draw(st.lists(st.one_of(pieces, st.text(max_size=8)), max_size=6)))
    with suppress(SpecError, StoreError):
        reference = find_reference(workspace, written)
        assert isinstance(reference, PublishedRow) or (reference.folder / DATABASE).is_file()


def test_the_api_takes_every_form(workspace: Workspace) -> None:
    import rashomon as api

    assert api.Workspace(workspace.path).run("@charts").name == "image-run"


def test_a_changeable_run_is_one_of_the_workspace(workspace: Workspace) -> None:
    assert changeable_run(workspace, f"latest:{TEXT}") == workspace.runs_folder / "text-run"
    with pytest.raises(RashomonError):
        changeable_run(workspace, "single.zip")
