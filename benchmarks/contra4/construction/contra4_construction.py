"""The construction: a model asks and answers about drawn scenes, several models answer under all permutations.

Candidates of all sizes and negatives go in waves, and a wave sends each model all its requests at once, so that a local
machine switches models as rarely as possible. The result depends only on the replies, not on their order.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.build import BuildOptions, BuildWriter
from benchmarks.contra4.construction.contra4_construction_prompts import (
    answer_prompt,
    choice_prompt,
    excluded_term,
    parse_question,
    question_prompt,
)
from benchmarks.contra4.construction.filter_tables import checks_sheet, filter_tables
from benchmarks.contra4.construction.question_candidates import CandidateStratum, QuestionCandidate
from benchmarks.contra4.construction.question_categories import category_prompt, group_topic, parse_topic
from benchmarks.contra4.construction.round_trip_filters import passed_filters, scene_orders
from benchmarks.contra4.construction.scene_sampling import NearestCaptions, Pool, WordCounts, draw_scenes
from benchmarks.contra4.contra4_constants import LETTERS, MODALITIES, SIZES
from benchmarks.contra4.contra4_parse_answer import parse_choice
from benchmarks.contra4.contra4_sample import Contra4Sample, Scene, parse_scene
from benchmarks.contra4.sources.contra4_released import CAPTIONED, CAPTIONED_PAPER, Contra4SourceRow, json_files
from benchmarks.errors import SourceError, SpecError
from benchmarks.rows.files import SkippedRow, read_rows
from benchmarks.rows.reader_types import RowProblem
from benchmarks.text.answer_text import visible_answer
from benchmarks.text_model import TextModel, generate_all
from benchmarks.vocabulary import Decoding, Generation, Message, Modality, Request, Text, canonical_json

_STEPS = {
    "question": Decoding(max_tokens=120, temperature=1.05, top_p=0.9),
    "answer": Decoding(max_tokens=120, temperature=0.3, top_p=0.9),
    "choice": Decoding(max_tokens=30, temperature=0.3, top_p=0.9),
    "category": Decoding(max_tokens=60, temperature=0.3, top_p=0.9),
}
"""Appendix G; the limits are the published code's. The temperature and the limit of "category" are ours."""


@dataclass(frozen=True, slots=True)
class ConstructedQuestions:
    """The accepted samples, and the manifest's report of the construction."""

    samples: Sequence[Contra4SourceRow]
    report: Mapping[str, Any]


def construct(
    place: str, writer: BuildWriter, options: BuildOptions, checks: Sequence[Path] = (), *, source: str = CAPTIONED
) -> ConstructedQuestions:
    """Construct ``options.per_stratum`` samples per size and kind of negatives from the captioned media in ``place``.

    They are balanced (:func:`balanced`), unless ``source`` is the paper's construction, which takes the first that pass.
    Rejected candidates are recorded with ``writer.add_skipped``; each reason begins with the step. The build also gets
    ``candidates.jsonl``, ``checks.csv`` for human checks, and the paper's tables 1, 5 and (with ``checks``, the filled-in
    sheets) 7. Raises SpecError without models, SourceError for a folder without captioned media or an invalid sheet,
    ModelError if a model stops answering; the next build reuses the replies so far.
    """
    models = _models(options)
    pool, files = read_pool(place, writer)
    embedder = options.embedder or WordCounts()
    nearest_captions = NearestCaptions(pool, embedder)
    strata = [
        CandidateStratum(_candidates(pool, size, kind, nearest, files, options), options.per_stratum, source)
        for size in SIZES
        for kind, nearest in (("random", None), ("similar", nearest_captions))
    ]
    while waves := [(stratum, wave) for stratum in strata if (wave := stratum.wave())]:
        _process([candidate for _, wave in waves for candidate in wave], models, options.seed)
        for stratum, wave in waves:
            stratum.take(wave)
    rejected = [item for stratum in strata for item in stratum.rejected()]
    for candidate, reason in rejected:
        writer.add_skipped(CAPTIONED, candidate.name, reason)
    accepted_candidates = [candidate for stratum in strata for candidate in stratum.accepted]
    tried = [candidate for stratum in strata for candidate in stratum.tried]
    if not accepted_candidates:
        raise SourceError(f"no question about {place} is accepted ({_reasons(rejected)}).")
    _write_categories(accepted_candidates, models[0], options.seed)
    _write_checks(tried, writer, options.seed, checks)
    report = {
        "models": {"writer": models[0].name, "round trip": [model.name for model in models], "embedder": embedder.name},
        "construction": _counts(tried),
        "categories": _categories(accepted_candidates),
        "per_stratum": options.per_stratum,
    }
    placed = _in_positions(accepted_candidates, source)
    rows = [Contra4SourceRow(candidate.name, sample, candidate.files[0]) for candidate, sample in placed]
    return ConstructedQuestions(rows, report)


