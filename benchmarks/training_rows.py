"""Training rows: a prompt as a benchmark shows it, the answer to learn, and where they come from."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

from benchmarks.errors import SpecError, did_you_mean
from benchmarks.vocabulary import Instance, Media, Text, digest

Kind = Literal["conflict", "no conflict"]
Target = Literal["name", "compare", "answer", "abstain"]

TARGETS: dict[Target, str] = {
    "name": "name the conflict: what the image says and what the text says",
    "compare": "write what each source says, with and without a conflict, and then the answer or the conflict",
    "answer": "the answer of the source that is right",
    "abstain": "say that the sources conflict and that there is no answer",
}
"""The form of the target of a row whose sources conflict, for benchmarks that leave it open."""

ABSTENTION = "Conflicting information \N{EN DASH} cannot answer"
"""CLASH's answer to a conflict (Appendix B.3, without a full stop)."""


@dataclass(frozen=True, slots=True)
class TrainingOptions:
    """Options of training data.

    ``filter`` selects examples by how they were filtered, for the benchmarks that have filters; "" is their default.
    ``limit`` is the most rows, None for the benchmark's own number.
    """

    seed: int = 0
    prompt_set: str = ""
    target: Target = "name"
    filter: str = ""
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class TrainingRow:
    """A prompt with the answer to learn.

    ``rejected`` is an answer to prefer it to, which ignores a conflict or names one that is not there; "" if there is none.
    ``own_images`` are the pictures of its example, which the row need not show; None if they are those of the instance.
    """

    instance: Instance
    target: str
    kind: Kind
    rejected: str = ""
    own_images: tuple[Media, ...] | None = None


def row_to_json(
    row: TrainingRow, images: Sequence[str], own_images: Sequence[str], benchmark: str, build: str
) -> dict[str, Any]:
    """Return a row in the format of mlx-vlm's trainer, with its provenance in keys that the trainer ignores.

    ``images`` are the paths of the row's images, in the order of the prompt; ``own_images`` those of its example, shown or not.
    """
    content = [
        {"type": "text", "text": part.text} if isinstance(part, Text) else {"type": "image"}
        for part in row.instance.parts
    ]
    return {
        "images": list(images),
        "messages": [
            {"role": "user", "content": content},
            {"role": "assistant", "content": [{"type": "text", "text": row.target}]},
        ],
        "id": row.instance.id,
        "group": row.instance.group,
        "question": row.instance.question,
        "kind": row.kind,
        **({"rejected": row.rejected} if row.rejected else {}),
        "condition": row.instance.condition,
        "references": {source: list(answers) for source, answers in row.instance.references.items()},
        "strata": dict(row.instance.strata),
        "own_images": list(own_images),
        "image_digests": [part.sha256 for part in row.instance.parts if isinstance(part, Media)],
        "benchmark": benchmark,
        "build": build,
    }


def draw(options: TrainingOptions, purpose: str, identifier: str) -> random.Random:
    """Return the random numbers of one example: the same for a seed, whatever the other examples are."""
    return random.Random(digest([options.seed, purpose, identifier]))


def by_group(instances: Iterable[Instance]) -> Iterator[dict[str, Instance]]:
    """Yield the instances of each example by condition; of several with one condition, the first."""
    for _, siblings in groupby(instances, key=lambda instance: instance.group):
        example: dict[str, Instance] = {}
        for instance in siblings:
            example.setdefault(instance.condition, instance)
        yield example


def choose_filter(name: str, benchmark: str, filters: Sequence[str]) -> str:
    """Return the filter ``name``, or the first of ``filters`` if it is empty. Raises SpecError for any other name."""
    if name and name not in filters:
        known = f"it has no filters; leave out --filter {name}." if not filters else did_you_mean(name, filters)
        raise SpecError(f"{benchmark} has no filter {name!r}; {known}")
    return name or (filters[0] if filters else "")
