"""Replies that no Hub sends: one sentence and an exit code, nothing outside, nothing half in place, no token elsewhere."""

from __future__ import annotations

import hashlib
import random
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.fetch import benchmark_downloads, fetch_plan
from app.main import main
from app.store.workspace import Workspace
from benchmarks.fetch import file_download, hub_library, hub_repository
from benchmarks.fetch.hub_repository import repository
from tests.support.odd_hub import FILES, NAME, PUSH_STEPS, READ_STEPS, REVISION, TOKEN, OddHub, Reply
from tests.support.runs import instances, make_run, says

FAST, ALL = 8, 200
SECONDS = 20.0


@pytest.fixture
def odd(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[OddHub]:
    """The server, with a user of it whose patience is short, so that a server that stalls costs seconds."""
    patience = file_download.Timeouts(silence=0.5, wait=0.01, patience=1.0)
    monkeypatch.setattr(file_download, "Timeouts", lambda: patience)
    monkeypatch.setattr(fetch_plan, "Timeouts", lambda: patience)
    monkeypatch.setattr(fetch_plan, "_SIZE_SECONDS", 0.5)
    monkeypatch.setattr(hub_repository, "LISTING_SECONDS", 2.0)
    monkeypatch.setattr(hub_library, "_SECONDS", 1.0)
    monkeypatch.setattr(hub_library, "_PATIENCE", 1.0)
    sleep = time.sleep
    monkeypatch.setattr(time, "sleep", lambda seconds: sleep(min(seconds, 0.3)))
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_HUB_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("RASHOMON_WORKSPACE", str(tmp_path / "workspace"))
    with OddHub().running() as running:
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", running.url)
        yield running


@pytest.fixture
def pushed(tmp_path: Path) -> None:
    make_run(Workspace(tmp_path / "workspace"), "mine", instances(2), says("12"), model="org/small-4bit")


def needed(folder: Path, read: benchmark_downloads.Read) -> benchmark_downloads.RequiredFiles:
    return benchmark_downloads._of_hub(
        ((repository(NAME, "dataset", lambda name: not name.startswith(".")), folder, "none"),)
    )


COMMANDS = {
    "models": ("models", "get", NAME, "--yes", "--force"),
    "data": ("data", "get", "mmkc-bench", "--yes"),
    "push": ("push", "mine", f"hub:{NAME}", "--yes"),
}


def run(command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    """Run a command; return its exit code and its sentence, which is the only one and comes in time."""
    monkeypatch.setitem(
        benchmark_downloads.RECIPES, "mmkc-bench", replace(benchmark_downloads.RECIPES["mmkc-bench"], needed=needed)
    )
    start = time.monotonic()
    code = 0
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        main(list(COMMANDS[command]))
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    assert time.monotonic() - start < SECONDS
    stderr = capsys.readouterr().err
    sentences = [line for line in stderr.splitlines() if line.startswith("rashomon: ")]
    assert "Traceback" not in stderr, stderr[-1500:]
    assert TOKEN not in stderr
    assert stderr.replace("\n", "").replace("\r", "").isprintable()
    assert len(sentences) == (code != 0), stderr
    return code, "".join(sentences)


def check_disk(tmp_path: Path, code: int, sentence: str) -> None:
    """Check that everything lies where it belongs, and that it is whole if the command says so, or else not in use."""
    assert {path.name for path in tmp_path.iterdir()} <= {"home", "workspace"}
    assert not Path("/tmp/PWNED").exists()
    for path in tmp_path.rglob("*"):
        assert path.resolve().is_relative_to(tmp_path.resolve())
    snapshots = list((tmp_path / "home").rglob("refs/main"))
    manifests = list((tmp_path / "workspace").rglob(".fetched.json"))
    if code == 0:
        for file in [*(tmp_path / "home").rglob("snapshots/*/*"), *(tmp_path / "workspace" / "sources").rglob("[!.]*")]:
            if file.is_file():
                assert file.read_bytes() in FILES.values()
    else:
        assert not manifests
        assert not snapshots or "was fetched, and its repository" in sentence


@pytest.mark.parametrize("command", COMMANDS)
def test_a_right_hub_is_read_and_written(
    command: str,
    odd: OddHub,
    pushed: None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert run(command, capsys, monkeypatch)[0] == 0
    assert not any("agent-harnesses" in path for path in odd.paths)
    steps = {"models": 4, "data": 5, "push": 7}  # files that are needed; steps of a push
    assert len([path for path in odd.paths if command == "push" or "/resolve/" in path]) >= steps[command]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("seed", [*range(FAST), *(pytest.param(n, marks=pytest.mark.slow) for n in range(FAST, ALL))])
def test_a_changed_reply_is_one_sentence(
    command: str, seed: int, odd: OddHub, pushed: None, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    change = odd.mutate(seed, PUSH_STEPS if command == "push" else READ_STEPS)
    code, sentence = run(command, capsys, monkeypatch)
    print(f"{command} {seed} {change}: {code} {sentence}")
    assert code in (0, 2, 3)
    assert not odd.foreign_authorizations
    check_disk(tmp_path, code, sentence)


@pytest.mark.parametrize("command", ["models", "data"])
@pytest.mark.parametrize(
    "twins",
    [
        {"A.json": b"1", "a.json": b"2"},
        {"\u00e9.json": b"1", "e\u0301.json": b"2"},
        {"x.json": b"1", "x.json/y.json": b"2"},
        {"sub/x.json": b"1", "SUB/x.json": b"2"},
    ],
)
def test_names_that_a_disk_may_not_tell_apart_are_refused(
    command: str, twins: dict[str, bytes], odd: OddHub, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    odd.names = {**FILES, **twins}
    code, sentence = run(command, capsys, monkeypatch)
    assert (code, "lists two files for" in sentence) == (3, True)
    assert not any("/resolve/" in path for path in odd.paths)


@pytest.mark.parametrize("step", READ_STEPS)
def test_neither_a_redirection_nor_a_next_page_takes_the_token_to_another_host(
    step: str, odd: OddHub, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def elsewhere(reply: Reply, here: str, chance: random.Random) -> None:
        if step == "tree":
            reply.headers.append(("Link", '<{there}/api/x>; rel="next"'))
        else:
            reply.status, reply.headers = 307, [("Location", "{there}/x")]

    odd.step, odd.change = step, elsewhere
    assert run("models", capsys, monkeypatch)[0] == 3
    assert odd.foreign_authorizations == []


def test_pages_are_followed_and_a_loop_of_them_ends(
    odd: OddHub, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pages: list[str] = []

    def next_page(reply: Reply, here: str, chance: random.Random) -> None:
        pages.append(here)
        if len(pages) < 3:
            reply.body = b"[]"
            reply.headers.append(("Link", f'</api/models/{NAME}/tree/{REVISION}?page={len(pages)}>; rel="next"'))

    odd.step, odd.change = "tree", next_page
    assert run("models", capsys, monkeypatch)[0] == 0
    assert len(pages) == 3

    def endless(reply: Reply, here: str, chance: random.Random) -> None:
        pages.append(here)
        reply.headers.append(("Link", f'</api/models/{NAME}/tree/{REVISION}?page={len(pages)}>; rel="next"'))

    odd.change = endless
    monkeypatch.setattr(hub_repository, "MAX_PAGES", 5)
    code, sentence = run("models", capsys, monkeypatch)
    assert (code, "its pages do not end" in sentence) == (3, True)


@pytest.mark.parametrize("bound", ["MAX_FILES", "MAX_ENTRIES"])
def test_a_listing_that_is_too_long_is_refused(
    bound: str, odd: OddHub, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_repository, bound, len(FILES) - 1)
    assert run("models", capsys, monkeypatch)[0] == 3
    monkeypatch.setattr(hub_repository, bound, len(FILES))
    assert run("models", capsys, monkeypatch)[0] == 0


def test_a_fetched_model_is_laid_out_as_the_hubs_library_reads_it(
    odd: OddHub, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import snapshot_download

    assert run("models", capsys, monkeypatch)[0] == 0
    folder = Path(snapshot_download(NAME, cache_dir=tmp_path / "home" / "hub", local_files_only=True))
    assert folder.name == REVISION
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert names == set(FILES)
    blob = (folder / "data" / "rows.json").resolve()
    assert blob.name == hashlib.sha1(b"blob 2\0[]", usedforsecurity=False).hexdigest()


def test_a_data_set_is_private_only_where_the_hub_says_so_in_its_own_words(
    odd: OddHub, pushed: None, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def text(reply: Reply, here: str, chance: random.Random) -> None:
        reply.body = b'{"private": "false"}'

    odd.step, odd.change = "info", text
    assert run("push", capsys, monkeypatch)[0] == 3
    assert not any("commit" in path or "blob" in path for path in odd.paths)
