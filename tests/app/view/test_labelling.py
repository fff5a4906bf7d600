"""Labels and overrides that are given on the page: those of the terminal, blind, undone, and never on another answer."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from app.commands.people.label_command import LabelArguments, label
from app.commands.people.override_command import override
from app.store.bundles.bundle_layout_and_limits import MANIFEST
from app.store.integrity import run_ownership
from app.store.run_store import RunStore
from app.store.store_types import NewAnswer
from app.store.workspace import Workspace
from app.view.contents.page_labelling import Labelling, ReadOnlyError
from app.view.contents.page_types import LabellingProgress
from app.view.served.labelling_routes import routes
from benchmarks.errors import SpecError, StoreError
from benchmarks.vocabulary import Generation, Record, Verdict
from judges.human_labels_and_samples import blind_id
from tests.app.engine.test_judge_faults import make_run

ANN = "human:ann@1"
JUDGE = "match@4"
SECRETS = ("secret-model", "aligned", "image-correct", "text-correct", "both-wrong", "example-", "imported:", "match@")
HOSTILE = '</script><img src=x onerror=alert(1)>\x1b]0;t\x07\u202egnp\u200b\udc80 {{7*7}} "; DROP TABLE verdict; --'


def make(home: Path, count: int = 24, name: str = "secret-model") -> Path:
    """A finished run, whose judge left every sixth answer undecided."""
    workspace = Workspace(home)
    folder = make_run(workspace, count, lambda n: f"It is {1950 + n % 50}." if n % 3 else f"Hm, {n}.")
    folder = folder.rename(folder.with_name(name))
    with RunStore.open(folder) as store:
        verdicts = []
        for number, record in enumerate(store.records()):
            answer = store.answer_of(record.instance.id)
            assert answer is not None
            outcome = ("undecided", None) if number % 6 == 5 else ("labelled", "IMAGE")
            verdicts.append((*answer, Verdict(JUDGE, outcome[0], outcome[1], "as it says")))  # type: ignore[arg-type]
        store.add_verdicts(verdicts)
        store.set_meta("spec", {**store.meta("spec"), "judge": [JUDGE]})
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make(tmp_path / "workspace")


def on_page(*folders: Path) -> Labelling:
    """The labelling of a page with these runs, on which instances have the numbers of the first run's order."""
    ids = [record.instance.id for record in records(folders[0])]

    def instance_id(number: int) -> str:
        if not 0 <= number < len(ids):
            raise SpecError(f"there is no instance {number}.")
        return ids[number]

    return Labelling(folders, instance_id)


def records(folder: Path) -> list[Record]:
    with RunStore.read(folder) as store:
        return list(store.records())


def labels_of(folder: Path, judge: str = ANN) -> dict[str, str | None]:
    return {r.instance.id: r.verdicts[judge].label for r in records(folder) if judge in r.verdicts}


def rows_of(folder: Path) -> list[Any]:
    """All verdicts of the store, also those set aside, but for their time."""
    with sqlite3.connect(folder / "run.sqlite") as database:
        database.row_factory = sqlite3.Row
        return [
            {key: row[key] for key in row.keys() if key not in ("judged_at", "digest")}  # noqa: SIM118
            for row in database.execute("SELECT * FROM verdict ORDER BY id")
        ]


def current(progress: LabellingProgress) -> str:
    return "" if progress.item is None else progress.item.id


def give_all(labelling: Labelling, choices: Iterable[str | None]) -> LabellingProgress:
    progress = labelling.begin(0, "ann")
    for choice in choices:
        progress = labelling.give(0, "ann", current(progress), choice)
    return progress


def type_words(folder: Path, words: Sequence[str]) -> None:
    """Label in the terminal."""
    typed = iter(words)
    workspace = Workspace(folder.parent.parent)
    label(workspace, folder.name, LabelArguments(annotator="ann"), ask=lambda _: next(typed, "q"))


# --- as in the terminal --------------------------------------------------------------------------


