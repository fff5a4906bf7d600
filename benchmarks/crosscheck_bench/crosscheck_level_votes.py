"""Votes of models on the level of samples (section "Quality Verification"): the level that most of them agree on.

The paper has three models label tasks as L1, L2 or L3, and experts finish and override the labels. It prints no prompt; this one
is ours. A level that no two models agree on is left to people, as is every level in `rashomon review`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.crosscheck_bench.crosscheck_constants import LETTERS, LEVELS
from benchmarks.crosscheck_bench.crosscheck_sample import CrossCheckSample
from benchmarks.rubric import one_line
from benchmarks.text.answer_text import visible_answer
from benchmarks.text_model import TextModel, generate_all
from benchmarks.untrusted.spreadsheet_formula_guard import csv_line
from benchmarks.vocabulary import Choice, Decoding, Message, Part, Request, Text

_INSTRUCTION = """\
You assess how hard a question about pictures and texts of products is. Reply with one level:
L1 - perception: it needs one skill, such as to find, name, read or compare one thing.
L2 - integration: it needs two or three skills together, such as to match a text with a picture or one picture with another.
L3 - reasoning: it needs several clues together with numbers or rules, such as whether a combination is plausible or allowed.
Do not answer the question itself. Reply with only L1, L2 or L3."""

_DECODING = Decoding(max_tokens=256)


@dataclass(frozen=True, slots=True)
class LevelVotes:
    """The votes of the models on the samples, by the samples' ids; a reply that is no level is "".

    ``models`` are the names of the voters, in the order of the votes.
    """

    models: tuple[str, ...]
    votes: Mapping[str, tuple[str, ...]]

    def consensus(self, sample_id: str) -> str:
        """Return the level for which more than half of the models voted, else ""."""
        level, count = Counter(self.votes[sample_id]).most_common(1)[0]
        return level if 2 * count > len(self.models) else ""

    def summary(self, levels: Mapping[str, str]) -> dict[str, object]:
        """Return counts for the manifest; ``levels`` are those of the samples' tasks."""
        agreed = {sample: self.consensus(sample) for sample in self.votes}
        unanimous = sum(len({*votes}) == 1 and bool(votes[0]) for votes in self.votes.values())
        return {
            "models": list(self.models),
            "samples": len(self.votes),
            "unanimous": unanimous,
            "by most": sum(map(bool, agreed.values())) - unanimous,
            "left to people": sum(not level for level in agreed.values()),
            "another level than the task's": sum(bool(level) and level != levels[s] for s, level in agreed.items()),
        }

    def sheet(self, samples: Sequence[CrossCheckSample]) -> bytes:
        """Return the votes as a CSV file, a row for each sample."""
        lines = [csv_line(("id", "task", "level of the task", *self.models, "consensus"))]
        for sample in samples:
            votes = self.votes[sample.id]
            lines.append(csv_line((sample.id, sample.task, sample.level, *votes, self.consensus(sample.id))))
        return "".join(lines).encode("utf-8")


def vote(samples: Sequence[CrossCheckSample], models: Sequence[TextModel], seed: int) -> LevelVotes:
    """Return the models' votes on every sample. Raises ModelError if a model answers nothing."""
    votes: dict[str, list[str]] = {sample.id: [] for sample in samples}
    for model in models:
        requests = [_request(sample, seed) for sample in samples]
        replies = generate_all(model, requests)
        for sample, request in zip(samples, requests, strict=True):
            reply = replies.get(request.id)
            votes[sample.id].append("" if reply is None or reply.finish_reason == "error" else _level(reply.text))
    return LevelVotes(tuple(model.name for model in models), {name: tuple(levels) for name, levels in votes.items()})


def _request(sample: CrossCheckSample, seed: int) -> Request:
    options = [f"{letter}. {one_line(option)}" for letter, option in zip(LETTERS, sample.options, strict=False)]
    lines = (
        _INSTRUCTION,
        "",
        f"Text: {one_line(sample.text)}" if sample.text else "",
        f"Question: {one_line(sample.question)}",
    )
    parts: tuple[Part, ...] = (*sample.frames, Text("\n".join([*filter(None, lines), *options])))
    return Request(
        sample.id, 0, (Message("user", parts),), Decoding(_DECODING.max_tokens, seed=seed), Choice(tuple(LEVELS))
    )


def _level(reply: str) -> str:
    word = visible_answer(reply).strip(" .*`\"'").upper()
    return word if word in LEVELS else ""