def _write_checks(tried: Sequence[QuestionCandidate], writer: BuildWriter, seed: int, checks: Sequence[Path]) -> None:
    """Write the candidates that were voted on, a sheet of them for people, and the paper's tables on the filters."""
    voted = [_row(candidate) for candidate in tried if candidate.votes]
    lines = "".join(canonical_json(row) + "\n" for row in voted)
    writer.add_file("candidates.jsonl", lines.encode("utf-8"))
    writer.add_sheet("checks.csv", checks_sheet(voted, seed).encode("utf-8"))
    for name, text in filter_tables(voted, checks).items():
        writer.add_file(name, text.encode("utf-8"))


def read_pool(place: str, writer: BuildWriter) -> tuple[Pool, Mapping[tuple[str, str], Path]]:
    """Return the captioned media of a folder by modality, and the file that names each.

    Rows are ``{"source", "id", "modality", "caption"}``, or published rows, of which the examples are taken.
    Raises SourceError where there are none of two modalities.
    """
    pool: defaultdict[Modality, list[Scene]] = defaultdict(list)
    files: dict[tuple[str, str], Path] = {}
    for file in json_files(place):
        for row in read_rows(file, file.parent, CAPTIONED):
            if isinstance(row, SkippedRow):
                writer.add_skipped(row.source, row.row, row.reason)
                continue
            examples, modalities = row.fields.get("examples"), row.fields.get("modalities")
            if not (isinstance(examples, list) and isinstance(modalities, list)):
                examples, modalities = [row.fields], [row.fields.get("modality")]
            for example, modality in zip(examples, modalities, strict=False):
                try:
                    scene = parse_scene(example, modality)
                except RowProblem as problem:
                    writer.add_skipped(CAPTIONED, row.where, str(problem))
                    continue
                if (scene.source, scene.name) not in files:
                    files[scene.source, scene.name] = file
                    pool[scene.modality].append(scene)
    if len(pool) < 2:
        raise SourceError(f"{place} has captioned media of {len(pool)} modalities; a question needs two.")
    return {modality: pool[modality] for modality in MODALITIES if modality in pool}, files


def _models(options: BuildOptions) -> tuple[TextModel, ...]:
    if options.writer is None:
        raise SpecError(
            "a construction needs a model that asks and answers, and further models that answer again: add --writer MODEL and "
            "--checker MODEL, twice for the paper's three."
        )
    models = (options.writer, *(options.checkers or ([options.checker] if options.checker else [])))
    names = [model.name for model in models]
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise SpecError(
            f"{repeated[0]} is named twice, but each model of the round trip answers once; name another --checker."
        )
    return models


def _candidates(
    pool: Pool,
    size: int,
    kind: str,
    near: NearestCaptions | None,
    files: Mapping[tuple[str, str], Path],
    options: BuildOptions,
) -> Iterator[QuestionCandidate]:
    for scenes in draw_scenes(pool, size, near, options.seed):
        yield QuestionCandidate(scenes, kind, tuple(files[scene.source, scene.name] for scene in scenes))


def _process(wave: Sequence[QuestionCandidate], models: Sequence[TextModel], seed: int) -> None:
    """Run steps 2 to 4 on a wave, in place; the first model asks and answers, all models choose."""
    _write_questions(wave, models[0], seed)
    with_question = [candidate for candidate in wave if not candidate.problem]
    _write_answers(with_question, models[0], seed)
    _round_trip([candidate for candidate in with_question if not candidate.problem], models, seed)


def _write_questions(wave: Sequence[QuestionCandidate], writer: TextModel, seed: int) -> None:
    """Step 2: have a question written for each candidate, and apply the rule filter to it."""
    prompts = [question_prompt(candidate.captions) for candidate in wave]
    for candidate, reply in _ask(writer, "question", wave, prompts, seed):
        question = parse_question(visible_answer(reply.text))
        candidate.question = question or ""
        if reply.finish_reason == "error":
            candidate.problem = f"error: the writer gave no question ({reply.error})"
        elif question is None:
            candidate.problem = "question: the reply is no question on one line"
        elif (term := excluded_term(question)) is not None:
            candidate.problem = f"rule filter: {term}"


def _write_answers(wave: Sequence[QuestionCandidate], writer: TextModel, seed: int) -> None:
    """Step 3: have each candidate's question answered."""
    prompts = [answer_prompt(candidate.captions, candidate.question) for candidate in wave]
    for candidate, reply in _ask(writer, "answer", wave, prompts, seed):
        letter, rule = parse_choice(reply.text, LETTERS[: len(candidate.scenes)])
        if reply.finish_reason == "error":
            candidate.problem = f"error: the writer gave no answer ({reply.error})"
        elif letter is None:
            candidate.problem = f"answer: {rule}"
        else:
            candidate.answer = LETTERS.index(letter)


