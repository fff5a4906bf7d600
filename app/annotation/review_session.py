"""Review sessions: the rows of a build that people review, and one person's way through them. Used by the CLI and the TUI."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from app.annotation.review_store import Choice, Decision, ReviewStore
from app.engine.run_plan import not_built
from app.store.question_sets import build_name
from app.store.workspace import Workspace
from benchmarks import number_ranges as ranges
from benchmarks.base import Benchmark
from benchmarks.build import Build
from benchmarks.errors import SpecError, did_you_mean
from benchmarks.hash_collections import HashOrder, hash64
from benchmarks.registry import benchmark_names, get_benchmark
from benchmarks.review_guide import ReviewField, ReviewGuide, ReviewMedium, check_corrections
from benchmarks.untrusted.typed_paths import path_exists, typed_path

LONGEST_REASON = 1_000
"""The most characters of a reason."""


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """A row as a reviewer sees it; ``opinions`` are the reviewers' decisions, which only an adjudicator sees."""

    id: str
    fields: tuple[ReviewField, ...]
    media: tuple[ReviewMedium, ...]
    opinions: tuple[Decision, ...] = ()


@dataclass(frozen=True)
class Review:
    """A review of a build: its folder in the workspace, the build, and the benchmark's guide."""

    folder: Path
    build: Build
    benchmark: Benchmark
    guide: ReviewGuide

    def open(self) -> ReviewStore:
        """Open the store. Raises ReviewChangedError if the build has changed since the review began."""
        return ReviewStore.open(self.folder, self.build.digest)


def find_build(workspace: Workspace, name: str | Path) -> Build:
    """Open a build, given as its folder, a question set, or a benchmark that is built in the workspace.

    Raises SpecError for a name that is none of these, SourceError for a folder that is no build.
    """
    text, names = str(name), benchmark_names()
    if not path_exists(typed_path(text)) and text in names:
        path = workspace.build_folder(text)
        if not path.exists():
            raise not_built(workspace, text, "name a build's folder")
        return Build.open(path)
    path = workspace.data_folder(text)
    if not path_exists(path):
        raise SpecError(
            f"there is no build {text!r}; name a build's folder or a benchmark. {did_you_mean(text, names)}"
        )
    return Build.open(path)


def find_review(
    workspace: Workspace,
    build: Build,
    *,
    name: str | None = None,
    share: float | None = None,
    seed: int | None = None,
) -> Review:
    """Return the review ``name`` of a build, by default named as the build's folder; begin it if there is none.

    A review concerns the rows that the construction reserved for manual checks (all, if it reserves none), or a random
    ``share`` of all rows. Raises SpecError for a share outside (0, 1] or other than the one that the review began with, and
    ReviewChangedError if the build has changed since.
    """
    ranges.REVIEW_SHARE.check("--share", share)
    build.require_plain()
    benchmark = get_benchmark(build.benchmark)
    folder = workspace.path / "reviews" / review_name(build, name)
    review = Review(folder, build, benchmark, benchmark.review_guide)
    if not ReviewStore.exists(folder):
        workspace.require_writable()
        selection = {"share": share, "seed": seed or 0}
        facts = {
            "benchmark": build.benchmark,
            "build": str(build.path),
            "build digest": build.digest,
            "created": time.time(),
            "selection": selection,
        }
        ReviewStore.begin(folder, facts, _selected(review, share, seed or 0)).close()
        return review
    with review.open() as store:
        selection = store.meta("selection")
        if (share is not None and share != selection["share"]) or (seed is not None and seed != selection["seed"]):
            raise SpecError(
                f"the review {folder.name} began with {_describe_selection(selection)}; leave --share and --seed out, or begin "
                "another review with --name."
            )
    return review


def review_name(build: Build, name: str | None) -> str:
    """Return a review's name, which is the name of a folder. Raises SpecError for an invalid one."""
    text = build_name(build.path) if name is None else name
    if not text or len(text) > 100 or text.startswith(".") or "/" in text or not text.isprintable():
        raise SpecError(f"{text[:40]!r} cannot name a review; choose another --name, without slashes.")
    return text


def _describe_selection(selection: Mapping[str, Any]) -> str:
    return (
        "the reserved rows"
        if selection["share"] is None
        else f"--share {selection['share']} --seed {selection['seed']}"
    )


def _selected(review: Review, share: float | None, seed: int) -> Iterator[dict[str, Any]]:
    if share is None:
        yield from (row for row in review.build.rows() if review.guide.is_reserved(row))
        return
    order, count = HashOrder(), 0
    for number, row in enumerate(review.build.rows()):
        order.add(hash64(f"{seed}|review|{row['id']}"), number)
        count += 1
    wanted = max(1, round(share * count))
    chosen = {number for place, (_, number) in enumerate(order) if place < wanted}
    yield from (row for number, row in enumerate(review.build.rows()) if number in chosen)


def disagreements(decisions: Sequence[Decision]) -> dict[str, tuple[Decision, ...]]:
    """Return the reviewers' decisions on the rows on which they disagree, in choice, correction or level, by row."""
    return {item: made for item, made in by_item(decisions).items() if _disagree(made)}


