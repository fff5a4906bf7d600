"""Questions under construction, and those accepted for one size and kind of negatives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from benchmarks.contra4.construction.round_trip_filters import Votes
from benchmarks.contra4.contra4_balanced import balanced
from benchmarks.contra4.contra4_constants import LETTERS, MODALITIES, NO_CATEGORY, combination_name
from benchmarks.contra4.contra4_sample import Contra4Sample, Scene
from benchmarks.contra4.sources.contra4_released import CAPTIONED_PAPER
from benchmarks.vocabulary import Modality, digest

ACCEPTED_FILTER = "PUF"
"""The filter whose samples become the build's (the paper's choice)."""

_SMALLEST_WAVE, _LARGEST_WAVE = 8, 64
_DRAWN = 20
"""The maximum number of candidates drawn per requested sample."""


@dataclass
class QuestionCandidate:
    """A group of scenes under construction: requests, replies, and the problem if it is given up."""

    scenes: tuple[Scene, ...]
    kind: str
    files: tuple[Path, ...]
    question: str = ""
    answer: int = 0
    topic: str = ""
    category: str = NO_CATEGORY
    problem: str = ""
    filters: tuple[str, ...] = ()
    votes: list[Votes] = field(default_factory=list)

    @property
    def captions(self) -> list[str]:
        return [scene.caption for scene in self.scenes]

    @property
    def name(self) -> str:
        return digest([[scene.source, scene.name, scene.modality, scene.caption] for scene in self.scenes])[:16]

    @property
    def passes(self) -> bool:
        return not self.problem and ACCEPTED_FILTER in self.filters

    @property
    def combination(self) -> str:
        return combination_name(tuple(scene.modality for scene in self.scenes))

    @property
    def right(self) -> Modality:
        return self.scenes[self.answer].modality

    def sample(self, source: str, position: int) -> Contra4Sample:
        """Return its sample with the right scene at ``position``; the other scenes keep their order."""
        others = [scene for place, scene in enumerate(self.scenes) if place != self.answer]
        return Contra4Sample(
            row_id=self.name,
            question=self.question,
            scenes=(*others[:position], self.scenes[self.answer], *others[position:]),
            answer=position,
            gold=LETTERS[position],
            negatives=self.kind,
            category=self.category,
            source=source,
            filters=self.filters,
        )


@dataclass
class CandidateStratum:
    """Candidates of one size and kind of negatives: the accepted ones, up to the target, and all tried ones."""

    drawn: Iterator[QuestionCandidate]
    target: int
    source: str
    accepted: list[QuestionCandidate] = field(default_factory=list)
    tried: list[QuestionCandidate] = field(default_factory=list)

    def wave(self) -> list[QuestionCandidate]:
        """Return the next candidates; none if enough are accepted or tried, or no more can be drawn."""
        wave_size = max(_SMALLEST_WAVE, _DRAWN * self.target) - len(self.tried)
        missing = self.target - len(self.accepted)
        size = min(max(_SMALLEST_WAVE, min(_LARGEST_WAVE, 2 * missing)), wave_size)
        return list(islice(self.drawn, size)) if missing > 0 else []

    def take(self, wave: Sequence[QuestionCandidate]) -> None:
        """Accept the passing candidates of a processed wave, balanced with the earlier ones unless as in the paper."""
        self.tried += wave
        passing = {candidate.name: candidate for candidate in self.tried if candidate.passes}
        if self.source == CAPTIONED_PAPER:
            self.accepted = list(passing.values())[: self.target]
        else:
            chosen = balanced([candidate.sample(self.source, 0) for candidate in passing.values()], self.target)
            self.accepted = [passing[sample.row_id] for sample in chosen]

    def rejected(self) -> Iterator[tuple[QuestionCandidate, str]]:
        """Yield every rejected candidate with its reason, which begins with the step."""
        accepted = {candidate.name for candidate in self.accepted}
        right = {(candidate.combination, candidate.right) for candidate in self.tried if candidate.passes}
        for candidate in self.tried:
            if candidate.problem:
                yield candidate, candidate.problem
            elif not candidate.passes:
                yield candidate, f"round trip: passes {', '.join(candidate.filters) or 'no filter'}"
            elif candidate.name not in accepted:
                name = candidate.combination
                never = [MODALITIES[s.modality] for s in candidate.scenes if (name, s.modality) not in right]
                if self.source == CAPTIONED_PAPER or len(self.accepted) >= self.target:
                    yield candidate, "enough: no more of this size and negatives are wanted"
                elif never:
                    yield candidate, f"balance: with {name}, the right scene is never {' or '.join(sorted(never))}"
                else:
                    yield candidate, f"balance: with {name}, the right scene is {MODALITIES[candidate.right]} too often"