def test_the_page_stores_what_the_terminal_stores(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder.parent.parent, tmp_path / "other")
    other = tmp_path / "other" / "runs" / folder.name
    type_words(other, ["1", "5", "s", "u", "u", "3", "n", "2", "s"])
    labelling = on_page(folder)
    progress = give_all(labelling, ["IMAGE", "ABSTAIN", None])
    assert progress.summary == f"2 labelled, 1 skipped, of {progress.total}"
    for _ in range(2):
        progress = labelling.undo(0, "ann", current(progress))
    assert progress.summary == f"1 of {progress.total} labelled"
    progress = labelling.give(0, "ann", current(progress), "BOTH")
    assert progress.undecided
    progress = labelling.skip_undecided(0, "ann", current(progress))
    assert not progress.undecided
    progress = labelling.give(0, "ann", current(progress), "TEXT")
    labelling.give(0, "ann", current(progress), None)
    assert rows_of(folder) == rows_of(other)
    assert len(labels_of(folder)) == 4
    with RunStore.read(folder) as ours, RunStore.read(other) as theirs:
        assert ours.meta(f"labelling {ANN}") == theirs.meta(f"labelling {ANN}")
        assert ours.progress() == theirs.progress()


def test_a_session_begun_on_the_page_goes_on_in_the_terminal_and_back(folder: Path) -> None:
    labelling = on_page(folder)
    progress = give_all(labelling, ["IMAGE"] * 3)
    labelling.end(0, "ann")
    type_words(folder, ["2"] * 2)
    progress = labelling.begin(0, "ann")
    assert progress.count == 5
    assert sorted(map(str, labels_of(folder).values())) == ["IMAGE"] * 3 + ["TEXT"] * 2
    progress = give_all(labelling, ["NEITHER"] * (progress.total - 5))
    assert progress.item is None
    assert (progress.count, progress.position) == (progress.total, progress.total)
    with pytest.raises(StoreError, match="the whole sample is labelled"):
        labelling.give(0, "ann", "", "IMAGE")


def test_undo_restores_the_answer_and_asks_about_labels_of_earlier_sessions(folder: Path) -> None:
    give_all(on_page(folder), ["IMAGE"])
    labelling = on_page(folder)  # a server started later
    progress = labelling.begin(0, "ann")
    second = current(progress)
    progress = labelling.give(0, "ann", second, "TEXT")
    progress = labelling.undo(0, "ann", current(progress))
    assert (current(progress), progress.confirm) == (second, "")
    progress = labelling.undo(0, "ann", second)
    assert "from an earlier session" in progress.confirm
    assert len(labels_of(folder)) == 1
    progress = labelling.undo(0, "ann", second, confirmed=True)
    assert (current(progress) != second, labels_of(folder)) == (True, {})
    assert labelling.undo(0, "ann", current(progress)).message == "nothing to undo"


def test_every_answer_is_displayed_without_what_it_is_of(folder: Path) -> None:
    labelling = on_page(folder)
    progress = labelling.begin(0, "ann")
    undecided = 0
    while progress.item is not None:
        undecided += progress.undecided
        text = json.dumps(asdict(progress))
        assert not [secret for secret in SECRETS if secret in text]
        assert {heading for heading, _ in progress.item.references} == {"image says", "text says"}
        progress = labelling.give(0, "ann", progress.item.id, "IMAGE")
    assert undecided == 4


# --- what is refused -----------------------------------------------------------------------------


def answer_again(folder: Path) -> None:
    with RunStore.open(folder) as store:
        store.repeat(["aligned", "image-correct", "text-correct", "both-wrong"])
        store.use_engine({})
        pending = list(store.pending())
        answers = [(p, Generation(f"{p.instance.id}#0", "new", "stop")) for p in pending]
        store.commit([NewAnswer(p.ordinal, p.instance.condition, 0, "", g, True) for p, g in answers])


def test_a_label_never_ends_up_on_an_answer_that_was_not_displayed(folder: Path) -> None:
    labelling = on_page(folder)
    progress = labelling.begin(0, "ann")
    first = current(progress)
    labelling.give(0, "ann", first, "IMAGE")
    with pytest.raises(StoreError, match="another answer is current"):
        labelling.give(0, "ann", first, "TEXT")  # a click that was queued
    with pytest.raises(StoreError, match="another answer is current"):
        labelling.undo(0, "ann", first)
    second = current(labelling.begin(0, "ann"))
    answer_again(folder)
    with pytest.raises(StoreError, match=r"^the answers have changed in the meantime"):
        labelling.give(0, "ann", second, "TEXT")
    assert labels_of(folder) == {}, "the label was of an answer that is set aside"
    assert current(labelling.begin(0, "ann")) != second


def test_two_pages_label_each_answer_once(folder: Path) -> None:
    labelling = on_page(folder)
    total = labelling.begin(0, "ann").total

    def page(choice: str) -> int:
        progress, saved = labelling.begin(0, "ann"), 0
        while progress.item is not None:
            try:
                progress = labelling.give(0, "ann", progress.item.id, choice)
                saved += 1
            except StoreError:
                progress = labelling.begin(0, "ann")
        return saved

    with ThreadPoolExecutor() as pool:
        saved = list(pool.map(page, ["IMAGE", "TEXT"]))
    assert sum(saved) == total == len(labels_of(folder))
    assert all(row["accepted"] for row in rows_of(folder)), "no label replaced another one"


