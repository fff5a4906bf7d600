"""The construction: scenes are put together, a model asks and answers, several models answer again under all permutations.

Candidates of all sizes and negatives go in waves together, and a wave asks one model after the other all that it asks of it:
so few times as can be is another model of this machine loaded. What comes out depends on the replies alone, not on the order
they arrive in.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.base import Decoding, Generation, Message, Modality, Request, Text, canonical_json, digest
from benchmarks.build import BuildOptions, BuildWriter
from benchmarks.contra4.constants import LETTERS, MODALITIES, SIZES
from benchmarks.contra4.construction.consistency import Votes, orders, passed
from benchmarks.contra4.construction.filter_tables import sheet, statistics
from benchmarks.contra4.construction.prompts import answering, asking, choosing, read_question, refused_term
from benchmarks.contra4.construction.scene_sampling import NearestCaptions, Pool, WordCounts, tuples
from benchmarks.contra4.parse_answer import choice
from benchmarks.contra4.sample import Contra4Sample, Scene, scene
from benchmarks.contra4.sources.released import CAPTIONED, Contra4SourceRow, json_files
from benchmarks.errors import SourceError, SpecError
from benchmarks.rows.files import RowProblem, SkippedRow, rows
from benchmarks.text.answer_text import visible_answer
from benchmarks.text_model import TextModel, ask_all

KEPT = "PUF"
"""The filter whose samples become the build's (the paper's choice)."""

_SMALLEST_WAVE, _LARGEST_WAVE = 8, 64
_DRAWN = 20
"""So many candidates are drawn at most for each sample that is wanted."""

_STEPS = {
    "question": Decoding(max_tokens=120, temperature=1.05, top_p=0.9),
    "answer": Decoding(max_tokens=120, temperature=0.3, top_p=0.9),
    "choice": Decoding(max_tokens=30, temperature=0.3, top_p=0.9),
}
"""Appendix G; the limits are the published code's."""


@dataclass(frozen=True, slots=True)
class ConstructedQuestions:
    """The samples that are kept, and what the manifest tells of the construction."""

    samples: Sequence[Contra4SourceRow]
    report: Mapping[str, Any]


@dataclass
class _Candidate:
    """Scenes on their way: what was asked and answered of them, and why they are given up, if they are."""

    scenes: tuple[Scene, ...]
    kind: str
    files: tuple[Path, ...]
    question: str = ""
    answer: int = 0
    problem: str = ""
    filters: tuple[str, ...] = ()
    votes: list[Votes] = field(default_factory=list)

    @property
    def captions(self) -> list[str]:
        return [scene.caption for scene in self.scenes]

    @property
    def name(self) -> str:
        return digest([[scene.source, scene.name, scene.modality, scene.caption] for scene in self.scenes])[:16]


@dataclass
class _Stratum:
    """Samples of one size and kind of negatives: those that pass, as many as are wanted, and all that were tried."""

    drawn: Iterator[_Candidate]
    wanted: int
    kept: list[_Candidate] = field(default_factory=list)
    tried: list[_Candidate] = field(default_factory=list)

    def wave(self) -> list[_Candidate]:
        """What is tried next; nothing where enough are kept, enough are tried, or no more can be drawn."""
        most = max(_SMALLEST_WAVE, _DRAWN * self.wanted) - len(self.tried)
        left = self.wanted - len(self.kept)
        size = min(max(_SMALLEST_WAVE, min(_LARGEST_WAVE, 2 * left)), most)
        return list(islice(self.drawn, size)) if left > 0 else []

    def take(self, wave: Sequence[_Candidate]) -> None:
        """Keep what passes of a wave that was worked on."""
        self.tried += wave
        passing = [each for each in wave if not each.problem and KEPT in each.filters]
        self.kept += passing[: self.wanted - len(self.kept)]

    def note(self, writer: BuildWriter) -> None:
        """Note everything that was given up, with its step."""
        kept = {id(each) for each in self.kept}
        for each in self.tried:
            if each.problem:
                writer.add_skipped(CAPTIONED, each.name, each.problem)
            elif KEPT not in each.filters:
                writer.add_skipped(CAPTIONED, each.name, f"round trip: passes {', '.join(each.filters) or 'no filter'}")
            elif id(each) not in kept:
                writer.add_skipped(CAPTIONED, each.name, "enough: no more of this size and negatives are wanted")


