"""Answer sessions: a person answers a benchmark's questions, timed. The answers are a run of the model ``person:NAME``."""

from __future__ import annotations

import time
from array import array
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from app.annotation.review_store import account_name
from app.engine.answer_loop import judge_pending, judge_record
from app.engine.run_plan import check_spec, plan_run
from app.run_spec import RunSpec, parse_stored
from app.store.file_locks import FileLock
from app.store.run_store import RunStore
from app.store.store_types import NewAnswer
from app.store.workspace import Workspace
from benchmarks.errors import BusyError, SpecError, StoreError
from benchmarks.hash_collections import hash64
from benchmarks.registry import get_benchmark
from benchmarks.text.answer_text import visible_answer
from benchmarks.untrusted.file_names import name_key
from benchmarks.vocabulary import Generation, Media, Message, Record, Request
from judges.base import FunctionJudge
from judges.human_labels_and_samples import annotator_id
from judges.judge_registry import find_judge
from mlx_backends.engine_registry import describe
from mlx_backends.person_engine import PERSON

_ACCOUNT = "answered by"
LONGEST_ANSWER = 20_000
"""The most characters of an answer."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question as the person sees it: what a model would be sent, and nothing about conditions or right answers."""

    request: Request

    @property
    def messages(self) -> tuple[Message, ...]:
        return self.request.messages

    @property
    def media(self) -> tuple[Media, ...]:
        """The media of all messages, in order, each once."""
        parts = (part for message in self.messages for part in message.parts)
        return tuple(dict.fromkeys(part for part in parts if isinstance(part, Media)))


def person_model(name: str) -> str:
    """Return the model name of a person's answers. Raises SpecError for a name that is not valid for an annotator."""
    annotator_id(name)
    return f"{PERSON}{name}"


def plan_answers(workspace: Workspace, spec: RunSpec, *, same_person: bool = False) -> Path:
    """Return the folder of the person's run, which is created if it does not exist.

    Raises SpecError if the spec is invalid, a run of that name is a different one, or another account began the run (unless
    ``same_person``), and if a name differs from that of another person's run in case alone.
    """
    checked = check_spec(workspace, spec, by_hand=True)
    if not checked.existing:
        _check_name(workspace, spec.model)
    folder = plan_run(workspace, checked).folder
    with RunStore.open(folder) as store:
        account: str = store.meta(_ACCOUNT, "")
        if account and account != account_name() and not same_person:
            raise SpecError(
                f"{folder.name} holds the answers of a person on another account, {account}; answer under another name, or add "
                "--same-person if it is you."
            )
        if not account:
            store.set_meta(_ACCOUNT, account_name())
    return folder


def _check_name(workspace: Workspace, model: str) -> None:
    """Raise SpecError if a person in the workspace has this name in another case."""
    for name in workspace.run_names():
        with suppress(StoreError), RunStore.read(workspace.runs_folder / name) as store:
            other = str(store.meta("spec")["model"])
            if other.startswith(PERSON) and other != model and name_key(other) == name_key(model):
                raise SpecError(f"{model} differs from {other}, who answered {name}, only in case; use another name.")


def answer_lock(folder: Path) -> FileLock:
    """Return the acquired lock of a person's run. Raises StoreError if another session holds it."""
    lock = FileLock(folder / "lock")
    if not lock.acquire("a session of answering"):
        raise BusyError(
            f"somebody is answering {folder.name} in another session; end that one, or answer under another name."
        )
    return lock


def _with_justification(answer: str, justification: str) -> str:
    """Return an answer with its justification before it, marked as a model's reasoning is.

    Raises SpecError if the justification has such a mark itself, so that the answer could not be read.
    """
    if not justification:
        return answer
    stored = f"<think>{justification}</think>\n{answer}"
    if visible_answer(stored) != visible_answer(answer):
        raise SpecError("the reason has a mark of reasoning, such as </think>; write it without.")
    return stored


