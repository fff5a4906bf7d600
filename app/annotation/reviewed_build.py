"""Reviewed builds: a new build of the accepted and corrected rows, with the provenance of the review in its manifest."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

from app.annotation.review_outcomes import UNDECIDED, Outcome, agreement_numbers, outcomes, pair_counts
from app.annotation.review_session import Review
from app.annotation.review_store import CHOICES, Decision, ReviewStore
from app.text.text_escaping import spreadsheet_line
from benchmarks.build import Build, BuildWriter
from benchmarks.errors import MediaError, SourceError, SpecError
from benchmarks.media import read_media
from benchmarks.review_guide import correct_example, media_of
from benchmarks.vocabulary import Media, canonical_json

KEEP, DROP = "keep", "drop"


@dataclass
class _Plan:
    """The treatment of a build's rows: the reason why an example is left out, and the corrected rows."""

    left_out: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By example, the row that was rejected or is undecided, and the reason."""
    corrected: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By the id of the original row."""


def write_reviewed_build(
    review: Review,
    store: ReviewStore,
    out: Path,
    *,
    undecided: str | None = None,
    required: int = 1,
    replace: bool = False,
) -> Build:
    """Write the rows of the build that the review keeps, corrected, to the folder ``out``.

    All rows of an example leave with one that is rejected, and a correction changes a text in all of them. Rows that are not
    under review stay. ``undecided`` says what happens to rows without an outcome: "keep" or "drop". Raises SpecError if there
    are any and it is None, if no row is left, and if two rows become equal; SourceError if the build is damaged.
    """
    decisions = store.decisions()
    by_row = outcomes(store.ids(), decisions, required)
    open_rows = Counter(outcome.why for outcome in by_row.values() if outcome.decision is None)
    if open_rows and undecided not in (KEEP, DROP):
        reasons = "; ".join(f"{count}: {why}" for why, count in open_rows.items())
        raise SpecError(
            f"{open_rows.total()} of {len(by_row)} rows are undecided ({reasons}); decide them, use --adjudicate where reviewers "
            "disagree, or add --undecided keep or --undecided drop."
        )
    plan = _plan(review, by_row, undecided or KEEP)
    kept_reviewed: Counter[str] = Counter()
    names: set[str] = set()
    with BuildWriter(out) as writer:
        for row in review.build.rows():
            identifier = str(row["id"])
            if reason := plan.left_out.get(review.guide.example(row)):
                what = f"{reason[1]}" if reason[0] == identifier else f"its example is left out with {reason[0]}"
                writer.add_skipped("review", identifier, what)
                kept_reviewed["left out"] += 1
                continue
            new_row = plan.corrected.get(identifier, row)
            if str(new_row["id"]) in names:
                raise SpecError(
                    f"a correction makes two rows equal, with the id {str(new_row['id'])[:80]!r}; reject one of them."
                )
            names.add(str(new_row["id"]))
            for media in media_of(new_row):
                _copy(review.build, media, writer)
            writer.add_row(new_row)
            kept_reviewed["not under review" if identifier not in by_row else by_row[identifier].choice] += 1
        if not names:
            raise SpecError("the review leaves no row, so there is no build to write.")
        writer.add_file("review.csv", _decisions_csv(decisions).encode("utf-8"))
        manifest = {
            key: review.build.manifest[key] for key in ("benchmark", "seed", "options") if key in review.build.manifest
        } | {
            "review": _provenance(store, review, decisions, by_row, kept_reviewed, undecided, required),
            "source": {"digest": review.build.digest, "manifest": review.build.manifest},
        }
        return writer.finish(manifest, replace=replace)


def _plan(review: Review, by_row: Mapping[str, Outcome], undecided: str) -> _Plan:
    plan = _Plan()
    corrections: dict[str, Mapping[str, str]] = {}
    examples: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    fixed: set[str] = set()
    for row in review.build.rows():
        identifier, example = str(row["id"]), review.guide.example(row)
        outcome = by_row.get(identifier)
        if outcome is None:
            continue
        if outcome.decision is None:
            if undecided == DROP:
                plan.left_out.setdefault(example, (identifier, f"undecided: {outcome.why}"))
        elif outcome.choice == "reject":
            plan.left_out[example] = (identifier, f"rejected: {outcome.decision.reason}")
        elif outcome.choice == "fix":
            corrections[identifier] = outcome.decision.corrections
            fixed.add(example)
    if fixed:
        for row in review.build.rows():
            if (example := review.guide.example(row)) in fixed and example not in plan.left_out:
                examples[example].append(row)
    for rows in examples.values():
        for before, after in zip(rows, correct_example(review.guide, rows, corrections), strict=True):
            plan.corrected[str(before["id"])] = after
    return plan


