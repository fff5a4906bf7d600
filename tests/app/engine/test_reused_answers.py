"""Reuse by content: a run asks what no other run of this machine has answered, and ends as one that asks everything."""

from __future__ import annotations

import random
import shutil
import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.compare.runs.cost_tables import cost_cells
from app.compare.runs.spec_diff import difference_warnings
from app.compare.runs.view_reader import load_views
from app.engine import reused_answers as lending
from app.engine.answer_loop import AnswerLoop
from app.engine.reused_answers import CHECK_EVERY, LOAN_SECONDS, Lenders
from app.engine.run_plan import create_run
from app.parity.model_probing import ProbeOptions
from app.parity.parity_report import compare_runs
from app.parity.parity_tables import agreement_table
from app.report.tables.run_tables import tables_from
from app.report.tables.table_inputs import read_inputs
from app.run_spec import BatchSpec
from app.store.file_locks import FileLock
from app.store.integrity import stored_values
from app.store.reusable_answers import LENDING_KEY, ReusedAnswers
from app.store.run_database import storable
from app.store.run_salvage import Salvage
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from benchmarks.protocols.protocols import Protocol
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Generation, Instance, Media, Origin, Record, Request, Text, canonical_json
from judges.base import FunctionJudge
from judges.judge_registry import get_judge
from mlx_backends.base import Backend, EngineInfo
from mlx_backends.remote import is_dated
from mlx_backends.remote.endpoint_examination import EndpointCheck
from tests.support import runs
from tests.support.old_runs import sealed
from tests.support.toy import TwoSteps

LOCAL = EngineInfo("mlx-vlm", "some/model", weights="a" * 64, versions={"mlx": "1"})
SERVER = EngineInfo("endpoint", "endpoint:m", device="remote", needs_device=False, versions={"server": "127.0.0.1"})
PROVIDER = EngineInfo("openai", "openai:gpt-4o-2024-08-06", device="remote", needs_device=False)

Answer = Callable[[Request], str]


def instances(examples: int, question: str = "How many trams run?") -> list[Instance]:
    """``examples`` under every condition, no two with the same prompt."""
    items = runs.instances(examples, question)
    return [replace(item, parts=(Text(f"{item.id}: "), *item.parts)) for item in items]


def number_of(request: Request) -> str:
    """One of a few values, by nothing but the request."""
    return str(int(request.unscored.digest[:8], 16) % 3 * 3 + 9)


class Model(Backend):
    """Answers each request by its content alone; ``asked`` are those it was given."""

    def __init__(self, info: EngineInfo = LOCAL, answer: Answer = number_of, code: str = "code") -> None:
        self.info, self.code, self.capacity = info, code, 3
        self._answer = answer
        self._waiting: list[Request] = []
        self.asked: list[Request] = []

    def submit(self, request: Request) -> None:
        self._waiting.append(request)
        self.asked.append(request)

    def step(self) -> Sequence[Generation]:
        done, self._waiting = self._waiting, []
        return [self._generation(request) for request in done]

    def _generation(self, request: Request) -> Generation:
        if (text := self._answer(request)) == "error":
            return Generation(request.id, "", "error", error="it failed")
        return Generation(request.id, text, "stop", (1, 2), 30, 2, 0.1, 0.2, 1000)

    def cancel(self, request_id: str) -> None:
        self._waiting = [request for request in self._waiting if request.id != request_id]


@pytest.fixture(autouse=True)
def _own_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lending, "lending_code", lambda backend: backend.code)


def answered(
    home: Path,
    name: str,
    items: Sequence[Instance],
    model: Model | None = None,
    *,
    steps: Protocol | None = None,
    stop: Callable[[Model], bool] = lambda model: False,
    **keys: Any,
) -> Path:
    """Answer a run as a worker does, or go on with it; the folder. ``home`` is its workspace."""
    model = model or Model()
    workspace = Workspace(home)
    workspace.make()
    folder = workspace.runs_folder / name
    (spec,) = BatchSpec(benchmark="cmc-bench", model=("some/model",), name=name, **keys).runs()
    if not folder.exists():
        create_run(workspace, spec, folder, {"device": model.info.device}, items, data=None)
    benchmark, judge = get_benchmark("cmc-bench"), get_judge("match")
    assert isinstance(judge, FunctionJudge)
    with FileLock(folder / "lock") as lock, RunStore.open(folder) as store:
        assert lock.acquire("a test")
        engine = asdict(model.info)
        store.use_engine(engine)
        lenders = Lenders.of(store, spec, model, engine)
        loop = partial(
            AnswerLoop,
            store,
            model,
            steps or spec.to_protocol(),
            [judge],
            benchmark,
            lenders=lenders,
            stop=lambda: stop(model),
        )
        if lenders.has_offers:
            loop(asks=False).run()
        loop().run()
        lenders.close()
    return folder