class AnswerSession:
    """A person's session: the current question, and how many are answered.

    Questions come in an order that is random for each person, so that the conditions of an example do not follow each other.
    Every answer is committed at once, with the labels of the judges that need no model.
    """

    def __init__(self, folder: Path, store: RunStore) -> None:
        """Begin or continue a session; the caller holds :func:`answer_lock`."""
        self.folder = folder
        spec = parse_stored(RunSpec, store.meta("spec"), str(folder))
        self.benchmark = get_benchmark(spec.benchmark)
        self.person = spec.model.removeprefix(PERSON)
        self._info = asdict(describe(spec.model))
        self._protocol = spec.to_protocol()
        judges = [find_judge(name, self.benchmark) for name in spec.judge]
        self._judges = [judge for judge in judges if isinstance(judge, FunctionJudge)]
        self.model_judges = [judge.id for judge in judges if not isinstance(judge, FunctionJudge)]
        positions = [
            (hash64(f"{spec.seed}|answer|{self.person}|{number}"), number, position.done)
            for number, position in enumerate(store.positions())
        ]
        self.total = len(positions)
        self._order = array("Q", [number for _, number, done in sorted(positions) if not done])
        self.count = self.total - len(self._order)
        self._at = 0
        self._shown = 0.0
        self.current: Question | None = None
        store.set_meta("state", {"state": "running", "note": ""})
        self._show(store)

    @property
    def elapsed(self) -> float:
        """The seconds since the current question was displayed."""
        return time.monotonic() - self._shown

    def answer(self, store: RunStore, text: str, justification: str = "", seconds: float | None = None) -> None:
        """Store the answer to the current question with its time, and advance.

        A justification is stored before the answer as a model's reasoning is, so no judge reads it. ``seconds`` is the time of
        the answer; None for that since the question was displayed. Raises SpecError for an empty or overlong answer.
        """
        if self.current is None:
            return
        if not text.strip() or len(text) + len(justification) > LONGEST_ANSWER:
            raise SpecError(f"an answer has 1 to {LONGEST_ANSWER:,} characters; write one, or skip the question.")
        seconds = self.elapsed if seconds is None else seconds
        pending, request = self._pending, self.current.request
        stored = _with_justification(text.strip(), " ".join(justification.split()))
        generation = Generation(request.id, stored, "stop", decode_s=round(seconds, 2), calls=0)
        generations = (*pending.generations, generation)
        last = self._protocol.next(pending.instance, generations) is None
        condition = pending.instance.condition
        ready, basis = store.basis_of(pending.ordinal) if self.benchmark.basis(condition) else (True, None)
        record = Record(pending.instance, generations, basis=basis)
        verdicts = (
            tuple(judge_record(judge, record, self.benchmark) for judge in self._judges) if last and ready else ()
        )
        store.use_engine(self._info)
        store.commit(
            [
                NewAnswer(
                    ordinal=pending.ordinal,
                    condition=condition,
                    step=request.step,
                    request_digest=request.digest,
                    generation=generation,
                    last=last,
                    verdicts=verdicts,
                )
            ]
        )
        if last:
            self.count += 1
            self._at += 1
        self._show(store)

    def skip(self, store: RunStore) -> None:
        """Move the current question to the end of the session."""
        if self.current is not None:
            self._order.append(self._order[self._at])
            self._at += 1
            self._show(store)

    def close(self, store: RunStore) -> None:
        """Judge what waited for a sibling's answer, and record that the session has ended."""
        for judge in self._judges:
            judge_pending(store, judge, self.benchmark)
        complete = self.count == self.total
        store.set_meta(
            "state", {"state": "done" if complete else "stopped", "note": "" if complete else "the person paused"}
        )

    def _show(self, store: RunStore) -> None:
        self.current = None
        while self._at < len(self._order):
            pending = next(store.pending(only=[self._order[self._at]]), None)
            request = None if pending is None else self._protocol.next(pending.instance, pending.generations)
            if pending is not None and request is not None:
                self._pending, self.current = pending, Question(request)
                self._shown = time.monotonic()
                return
            self._at += 1