def construct(
    place: str, writer: BuildWriter, options: BuildOptions, checks: Sequence[Path] = ()
) -> ConstructedQuestions:
    """The samples made of the captioned media in ``place``: ``options.per_stratum`` of each size and kind of negatives.

    What is given up is noted with ``writer.add_skipped``, each reason beginning with the step. Beside the build stand
    ``candidates.jsonl``, ``checks.csv`` for people, and the paper's tables 1, 5 and 7 as far as ``checks`` (filled-in sheets)
    go. Raises SpecError without models, SourceError where the folder is not one of captioned media or a sheet is none,
    ModelError where a model can no longer be asked; what was answered is not asked again by the next build.
    """
    models = _models(options)
    pool, where = read_pool(place, writer)
    embedder = options.embedder or WordCounts()
    near = NearestCaptions(pool, embedder)
    strata = [
        _Stratum(
            _candidates(pool, size, kind, near if kind == "similar" else None, where, options), options.per_stratum
        )
        for size in SIZES
        for kind in ("random", "similar")
    ]
    while waves := [(stratum, wave) for stratum in strata if (wave := stratum.wave())]:
        _work([each for _, wave in waves for each in wave], models, options.seed)
        for stratum, wave in waves:
            stratum.take(wave)
    for stratum in strata:
        stratum.note(writer)
    kept = [each for stratum in strata for each in stratum.kept]
    every = [each for stratum in strata for each in stratum.tried]
    if not kept:
        raise SourceError(f"no question about {place} passes {KEPT} ({_reasons(every)}).")
    candidates = [_row(each) for each in every if each.votes]
    lines = "".join(canonical_json(row) + "\n" for row in candidates)
    writer.add_file("candidates.jsonl", lines.encode("utf-8"))
    writer.add_file("checks.csv", sheet(candidates, options.seed).encode("utf-8"))
    for name, text in statistics(candidates, checks).items():
        writer.add_file(name, text.encode("utf-8"))
    report = {
        "models": {"writer": models[0].name, "round trip": [model.name for model in models], "embedder": embedder.name},
        "construction": _counts(every),
        "per_stratum": options.per_stratum,
    }
    return ConstructedQuestions(
        [Contra4SourceRow(each.name, sample, each.files[0]) for each, sample in _balanced(kept)], report
    )


def read_pool(place: str, writer: BuildWriter) -> tuple[Pool, Mapping[tuple[str, str], Path]]:
    """The captioned media of a folder by modality, and the file each was named in.

    Rows are ``{"source", "id", "modality", "caption"}``, or published rows, of which the examples are taken.
    Raises SourceError where there are none of two modalities.
    """
    pool: defaultdict[Modality, list[Scene]] = defaultdict(list)
    where: dict[tuple[str, str], Path] = {}
    for file in json_files(place):
        for row in rows(file, file.parent, CAPTIONED):
            if isinstance(row, SkippedRow):
                writer.add_skipped(row.source, row.row, row.reason)
                continue
            examples, modalities = row.fields.get("examples"), row.fields.get("modalities")
            if not (isinstance(examples, list) and isinstance(modalities, list)):
                examples, modalities = [row.fields], [row.fields.get("modality")]
            for example, modality in zip(examples, modalities, strict=False):
                try:
                    made = scene(example, modality)
                except RowProblem as problem:
                    writer.add_skipped(CAPTIONED, row.where, str(problem))
                    continue
                if (made.source, made.name) not in where:
                    where[made.source, made.name] = file
                    pool[made.modality].append(made)
    if len(pool) < 2:
        raise SourceError(f"{place} has captioned media of {len(pool)} modalities; a question needs two.")
    return {modality: pool[modality] for modality in MODALITIES if modality in pool}, where


def _models(options: BuildOptions) -> tuple[TextModel, ...]:
    if options.writer is None:
        raise SpecError(
            "a construction needs a model that asks and answers, and others that answer again: give --writer MODEL and "
            "--checker MODEL, twice for the paper's three."
        )
    models = (options.writer, *(options.checkers or ([options.checker] if options.checker else [])))
    names = [model.name for model in models]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise SpecError(
            f"{twice[0]} is named twice; each model of the round trip answers once, so name another --checker."
        )
    return models


def _candidates(
    pool: Pool,
    size: int,
    kind: str,
    near: NearestCaptions | None,
    where: Mapping[tuple[str, str], Path],
    options: BuildOptions,
) -> Iterator[_Candidate]:
    for scenes in tuples(pool, size, near, options.seed):
        yield _Candidate(scenes, kind, tuple(where[scene.source, scene.name] for scene in scenes))