def by_item(decisions: Sequence[Decision]) -> dict[str, tuple[Decision, ...]]:
    """Return the reviewers' decisions by row, without adjudications."""
    items: defaultdict[str, list[Decision]] = defaultdict(list)
    for decision in decisions:
        if not decision.adjudication:
            items[decision.item].append(decision)
    return {item: tuple(made) for item, made in items.items()}


def _disagree(decisions: Sequence[Decision]) -> bool:
    grades = {decision.grade for decision in decisions if decision.grade}
    return len({decision.content for decision in decisions}) > 1 or len(grades) > 1


class ReviewSession:
    """One person's session: the current row, and how many are decided. A reviewer sees no decision of anyone else.

    An adjudicator gets the rows on which the reviewers disagree, with their decisions.
    """

    def __init__(self, review: Review, store: ReviewStore, reviewer: str, *, adjudicate: bool = False) -> None:
        """Begin or continue a session. Raises SpecError if an adjudicator has reviewed the rows."""
        self.guide = review.guide
        self.reviewer = reviewer
        self.adjudicate = adjudicate
        self._opinions: dict[str, tuple[Decision, ...]] = {}
        if adjudicate:
            decisions = store.decisions()
            if any(decision.reviewer == reviewer and not decision.adjudication for decision in decisions):
                raise SpecError(
                    f"{reviewer} has reviewed rows of this build, so their word would count twice; choose another adjudicator."
                )
            self._opinions = disagreements(decisions)
            self._order = list(self._opinions)
            mine = [decision for decision in decisions if decision.adjudication]
        else:
            self._order = store.ids()
            mine = store.decisions(reviewer, adjudication=False)
        self._done = {decision.item for decision in mine} & set(self._order)
        self._skipped: set[str] = set()
        self._at = 0
        self._shown = 0.0
        self.current: ReviewItem | None = None
        self._advance(store)

    @property
    def total(self) -> int:
        return len(self._order)

    @property
    def count(self) -> int:
        """The number of decided rows."""
        return len(self._done)

    @property
    def skipped(self) -> int:
        """The number of rows that were skipped in this session; they come up again in the next."""
        return len(self._skipped)

    @property
    def position(self) -> int:
        """The current row's position in the order, from 1."""
        return self._at + 1

    def decide(
        self,
        store: ReviewStore,
        choice: Choice,
        *,
        reason: str = "",
        corrections: Mapping[str, str] | None = None,
        grade: str = "",
    ) -> None:
        """Store a decision on the current row, and advance.

        Raises SpecError for a rejection without a reason, an invalid correction, or an unknown level.
        """
        item = self.current
        if item is None:
            return
        decision = Decision(
            item.id,
            self.reviewer,
            choice,
            reason.strip(),
            dict(corrections or {}),
            grade,
            round(time.monotonic() - self._shown, 1),
            self.adjudicate,
        )
        check_decision(self.guide, store, decision)
        store.decide(decision)
        self._done.add(item.id)
        self._skipped.discard(item.id)
        self._advance(store)

    def skip(self, store: ReviewStore) -> None:
        """Leave the current row undecided for now."""
        if self.current is not None:
            self._skipped.add(self.current.id)
            self._advance(store)

    def undo(self, store: ReviewStore) -> bool:
        """Set this person's last decision aside and return to its row; return False if there is none."""
        item = store.undo(self.reviewer, adjudication=self.adjudicate)
        if item is None:
            return False
        self._done.discard(item)
        self._skipped.discard(item)
        if item in self._order:  # an adjudicated row may not be in dispute any more
            self._at = self._order.index(item)
            self._show(store)
        return True

    def _advance(self, store: ReviewStore) -> None:
        """Show the next undecided row after the current one, then those before it."""
        numbers = [*range(self._at, self.total), *range(self._at)]
        open_ones = (n for n in numbers if self._order[n] not in self._done and self._order[n] not in self._skipped)
        place = next(open_ones, None)
        if place is None:
            self.current = None
            return
        self._at = place
        self._show(store)

    def _show(self, store: ReviewStore) -> None:
        identifier = self._order[self._at]
        self.current = replace(review_item(self.guide, store, identifier), opinions=self._opinions.get(identifier, ()))
        self._shown = time.monotonic()


def review_item(guide: ReviewGuide, store: ReviewStore, identifier: str) -> ReviewItem:
    """Return a row under review as a reviewer sees it."""
    row = store.row(identifier)
    return ReviewItem(identifier, guide.fields(row), guide.media(row))


def check_decision(guide: ReviewGuide, store: ReviewStore, decision: Decision) -> None:
    """Raise SpecError unless a decision is complete and valid for its row."""
    if decision.choice == "reject" and not decision.reason:
        raise SpecError(f"a rejection needs a reason; for example {', '.join(guide.reasons)}.")
    if len(decision.reason) > LONGEST_REASON or "\0" in decision.reason:
        raise SpecError(f"the reason is longer than {LONGEST_REASON:,} characters; shorten it.")
    if decision.grade and decision.grade not in guide.grades:
        levels = ", ".join(guide.grades)
        raise SpecError(
            f"{decision.grade[:40]!r} is no level here; " + (f"use {levels}." if levels else "leave it out.")
        )
    if decision.choice == "fix":
        check_corrections(guide, store.row(decision.item), decision.corrections)
    elif decision.corrections:
        raise SpecError(
            f"a text is corrected, but the decision is {decision.choice}; decide fix, or undo the correction."
        )