def _copy(build: Build, media: Media, writer: BuildWriter) -> None:
    """Add a medium of a build to another. Raises SourceError if it is not the one that the build was made with."""
    if writer.has_media(media):
        return
    try:
        writer.add_media(read_media(build.media_path(media), media), media.suffix)
    except MediaError as error:
        raise SourceError(f"{build.path}: {error}") from error


def _provenance(
    store: ReviewStore,
    review: Review,
    decisions: list[Decision],
    by_row: Mapping[str, Outcome],
    kept: Counter[str],
    undecided: str | None,
    required: int,
) -> dict[str, Any]:
    counts = Counter(outcome.choice for outcome in by_row.values())
    reviewers = list(dict.fromkeys(d.reviewer for d in decisions if not d.adjudication))
    choices = {
        name: {d.item: str(d.choice) for d in decisions if d.reviewer == name and not d.adjudication}
        for name in reviewers
    }
    reasons = Counter(o.decision.reason for o in by_row.values() if o.decision and o.choice == "reject")
    facts: dict[str, Any] = {
        "selection": {"rows": len(by_row), **store.meta("selection")},
        "reviewers": {name: dict(Counter(choices[name].values())) for name in reviewers},
        "adjudicators": dict(Counter(d.reviewer for d in decisions if d.adjudication)),
        "required_reviewers": required,
        "outcome": {choice: counts[choice] for choice in (*CHOICES, UNDECIDED)},
        "undecided_rows": undecided if counts[UNDECIDED] else None,
        "rows": dict(sorted(kept.items())),
        "reasons": dict(sorted(reasons.items())),
        "agreement": {f"{a}, {b}": _agreement(choices[a], choices[b], CHOICES) for a, b in combinations(reviewers, 2)},
    }
    if review.guide.grades:
        facts["levels"] = _levels(store, review, decisions, reviewers, by_row)
    return facts


def _agreement(first: Mapping[str, str], second: Mapping[str, str], labels: tuple[str, ...]) -> dict[str, Any]:
    numbers = agreement_numbers(pair_counts(first, second, labels))
    values = {name: None if number.value is None else round(number.value, 6) for name, number in numbers.items()}
    return {"rows": numbers["agreement"].n, **values}


def _levels(
    store: ReviewStore, review: Review, decisions: list[Decision], reviewers: list[str], by_row: Mapping[str, Outcome]
) -> dict[str, Any]:
    """Return the agreement on levels, and how often the reviewers' level is the one that the construction assigned."""
    grades = {
        name: {d.item: d.grade for d in decisions if d.reviewer == name and not d.adjudication and d.grade}
        for name in reviewers
    }
    final = {item: outcome.grade for item, outcome in by_row.items() if outcome.grade}
    as_assigned = sum(grade == review.guide.grade(store.row(item)) for item, grade in final.items())
    return {
        "agreement": {
            f"{a}, {b}": _agreement(grades[a], grades[b], review.guide.grades) for a, b in combinations(reviewers, 2)
        },
        "decided": len(final),
        "as_assigned": as_assigned,
        "overridden": len(final) - as_assigned,
    }


def _decisions_csv(decisions: list[Decision]) -> str:
    header = ("id", "reviewer", "adjudication", "decision", "reason", "corrections", "level")
    return "".join(map(spreadsheet_line, (header, *_cells(decisions))))


def _cells(decisions: list[Decision]) -> Iterator[tuple[str, ...]]:
    for d in decisions:
        corrections = canonical_json(dict(d.corrections)) if d.corrections else ""
        yield d.item, d.reviewer, "yes" if d.adjudication else "", d.choice, d.reason, corrections, d.grade