def _work(wave: Sequence[_Candidate], models: Sequence[TextModel], seed: int) -> None:
    """Steps 2 to 4 on a wave, in place."""
    writer = models[0]
    for each, reply in _ask(writer, "question", wave, [asking(each.captions) for each in wave], seed):
        question = read_question(visible_answer(reply.text))
        each.question = question or ""
        if reply.finish_reason == "error":
            each.problem = f"error: the writer gave no question ({reply.error})"
        elif question is None:
            each.problem = "question: the reply is no question on one line"
        elif (term := refused_term(question)) is not None:
            each.problem = f"rule filter: {term}"
    asked = [each for each in wave if not each.problem]
    for each, reply in _ask(writer, "answer", asked, [answering(each.captions, each.question) for each in asked], seed):
        said, rule = choice(reply.text, LETTERS[: len(each.scenes)])
        if reply.finish_reason == "error":
            each.problem = f"error: the writer gave no answer ({reply.error})"
        elif said is None:
            each.problem = f"answer: {rule}"
        else:
            each.answer = LETTERS.index(said)
    answered = [each for each in asked if not each.problem]
    shown = [(each, order) for each in answered for order in orders(len(each.scenes))]
    texts = [choosing([each.captions[i] for i in order], each.question) for each, order in shown]
    by_model: list[list[int | None]] = []
    failed: dict[int, str] = {}
    for model in models:
        votes: list[int | None] = [None] * len(shown)
        replies = _ask(model, "choice", [each for each, _ in shown], texts, seed)
        for place, (each, reply) in enumerate(replies):
            said, _ = choice(reply.text, LETTERS[: len(each.scenes)])
            votes[place] = shown[place][1][LETTERS.index(said)] if said else None
            if reply.finish_reason == "error":
                failed[id(each)] = f"error: {model.name} gave no choice ({reply.error})"
        by_model.append(votes)
    for place, (each, _) in enumerate(shown):
        each.votes.append([votes[place] for votes in by_model])
    for each in answered:
        each.filters = passed(each.votes, each.answer)
        if id(each) in failed:  # without all votes nothing is known of it
            each.problem, each.votes, each.filters = failed[id(each)], [], ()


def _ask(
    model: TextModel, step: str, about: Sequence[_Candidate], texts: Sequence[str], seed: int
) -> list[tuple[_Candidate, Generation]]:
    """The replies, in the order of ``texts``. Raises ModelError where a model answers none of many requests."""
    decoding = replace(_STEPS[step], seed=seed)
    requests = [
        Request(f"contra4-{step}-{place}", 0, (Message("user", (Text(text),)),), decoding)
        for place, text in enumerate(texts)
    ]
    replies = ask_all(model, requests)
    nothing = Generation("", "", "error", error="no reply came")
    return [(each, replies.get(request.id, nothing)) for each, request in zip(about, requests, strict=True)]


def _balanced(kept: Sequence[_Candidate]) -> Iterator[tuple[_Candidate, Contra4Sample]]:
    """The samples with the right scene moved to each place as often as to the others, for each size and kind of negatives.

    The other scenes keep their order. A sample of PUF is right in any order, so that nothing is lost.
    """
    counted: Counter[tuple[int, str]] = Counter()
    for each in kept:
        size = len(each.scenes)
        target = counted[size, each.kind] % size
        counted[size, each.kind] += 1
        others = [scene for place, scene in enumerate(each.scenes) if place != each.answer]
        scenes = (*others[:target], each.scenes[each.answer], *others[target:])
        sample = Contra4Sample(
            row_id=each.name,
            question=each.question,
            scenes=scenes,
            answer=target,
            gold=LETTERS[target],
            negatives=each.kind,
            source=CAPTIONED,
            filters=each.filters,
        )
        yield each, sample


def _row(each: _Candidate) -> dict[str, Any]:
    return {
        "id": each.name,
        "size": len(each.scenes),
        "negatives": each.kind,
        "question": each.question,
        "answer": LETTERS[each.answer],
        "filters": list(each.filters),
        "scenes": [[scene.source, scene.name, scene.modality, scene.caption] for scene in each.scenes],
        "votes": [[None if vote is None else LETTERS[vote] for vote in votes] for votes in each.votes],
    }


def _counts(every: Sequence[_Candidate]) -> dict[str, Any]:
    made: dict[str, Any] = {"drawn": len(every)}
    given_up = Counter(each.problem.partition(":")[0] for each in every if each.problem)
    return made | {"given up": dict(sorted(given_up.items()))}


def _reasons(every: Sequence[_Candidate]) -> str:
    reasons = Counter(each.problem.partition(":")[0] or "round trip" for each in every).most_common(3)
    return "; ".join(f"{n} times: {reason}" for reason, n in reasons) or "no scenes could be put together"