def stored(folder: Path) -> list[Record]:
    with RunStore.read(folder) as store:
        return list(store.records())


def content(folder: Path) -> list[Any]:
    """All that tables and exports use of a run, but for times and origins."""
    return [
        (
            record.instance,
            [(g.text, g.finish_reason, g.tokens, g.prompt_tokens, g.completion_tokens) for g in record.generations],
            record.verdicts,
        )
        for record in stored(folder)
    ]


def tables(folder: Path) -> str:
    return repr([replace(table, rows=tuple(table.rows)) for table in tables_from(read_inputs([folder]))])


def problems(folder: Path) -> list[Any]:
    reported: list[Any] = []
    with Salvage.read(folder) as store:
        list(store.saved(reported.append))
        store.find_missing(reported.append)
        store.find_wrong_counters(reported.append)
        store.find_broken_pages(reported.append)
    return reported


def reused(folder: Path) -> ReusedAnswers:
    with RunStore.read(folder) as store:
        return ReusedAnswers.load(store)


def edited(items: Sequence[Instance], place: int, text: str = "Which trams run?") -> list[Instance]:
    """The instances with another prompt at a place."""
    new = list(items)
    new[place] = replace(new[place], parts=(Text(text), *new[place].parts[1:]))
    return new


def test_only_what_changed_is_asked_and_the_record_says_where_the_rest_is_from(tmp_path: Path) -> None:
    items = instances(4)
    lender = answered(tmp_path / "a", "week1", items, exact=True)
    model = Model()
    folder = answered(tmp_path / "a", "week2", edited(items, 7), model, exact=True)
    fresh = answered(tmp_path / "b", "week2", edited(items, 7), exact=True)
    assert [request.instance_id for request in model.asked] == [items[7].id]
    assert content(folder) == content(fresh)
    assert tables(folder) == tables(fresh)
    assert problems(folder) == []
    with RunStore.read(lender) as store:
        run = store.meta("id")
    origins = {record.instance.id: record.generations[0].origin for record in stored(folder)}
    assert origins.pop(items[7].id) is None
    assert set(origins.values()) == {Origin(run, "week1", name) for name in origins}
    with RunStore.read(folder) as store, RunStore.read(fresh) as other:
        done, all_of_them = store.progress(), other.progress()
        assert sum(p.reused for p in done) == 23
        assert sum(p.tokens for p in done) == 2 < sum(p.tokens for p in all_of_them)
        assert store.answer_usage() == (1, 30, 2)
        assert store.cached_replies() == 0
        assert store.answer_times().generated == 1
    assert reused(folder).lenders == {run: 23}
    assert "23 of 24 answers reused from week1" in reused(folder).sentence
    assert not reused(fresh).sentence


DIFFERENT: dict[str, dict[str, Any]] = {
    "weights": {"model": Model(replace(LOCAL, weights="b" * 64))},
    "adapter": {"model": Model(replace(LOCAL, adapter="b" * 64))},
    "revision": {"model": Model(replace(LOCAL, revision="b" * 40))},
    "library": {"model": Model(replace(LOCAL, versions={"mlx": "2"}))},
    "device": {"model": Model(replace(LOCAL, device="metal"))},
    "our code": {"model": Model(code="other")},
    "unknown code": {"model": Model(code="")},
    "tokens": {"decoding": {"max_tokens": 7}},
    "seed": {"seed": 7},
    "pixels": {"decoding": {"max_pixels": 5000}},
    "sampled": {"decoding": {"temperature": 0.5}},
    "repeats": {"decoding": {"temperature": 0.5}, "repeats": 2},
    "vote": {"protocol": "self-consistency"},
    "form": {"score": "likelihood"},
    "cache": {"kv_bits": 8},
    "exact": {"exact": True},
    "fresh": {"fresh": True},
    "prompt set": {"prompt_set": ("single-source",)},
}