def test_a_label_that_was_given_elsewhere_meanwhile_stays(folder: Path) -> None:
    labelling = on_page(folder)
    progress = labelling.begin(0, "ann")
    type_words(folder, ["1"])
    with pytest.raises(StoreError, match="labelled elsewhere"):
        labelling.give(0, "ann", current(progress), "TEXT")
    assert list(labels_of(folder).values()) == ["IMAGE"]
    assert labelling.begin(0, "ann").count == 1


def test_runs_that_take_no_labels_are_refused_without_their_names(folder: Path) -> None:
    labelling = on_page(folder)
    with RunStore.open(folder) as store:
        store.repeat(["aligned"])
    with pytest.raises(SpecError, match=r"^this run has 18 of 24 answers; finish it first"):
        labelling.begin(0, "ann")
    (folder.parent.parent / MANIFEST).write_text("")
    with pytest.raises(ReadOnlyError, match="bundle"):
        labelling.begin(0, "ann")
    (folder.parent.parent / MANIFEST).unlink()
    with RunStore._connect(folder) as store:
        store.set_meta(run_ownership.SEAL, "0" * 64)
    with pytest.raises(ReadOnlyError, match="not made on this machine") as refused:
        labelling.begin(0, "ann")
    shutil.rmtree(folder)
    with pytest.raises(StoreError) as missing:
        labelling.override(0, 0, "", "IMAGE", "because", "ann")
    assert not [error for error in (refused, missing) if folder.name in str(error.value)]


