"""`rashomon push` against a Hub on loopback: what it shows is what it sends, and nothing leaves unasked."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow import parquet

from app.commands.sharing.push_command import push_runs
from app.fetch.hub_upload import UploadError, repository_name
from app.store.workspace import Workspace
from benchmarks.errors import SpecError
from tests.support.command import Rashomon
from tests.support.front_matter import front_matter
from tests.support.json_output import json_result, named
from tests.support.recording_proxy import RecordingProxy
from tests.support.runs import instances, make_run, says
from tests.support.upload_hub import TOKEN, UploadHub

NAME = "me/results"
FILES = {"README.md", "data/samples.parquet", "results.json", "citation.bib"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    workspace = Workspace(tmp_path_factory.mktemp("pushed") / "workspace")
    make_run(workspace, "mine", instances(2), says("12"), model="org/small-4bit")
    make_run(workspace, "hostile", instances(1), says("12"), model='x"\n---\nlicense: mit\u202e{[')
    return workspace


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[UploadHub]:
    with UploadHub().running() as running:
        for name, value in (("ENDPOINT", running.url), ("HF_HUB_OFFLINE", False), ("HF_HUB_DISABLE_XET", True)):
            monkeypatch.setattr(f"huggingface_hub.constants.{name}", value)
        monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield running


def push(made: Workspace, *runs: str, public: bool = False, yes: bool = True) -> None:
    push_runs(made, runs or ("mine",), f"hub:{NAME}", public=public, yes=yes)


@pytest.mark.slow
@pytest.mark.parametrize("large", [False, True])
def test_records_and_a_card_are_sent_to_a_private_data_set(made: Workspace, hub: UploadHub, large: bool) -> None:
    hub.large = large
    push(made)
    assert hub.private == {NAME: True}
    assert set(hub.files[NAME]) == FILES
    table = parquet.read_table(io.BytesIO(hub.files[NAME]["data/samples.parquet"]))
    assert table.num_rows == 12
    assert {"id", "condition", "prompt", "answer", "label", "run", "model"} <= set(table.column_names)
    card = hub.files[NAME]["README.md"].decode()
    assert front_matter(card)["configs"][0]["data_files"] == [{"split": "test", "path": "data/samples.parquet"}]
    assert "| org/small-4bit |" in card.replace("\\", "")
    results = json_result(hub.files[NAME]["results.json"].decode())
    assert named(results["runs"][0]["identity"])["quantisation"] == "4-bit"
    assert hub.tokens == {f"Bearer {TOKEN}"}


def test_a_hub_on_this_machine_is_not_reached_through_a_proxy(
    made: Workspace, hub: UploadHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    with RecordingProxy() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        push(made)
    assert proxy.carried == []
    assert set(hub.files[NAME]) == FILES


def test_what_is_shown_is_what_is_sent(made: Workspace, hub: UploadHub, capsys: pytest.CaptureFixture[str]) -> None:
    push(made)
    shown = capsys.readouterr().out
    assert all(name in shown for name in FILES)
    assert "12 rows" in shown
    assert "private" in shown
    assert "licence of data" in shown
    assert "licence of model org/small-4bit: not stored" in shown
    assert TOKEN not in shown


def test_nothing_is_sent_without_consent(made: Workspace, hub: UploadHub) -> None:
    with pytest.raises(SpecError):
        push(made, yes=False)
    assert hub.asked == []


def test_a_public_data_set_is_written_only_if_that_is_said(made: Workspace, hub: UploadHub) -> None:
    hub.private[NAME], hub.files[NAME] = False, {}
    with pytest.raises(UploadError):
        push(made)
    assert hub.files[NAME] == {}
    assert not any("commit" in path or "validate" in path for _, path in hub.asked)
    push(made, public=True)
    assert set(hub.files[NAME]) == FILES


def test_a_hub_that_makes_it_public_anyway_gets_no_file(made: Workspace, hub: UploadHub) -> None:
    hub.always_public = True
    with pytest.raises(UploadError):
        push(made)
    assert hub.files[NAME] == {}


def test_pushing_again_replaces_the_files(made: Workspace, hub: UploadHub) -> None:
    push(made)
    push(made, "hostile")
    assert parquet.read_table(io.BytesIO(hub.files[NAME]["data/samples.parquet"])).num_rows == 6


def test_hostile_names_do_not_change_the_front_matter(made: Workspace, hub: UploadHub) -> None:
    push(made, "hostile")
    data = front_matter(hub.files[NAME]["README.md"].decode())
    assert set(data) == {"pretty_name", "tags", "configs"}
    assert "\n" not in data["pretty_name"]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 500])
@pytest.mark.parametrize("end", ["/api/repos/create", f"/api/datasets/{NAME}", "/commit/main"])
def test_refusals_are_one_sentence(made: Workspace, hub: UploadHub, status: int, end: str) -> None:
    hub.refuse[end] = status
    with pytest.raises(UploadError) as refusal:
        push(made)
    assert refusal.value.exit_code == 3
    assert len(str(refusal.value).splitlines()) == 1
    assert TOKEN not in str(refusal.value)
    assert not hub.files.get(NAME)


@pytest.mark.parametrize("end", ["/api/repos/create", f"/api/datasets/{NAME}", "/commit/main", "/preupload/main"])
def test_a_portals_page_in_place_of_json_is_one_sentence(made: Workspace, hub: UploadHub, end: str) -> None:
    hub.garbage.add(end)
    with pytest.raises(UploadError):
        push(made)
    assert not hub.files.get(NAME)


def test_a_wrong_token_is_refused_and_not_printed(
    made: Workspace, hub: UploadHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    with pytest.raises(UploadError) as refusal:
        push(made)
    assert "hf_wrong" not in str(refusal.value)


def test_without_a_token_nothing_is_asked_of_the_hub(
    made: Workspace, hub: UploadHub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "none"))
    with pytest.raises(UploadError):
        push(made)
    assert hub.asked == []


def test_offline_and_without_a_network_it_is_one_sentence(
    made: Workspace, hub: UploadHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(UploadError):
        push(made)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(UploadError):
        push(made)


@pytest.mark.parametrize(
    "target", ["me/results", "hub:results", "hub:a/b/c", "hub:../x", "hub:a/..", "hub:", "hub:a/b c"]
)
def test_other_targets_are_refused(target: str) -> None:
    with pytest.raises(SpecError):
        repository_name(target)


def test_a_dry_run_shows_what_would_be_sent_without_login_network_or_files(made: Workspace, tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path, variables={"RASHOMON_WORKSPACE": str(made.path), "HF_ENDPOINT": "http://127.0.0.1:9"})
    for extra in ((), ("--public", "--yes"), ("--out", "look")):
        stdout = rashomon.run("push", "mine", f"hub:{NAME}", "--dry-run", *extra).stdout
        assert all(text in stdout for text in (NAME, *FILES, "licence of", "nothing was sent"))
        assert ("public" if "--public" in extra else "private") in stdout
    assert not (tmp_path / "look").exists()
    rashomon.run("push", "nothing", f"hub:{NAME}", "--dry-run", code=2)
    rashomon.run("push", "mine", "hub:nothing", "--dry-run", code=2)


def test_the_files_can_be_written_to_look_at(made: Workspace, tmp_path: Path) -> None:
    shutil.copytree(made.path, tmp_path / "workspace")
    rashomon = Rashomon(tmp_path)
    rashomon.run("push", "mine", f"hub:{NAME}", "--out", "look")
    written = {
        path.relative_to(tmp_path / "look").as_posix() for path in (tmp_path / "look").rglob("*") if path.is_file()
    }
    assert written == FILES
    assert str(tmp_path).encode() not in b"".join(path.read_bytes() for path in (tmp_path / "look").rglob("*.*"))


@pytest.mark.slow
def test_the_command_sends_to_the_hub_of_the_environment(made: Workspace, tmp_path: Path) -> None:
    shutil.copytree(made.path, tmp_path / "workspace")
    with UploadHub().running() as hub:
        variables = {"HF_ENDPOINT": hub.url, "HF_HUB_OFFLINE": "0", "HF_TOKEN": TOKEN, "NO_PROXY": "*"}
        rashomon = Rashomon(tmp_path, variables=variables)
        assert "private" in rashomon.run("push", "mine", f"hub:{NAME}", code=2).stdout
        assert hub.asked == []
        done = rashomon.run("push", "mine", f"hub:{NAME}", "--yes")
        assert set(hub.files[NAME]) == FILES
        assert TOKEN not in done.stdout + done.stderr
        hub.refuse["/commit/main"] = 403
        assert len(rashomon.run("push", "mine", f"hub:{NAME}", "--yes", code=3).stderr.splitlines()) == 1