@pytest.mark.parametrize("change", DIFFERENT)
def test_an_answer_to_another_request_or_of_another_model_is_not_reused(tmp_path: Path, change: str) -> None:
    items, keys = instances(2), dict(DIFFERENT[change])
    if change == "prompt set":
        items_then, keys = instances(2, "How many buses run?"), {}
    else:
        items_then = items
    answered(tmp_path, "week1", items)
    folder = answered(tmp_path, "week2", items_then, **keys)
    assert not reused(folder).lenders
    assert reused(folder).checked == 0


@pytest.mark.parametrize("keys", [{"decoding": {"temperature": 0.5}}, {"decoding": {"temperature": 0.5}, "repeats": 2}])
def test_sampled_answers_are_not_lent_to_a_run_of_the_same_spec(tmp_path: Path, keys: dict[str, Any]) -> None:
    answered(tmp_path, "week1", instances(2), **keys)
    assert not reused(answered(tmp_path, "week2", instances(2), **keys)).lenders


def test_another_picture_under_the_same_question_is_asked_about(tmp_path: Path) -> None:
    items = instances(2)
    answered(tmp_path, "week1", items, exact=True)
    other = [
        replace(item, parts=tuple(Media("f" * 64, ".png") if isinstance(p, Media) else p for p in item.parts))
        if number == 0
        else item
        for number, item in enumerate(items)
    ]
    model = Model()
    answered(tmp_path, "week2", other, model, exact=True)
    assert [request.instance_id for request in model.asked] == [items[0].id]


def unseal(folder: Path) -> None:
    with sealed(folder) as database:
        database.execute("DELETE FROM meta WHERE key = 'seal'")


def forge(folder: Path) -> None:
    """Make the run of another machine: its seal is by another key."""
    with sealed(folder) as database:
        database.execute("UPDATE meta SET value = '\"0000\"' WHERE key = 'seal'")


def adopt(folder: Path) -> None:
    """Make a run one that was adopted, which has answers, but none of this machine."""
    with sealed(folder) as database:
        database.execute("DELETE FROM meta WHERE key = ?", (LENDING_KEY,))


def blind(folder: Path) -> None:
    with RunStore.open(folder) as store:
        store.set_meta("endpoint", [{"at": 1.0, **asdict(EndpointCheck(problem="it drops pictures"))}])


def set_aside(folder: Path) -> None:
    with RunStore.open(folder) as store:
        store.repeat()


def tamper(folder: Path) -> None:
    """Change the answers, as damage would."""
    with sqlite3.connect(folder / "run.sqlite") as database:
        database.execute("UPDATE generation SET text = 'altered'")


def fail(folder: Path) -> None:
    with sealed(folder) as database:
        database.execute("UPDATE generation SET finish_reason = 'error', error = 'no'")


def swap_requests(folder: Path) -> None:
    """Name the request of another instance in each row, which leaves the row damaged."""
    with sqlite3.connect(folder / "run.sqlite") as database:
        rows = database.execute("SELECT id, request FROM generation ORDER BY id").fetchall()
        for (number, _), (_, request) in zip(rows, [*rows[1:], rows[0]], strict=True):
            database.execute("UPDATE generation SET request = ? WHERE id = ?", (request, number))