@pytest.mark.slow
def test_what_was_saved_survives_the_end_of_the_server(tmp_path: Path) -> None:
    folder = make(tmp_path / "workspace", count=400)
    script = (
        "import sys; from pathlib import Path; from tests.app.view.test_labelling import on_page\n"
        "labelling = on_page(Path(sys.argv[1])); progress = labelling.begin(0, 'ann')\n"
        "while progress.item:\n"
        "    progress = labelling.give(0, 'ann', progress.item.id, 'TEXT'); print(progress.count, flush=True)\n"
    )
    for _ in range(3):
        with subprocess.Popen([sys.executable, "-c", script, folder], stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            counts = [int(server.stdout.readline()) for _ in range(7)]
            server.kill()
            counts += [int(line) for line in server.stdout]
        saved = len(labels_of(folder))
        assert saved in (counts[-1], counts[-1] + 1), "at most the label that nobody was told of is more"
        assert on_page(folder).begin(0, "ann").count == saved


def test_a_run_that_another_process_writes_to_is_busy(
    folder: Path, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {"run": 0, "name": "ann"}
    item = client.post("/api/labelling/begin", json=body).json()["item"]["id"]
    connect = sqlite3.connect

    def impatient(*args: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*args, **{**options, "timeout": 0.1})
        return connection

    monkeypatch.setattr(sqlite3, "connect", impatient)
    with connect(folder / "run.sqlite", isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        reply = client.post("/api/labelling/give", json={**body, "item": item, "label": "TEXT"})
        other.execute("ROLLBACK")
    assert (reply.status_code, labels_of(folder)) == (409, {})
    assert reply.text == "this run is in use by another process; try again later."
    assert client.post("/api/labelling/begin", json=body).json()["item"]["id"] == item
    assert client.post("/api/labelling/give", json={**body, "item": item, "label": "TEXT"}).status_code == 200


# --- overrides -----------------------------------------------------------------------------------


def test_an_override_is_stored_as_by_the_command_and_undone_to_the_one_before(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder.parent.parent, tmp_path / "other")
    other = tmp_path / "other" / "runs" / folder.name
    record = records(folder)[3]
    for choice, reason in (("TEXT", " it says so "), ("BOTH", "both")):
        override(
            Workspace(tmp_path / "other"),
            other.name,
            record.instance.id,
            choice,
            person="ann",
            reason=reason,
            undo=False,
        )
    labelling = on_page(folder)
    for choice, reason in (("TEXT", " it says so "), ("BOTH", "both")):
        labelling.override(0, 3, blind_id(record), choice, reason, "ann")
    assert rows_of(folder) == rows_of(other)
    judge = "override:ann@1"
    assert labels_of(folder, judge) == {record.instance.id: "BOTH"}
    labelling.undo_override(0, 3, "ann")
    assert labels_of(folder, judge) == {record.instance.id: "TEXT"}
    later = on_page(folder)
    assert "TEXT by ann, from an earlier session: it says so" in later.undo_override(0, 3, "ann").confirm
    later.undo_override(0, 3, "ann", confirmed=True)
    assert labels_of(folder, judge) == {}
    with pytest.raises(SpecError, match="no override by ann"):
        labelling.undo_override(0, 3, "ann")
    with pytest.raises(SpecError, match="no override by ann"):
        labelling.undo_override(0, 3, "ann")
    assert records(folder)[3].verdicts[JUDGE] == record.verdicts[JUDGE]


def test_an_override_is_of_the_answer_that_was_displayed(folder: Path) -> None:
    record = records(folder)[0]
    answer_again(folder)
    with pytest.raises(StoreError, match="has changed in the meantime"):
        on_page(folder).override(0, 0, blind_id(record), "TEXT", "because", "ann")
    assert labels_of(folder, "override:ann@1") == {}


# --- over HTTP -----------------------------------------------------------------------------------


@pytest.fixture
def client(folder: Path) -> TestClient:
    return TestClient(Starlette(routes=routes(on_page(folder))))


def test_a_session_over_http(folder: Path, client: TestClient) -> None:
    name = client.get("/api/labelling").json()["annotator"]
    progress = client.post("/api/labelling/begin", json={"run": 0, "name": name}).json()
    for action, more in (
        ("give", {"label": "TEXT"}),
        ("skip", {}),
        ("undo", {}),
        ("sample", {}),
        ("give", {"label": "BOTH"}),
    ):
        body = {"run": 0, "name": name, "item": progress["item"]["id"], **more}
        reply = client.post(f"/api/labelling/{action}", json=body)
        assert reply.status_code == 200, reply.text
        progress = reply.json()
    assert progress["message"] == "BOTH saved; u undoes it"
    assert client.post("/api/labelling/end", json={"run": 0, "name": name}).json() == {}
    assert sorted(map(str, labels_of(folder, f"human:{name}@1").values())) == ["BOTH", "TEXT"]
    record = records(folder)[5]
    body = {"run": 0, "number": 5, "name": name, "answer": blind_id(record), "label": "TEXT", "reason": HOSTILE}
    reply = client.post("/api/override", content=json.dumps(body), headers={"Content-Type": "application/json"})
    assert reply.status_code == 200
    assert records(folder)[5].verdicts[f"override:{name}@1"].reason.startswith("</script>")
    assert client.post("/api/override/undo", json={**body, "reason": ""}).json() == {
        "message": "override undone",
        "confirm": "",
    }


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"[" * 50_000,
        b"null",
        b"\xff",
        b'{"run": 0}',
        b'{"run": true, "name": "ann"}',
        b'{"run": "0", "name": "ann"}',
        b'{"run": -1, "name": "ann"}',
        b'{"run": 1, "name": "ann"}',
        b'{"run": 1e400, "name": "ann"}',
        b'{"run": 0, "name": ""}',
        json.dumps({"run": 0, "name": HOSTILE}).encode(),
        b'{"run": 0, "name": "../../etc"}',
        json.dumps({"run": 0, "name": "ann", "reason": "x" * 70_000}).encode(),
    ],
)
def test_wrong_requests_change_nothing(body: bytes, folder: Path, client: TestClient) -> None:
    before = rows_of(folder)
    for action in ("labelling/begin", "labelling/give", "labelling/undo", "labelling/end", "override", "override/undo"):
        reply = client.post(f"/api/{action}", content=body, headers={"Content-Type": "application/json"})
        assert reply.status_code == 400, (action, reply.text)
        assert "\x1b" not in reply.text
        assert len(reply.text) < 500
    assert client.post("/api/override", content=body).status_code == 400, "not JSON by its type"
    assert rows_of(folder) == before


def test_conflicts_and_runs_that_take_no_labels_have_their_own_status(folder: Path, client: TestClient) -> None:
    client.post("/api/labelling/begin", json={"run": 0, "name": "ann"})
    give = {"run": 0, "name": "ann", "item": "0" * 16, "label": "TEXT"}
    assert client.post("/api/labelling/give", json=give).status_code == 409
    assert client.post("/api/labelling/give", json={**give, "name": "bob"}).status_code == 409
    (folder.parent.parent / MANIFEST).write_text("")
    assert client.post("/api/labelling/give", json=give).status_code == 403
    assert client.get("/api/labelling/give").status_code == 405