def _round_trip(wave: Sequence[QuestionCandidate], models: Sequence[TextModel], seed: int) -> None:
    """Step 4: have every model choose under every permutation, and record the filters that each candidate passes."""
    trials = [(candidate, order) for candidate in wave for order in scene_orders(len(candidate.scenes))]
    prompts = [choice_prompt([candidate.captions[i] for i in order], candidate.question) for candidate, order in trials]
    by_model: list[list[int | None]] = []
    failed: dict[int, str] = {}
    for model in models:
        votes: list[int | None] = []
        replies = _ask(model, "choice", [candidate for candidate, _ in trials], prompts, seed)
        for (candidate, order), (_, reply) in zip(trials, replies, strict=True):
            letter, _ = parse_choice(reply.text, LETTERS[: len(candidate.scenes)])
            votes.append(order[LETTERS.index(letter)] if letter else None)
            if reply.finish_reason == "error":
                failed[id(candidate)] = f"error: {model.name} gave no choice ({reply.error})"
        by_model.append(votes)
    for (candidate, _), trial_votes in zip(trials, zip(*by_model, strict=True), strict=True):
        candidate.votes.append(list(trial_votes))
    for candidate in wave:
        candidate.filters = passed_filters(candidate.votes, candidate.answer)
        if id(candidate) in failed:  # with a vote missing, the filters say nothing
            candidate.problem, candidate.votes, candidate.filters = failed[id(candidate)], [], ()


def _write_categories(accepted: Sequence[QuestionCandidate], writer: TextModel, seed: int) -> None:
    """Have the topic of each distinct question named, and assign its category; without a topic it has none (Appendix D)."""
    same_question: dict[str, list[QuestionCandidate]] = {}
    for candidate in accepted:
        same_question.setdefault(candidate.question, []).append(candidate)
    prompts = [category_prompt(question) for question in same_question]
    firsts = [candidates[0] for candidates in same_question.values()]
    for first, reply in _ask(writer, "category", firsts, prompts, seed):
        topic = parse_topic(visible_answer(reply.text)) if reply.finish_reason != "error" else None
        if topic is not None:
            for candidate in same_question[first.question]:
                candidate.topic, candidate.category = topic, group_topic(topic)


def _ask(
    model: TextModel, step: str, candidates: Sequence[QuestionCandidate], texts: Sequence[str], seed: int
) -> list[tuple[QuestionCandidate, Generation]]:
    """Return the replies, in the order of ``texts``. Raises ModelError if a model answers none of many requests."""
    decoding = replace(_STEPS[step], seed=seed)
    requests = [
        Request(f"contra4-{step}-{place}", 0, (Message("user", (Text(text),)),), decoding)
        for place, text in enumerate(texts)
    ]
    replies = generate_all(model, requests)
    nothing = Generation("", "", "error", error="no reply came")
    return [
        (candidate, replies.get(request.id, nothing)) for candidate, request in zip(candidates, requests, strict=True)
    ]


def _in_positions(
    accepted: Sequence[QuestionCandidate], source: str
) -> Iterator[tuple[QuestionCandidate, Contra4Sample]]:
    """Yield the samples with the right scene spread evenly over positions, per size and kind of negatives.

    They are even per combination and right modality too, unless as in the paper. A sample of PUF is right in any order, so
    that nothing is lost.
    """
    counts: Counter[tuple[Hashable, ...]] = Counter()
    for candidate in accepted:
        size, start = len(candidate.scenes), 0
        group: tuple[Hashable, ...] = (size, candidate.kind)
        if source != CAPTIONED_PAPER:
            group = (candidate.kind, candidate.combination, candidate.right)
            start = sorted(scene.modality for scene in candidate.scenes).index(candidate.right)
        yield candidate, candidate.sample(source, (start + counts[group]) % size)
        counts[group] += 1


def _row(candidate: QuestionCandidate) -> dict[str, Any]:
    return {
        "id": candidate.name,
        "size": len(candidate.scenes),
        "negatives": candidate.kind,
        "question": candidate.question,
        "answer": LETTERS[candidate.answer],
        "topic": candidate.topic,
        "category": candidate.category,
        "filters": list(candidate.filters),
        "scenes": [[scene.source, scene.name, scene.modality, scene.caption] for scene in candidate.scenes],
        "votes": [[None if vote is None else LETTERS[vote] for vote in votes] for votes in candidate.votes],
    }


def _counts(tried: Sequence[QuestionCandidate]) -> dict[str, Any]:
    counts: dict[str, Any] = {"drawn": len(tried)}
    given_up = Counter(candidate.problem.partition(":")[0] for candidate in tried if candidate.problem)
    return counts | {"given up": dict(sorted(given_up.items()))}


def _categories(accepted: Sequence[QuestionCandidate]) -> dict[str, int]:
    return dict(sorted(Counter(candidate.category for candidate in accepted).items()))


def _reasons(rejected: Sequence[tuple[QuestionCandidate, str]]) -> str:
    reasons = Counter(reason.partition(":")[0] for _, reason in rejected).most_common(3)
    return "; ".join(f"{n} times: {reason}" for reason, n in reasons) or "no scenes could be put together"