@pytest.mark.parametrize("spoil", [unseal, forge, adopt, blind, set_aside, tamper, fail, swap_requests, shutil.rmtree])
def test_a_run_that_may_not_lend_lends_nothing(tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    items = instances(2)
    spoil(answered(tmp_path / "a", "week1", items, exact=True))
    model = Model()
    folder = answered(tmp_path / "a", "week2", items, model, exact=True)
    assert len(model.asked) == len(items)
    assert content(folder) == content(answered(tmp_path / "b", "week2", items, exact=True))


def test_one_corrupt_row_costs_one_call(tmp_path: Path) -> None:
    items = instances(2)
    lender = answered(tmp_path, "week1", items, exact=True)
    with sqlite3.connect(lender / "run.sqlite") as database:
        database.execute("UPDATE generation SET text = 'altered' WHERE instance = 4")
    model = Model()
    folder = answered(tmp_path, "week2", items, model, exact=True)
    assert [request.instance_id for request in model.asked] == [items[4].id]
    assert "altered" not in {record.generations[0].text for record in stored(folder)}


def test_each_request_is_reused_from_the_run_that_has_it(tmp_path: Path) -> None:
    items = instances(3)
    answered(tmp_path / "a", "week1", items[::2], exact=True)
    answered(tmp_path / "a", "week2", items[1::2], exact=True)
    model = Model()
    folder = answered(tmp_path / "a", "week3", items, model, exact=True)
    assert not model.asked
    assert sorted(reused(folder).lenders.values()) == [9, 9]
    assert content(folder) == content(answered(tmp_path / "b", "week3", items, exact=True))


def test_a_run_on_which_a_process_works_lends_nothing(tmp_path: Path) -> None:
    items = instances(2)
    lender = answered(tmp_path, "week1", items)
    with FileLock(lender / "lock") as lock:
        assert lock.acquire("another process")
        assert not reused(answered(tmp_path, "week2", items)).lenders


def test_a_copy_of_the_run_itself_is_no_other_run(tmp_path: Path) -> None:
    items = instances(2)
    folder = answered(tmp_path, "week1", items, stop=lambda model: len(model.asked) >= 3)
    shutil.copytree(folder, folder.with_name("copy"))
    answered(tmp_path, "week1", items)
    model = Model()
    copy = answered(tmp_path, "copy", items, model)
    assert not reused(copy).lenders
    assert len(model.asked) < len(items)


def test_a_copied_lender_is_as_good_as_the_original(tmp_path: Path) -> None:
    items = instances(2)
    lender = answered(tmp_path, "week1", items, exact=True)
    shutil.copytree(lender, lender.with_name("copy"))
    shutil.rmtree(lender)
    assert sum(reused(answered(tmp_path, "week2", items, exact=True)).lenders.values()) == len(items)


def test_an_answer_that_was_reused_names_the_run_that_gave_it(tmp_path: Path) -> None:
    items = instances(2)
    first = answered(tmp_path, "week1", items, exact=True)
    with RunStore.read(first) as store:
        run = store.meta("id")
    answered(tmp_path, "week2", items, exact=True)
    shutil.rmtree(first)
    third = answered(tmp_path, "week3", items, exact=True)
    assert reused(third).lenders == {run: len(items)}
    assert {record.generations[0].origin.name for record in stored(third) if record.generations[0].origin} == {"week1"}


def test_what_the_user_repeats_is_asked(tmp_path: Path) -> None:
    items = instances(2)
    answered(tmp_path, "week1", items, exact=True)
    folder = answered(tmp_path, "week2", items, exact=True)
    with RunStore.open(folder) as store:
        store.repeat(["aligned"])
        assert sum(p.reused for p in store.progress()) == len(items) - 2
    model = Model()
    answered(tmp_path, "week2", items, model, exact=True)
    assert {request.instance_id for request in model.asked} == {
        item.id for item in items if item.condition == "aligned"
    }
    assert problems(folder) == []


@pytest.mark.parametrize("stop_after", [0, 1, 5, 11])
def test_a_run_that_ends_while_it_reuses_resumes(tmp_path: Path, stop_after: int) -> None:
    items = instances(2)
    answered(tmp_path / "a", "week1", items, exact=True)
    looks = iter(range(1000))
    folder = answered(
        tmp_path / "a", "week2", edited(items, 3), exact=True, stop=lambda model: next(looks) >= stop_after
    )
    assert problems(folder) == []
    model = Model()
    answered(tmp_path / "a", "week2", edited(items, 3), model, exact=True)
    assert content(folder) == content(answered(tmp_path / "b", "week2", edited(items, 3), exact=True))
    assert [request.instance_id for request in model.asked] == [items[3].id]
    assert problems(folder) == []


def test_steps_are_reused_one_by_one(tmp_path: Path) -> None:
    items = instances(2)
    answered(tmp_path / "a", "week1", items, exact=True, steps=TwoSteps())

    def differs_later(request: Request) -> str:
        return "77" if request.step == 0 and request.instance_id == items[0].id else number_of(request)

    with RunStore.open(tmp_path / "a" / "runs" / "week1") as store:  # its second step alone is there
        store.repeat(instances=[items[0].id])
    model = Model(answer=differs_later)
    folder = answered(tmp_path / "a", "week2", items, model, exact=True, steps=TwoSteps())
    fresh = answered(tmp_path / "b", "week2", items, Model(answer=differs_later), exact=True, steps=TwoSteps())
    assert [(request.instance_id, request.step) for request in model.asked] == [(items[0].id, 0), (items[0].id, 1)]
    assert content(folder) == content(fresh)
    assert sum(reused(folder).lenders.values()) == len(items) - 1
    assert problems(folder) == []


def test_a_share_is_asked_again_and_what_differs_is_counted(tmp_path: Path) -> None:
    items = instances(60)
    lender = answered(tmp_path, "week1", items)
    model = Model(answer=lambda request: "77")
    folder = answered(tmp_path, "week2", items, model)
    result = reused(folder)
    assert 0.3 < len(model.asked) / (len(items) / CHECK_EVERY) < 3
    assert result.checked == result.differing == len(model.asked)
    assert sum(result.lenders.values()) + result.checked == len(items)
    assert f"of {result.checked} asked again" in result.sentence
    assert {record.generations[0].text for record in stored(folder)} >= {"77"}, "the new answer is the run's"
    again = reused(answered(tmp_path, "week3", items))
    assert again.checked > 0
    warnings = difference_warnings(load_views([lender, folder]).runs)
    assert any(f"{sum(result.lenders.values())} answers" in warning for warning in warnings)


def test_a_reused_answer_costs_what_it_took_where_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lending, "CHECK_EVERY", 10**9)  # a request that is asked again would count among the asked

    class Light(Model):
        def _generation(self, request: Request) -> Generation:
            return replace(super()._generation(request), prefill_s=0.0, decode_s=0.01, peak_memory=10)

    items = instances(4)
    lender = answered(tmp_path, "week1", items)
    folder = answered(tmp_path, "week2", edited(items, 7), Light())
    asked = len(items) - sum(reused(folder).lenders.values())
    cost = load_views([folder]).runs[0].cost
    assert (cost.peak_memory, cost.timed, cost.unmeasured) == (1000, cost.answers, 0)
    assert cost.answers > 2 * asked
    assert cost.seconds == pytest.approx(0.3 * (cost.answers - asked) + 0.01 * asked)
    with RunStore.read(folder) as store:
        assert any(p.peak_memory for p in store.progress())
        assert not any(p.known_peak for p in store.progress())
    tokens = cost.tokens
    shutil.rmtree(lender)
    view = load_views([folder]).runs[0]
    assert (view.cost.peak_memory, view.cost.seconds_per_answer, view.cost.tokens) == (None, None, tokens)
    assert [cell.value for cell in cost_cells(view)[:3]] == [None] * 3
    assert "reused" in cost_cells(view)[2].reason
    answered(tmp_path, "week1", items[:1])  # another run under the name of the lender
    assert load_views([folder]).runs[0].cost == view.cost


def test_runs_that_reuse_a_third_ones_answers_do_not_agree_by_themselves(tmp_path: Path) -> None:
    items = instances(2)
    lender = answered(tmp_path, "week1", items, exact=True)
    folders = [answered(tmp_path, name, items, exact=True) for name in ("week2", "week3")]
    shutil.rmtree(lender)
    assert any("12 answers" in warning for warning in difference_warnings(load_views(folders).runs))


@pytest.mark.parametrize("keys", [{}, {"fresh": True}])
def test_parity_says_which_agreement_is_of_answers_with_themselves(tmp_path: Path, keys: dict[str, Any]) -> None:
    items = instances(2)
    folders = answered(tmp_path, "week1", items, exact=True), answered(tmp_path, "week2", items, exact=True, **keys)
    notes = agreement_table(compare_runs(folders, ProbeOptions(probes=0))).notes
    assert any("12 answers" in note for note in notes) is not bool(keys)


@pytest.mark.parametrize(
    ("info", "age", "is_reused"),
    [
        (SERVER, 60, True),
        (SERVER, LOAN_SECONDS - 60, True),
        (SERVER, LOAN_SECONDS + 60, False),
        (SERVER, -60, False),
        (PROVIDER, 400 * LOAN_SECONDS, True),
        (PROVIDER, -60, True),
        (LOCAL, 400 * LOAN_SECONDS, True),
        (LOCAL, -60, True),
    ],
)
def test_only_undated_remote_models_limit_the_age(
    tmp_path: Path, info: EngineInfo, age: float, is_reused: bool
) -> None:
    items = instances(2)
    lender = answered(tmp_path, "week1", items, Model(info))
    with sealed(lender) as database:
        database.execute("UPDATE generation SET finished_at = ?", (time.time() - age,))
    assert bool(reused(answered(tmp_path, "week2", items, Model(info))).lenders) is is_reused


def test_nothing_that_ages_is_reused_once_the_clock_went_back(tmp_path: Path) -> None:
    items = instances(2)
    lender = answered(tmp_path, "week1", items, Model(SERVER))
    with sealed(lender) as database:
        database.execute("UPDATE generation SET finished_at = ? WHERE id = 1", (time.time() + 3600,))
    assert not reused(answered(tmp_path, "week2", items, Model(SERVER))).lenders


def test_the_age_of_a_reused_answer_is_that_of_the_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lending, "CHECK_EVERY", 1 << 40)  # an answer of a check is new
    items = instances(2)
    lender = answered(tmp_path, "week1", items, Model(SERVER))
    with sealed(lender) as database:
        database.execute("UPDATE generation SET finished_at = ?", (time.time() - LOAN_SECONDS + 5,))
    second = answered(tmp_path, "week2", items, Model(SERVER))
    assert reused(second).lenders
    with sealed(second) as database:
        database.execute("UPDATE generation SET finished_at = finished_at - 6")
    shutil.rmtree(lender)
    assert not reused(answered(tmp_path, "week3", items, Model(SERVER))).lenders


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("openai:gpt-4o-2024-08-06", True),
        ("anthropic:claude-sonnet-4-20250514", True),
        ("openai:gpt-4o", False),
        ("gemini:gemini-2.5-flash-preview-05-20", False),
        ("gemini:gemini-1.5-pro-002", False),
        ("openai:ft:gpt:1202408069", False),
        ("openai:m-2024-13-40", False),
        ("openai:m-2024-0806", False),
    ],
)
def test_a_date_is_a_whole_date(model: str, expected: bool) -> None:
    assert is_dated(EngineInfo("openai", model, device="remote")) is expected
    assert not is_dated(EngineInfo("openai", model, device="remote", versions={"server": "localhost"}))


def test_hostile_names_of_lenders_are_stored_as_text(tmp_path: Path) -> None:
    items = instances(1)
    lender = answered(tmp_path, "week1", items, exact=True)
    hostile = lender.rename(lender.with_name('x\x1b[31m"same":null, [red]‮'))
    folder = answered(tmp_path, "week2", items, exact=True)
    assert set(reused(folder).names.values()) == {hostile.name}
    assert problems(folder) == []


@given(st.text() | st.sampled_from(['{"run":"r","name":"n","instance":"i","same":1}', '{"run":"r"}', "null", "[]"]))
def test_a_stored_origin_is_one_or_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        stored_values.origin(text)


@given(st.builds(Origin, st.text(), st.text(), st.text(), st.none() | st.booleans()))
def test_an_origin_is_read_as_it_was_written(origin: Origin) -> None:
    text = storable(canonical_json(asdict(origin)))
    read = stored_values.origin(text)
    assert read.same is origin.same
    assert ('"same":null' in text) == (origin.same is None), "counters recognise reused answers by that"


def _random_edit(items: list[Instance], draw: random.Random) -> list[Instance]:
    """One edit of a table: a cell, a picture, a row more or less, another order."""
    items, place = list(items), draw.randrange(len(items))
    match draw.choice(["cell", "picture", "delete", "copy", "order", "nothing"]):
        case "cell":
            items = edited(items, place, f"Which {draw.choice(['trams', 'buses', 'boats'])} run?")
        case "picture":
            other = Media(f"{draw.randrange(5):064x}", ".png")
            parts = tuple(other if isinstance(part, Media) else part for part in items[place].parts)
            items[place] = replace(items[place], parts=parts)
        case "delete" if len(items) > 12:
            del items[place]
        case "copy":
            items.append(replace(items[place], id=f"copy-{draw.random()}", group=f"copy-{draw.random()}"))
        case "order":
            draw.shuffle(items)
    return items


@pytest.mark.parametrize("edits", [10, pytest.param(100, marks=pytest.mark.slow)])
def test_no_edit_gives_another_table_than_a_fresh_run(tmp_path: Path, edits: int) -> None:
    """A set that is edited again and again; each run may reuse all that came before."""
    draw, items, asked = random.Random(edits), instances(3), 0
    answered(tmp_path / "a", "run", items, exact=True)
    for number in range(edits):
        items = _random_edit(items, draw)
        model = Model()
        folder = answered(tmp_path / "a", f"run{number}", items, model, exact=True)
        fresh = answered(tmp_path / f"b{number}", f"run{number}", items, exact=True)
        assert content(folder) == content(fresh)
        assert tables(folder) == tables(fresh)
        asked += len(model.asked)
    assert asked < 2 * edits
