"""The build of CMC-Bench: data sources in, instances on disk out."""

from __future__ import annotations

import hashlib
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.build import Build, BuildOptions, BuildWriter
from benchmarks.cmc_bench.constants import CONDITIONS, PAPER_CONDITIONS, TYPES
from benchmarks.cmc_bench.construction.candidates import Candidate, candidates
from benchmarks.cmc_bench.construction.pipeline import ConstructedExamples, construct, rank_key
from benchmarks.cmc_bench.instances import InstanceDraft, draft_instances
from benchmarks.cmc_bench.released import read_released
from benchmarks.cmc_bench.sources import read_source
from benchmarks.cmc_bench.sources.base import SourceRow, resolve_sources
from benchmarks.errors import NothingUsableError, SourceError, SpecError
from benchmarks.rows.files import Loader, SkippedRow
from benchmarks.rows.sources import top_reasons
from benchmarks.vocabulary import Media, digest

_CHECKED = 0.2
"""The fraction of instances flagged for manual checks (section 3.2)."""


@dataclass
class _Gathered:
    rows: list[SourceRow] = field(default_factory=list)
    skipped: list[SkippedRow] = field(default_factory=list)
    drafts: list[InstanceDraft] = field(default_factory=list)
    loaders: dict[Media, Loader] = field(default_factory=dict)


def build(sources: Sequence[tuple[str, str]], out: Path, options: BuildOptions) -> Build:
    """Read the sources, construct the examples and write them to ``out``; see ``Benchmark.build``.

    Raises SpecError for unknown source names, SourceError for sources that are not there, of no known
    layout, or without a row that can be used.
    """
    if options.per_stratum < 1:
        raise SpecError(f"the target of examples per conflict type is {options.per_stratum}; set it to at least 1.")
    with BuildWriter(out) as writer:
        gathered = _gather(sources)
        usable: list[Candidate] = []
        for candidate in candidates(gathered.rows):
            if isinstance(candidate, SkippedRow):
                gathered.skipped.append(candidate)
            else:
                usable.append(candidate)
        if not usable and not gathered.drafts:
            raise NothingUsableError(f"the sources have no usable row ({_most_common(gathered.skipped)}).")
        constructed = construct(usable, seed=options.seed, per_type=options.per_stratum)
        gathered.skipped.extend(constructed.left_out)
        for example in constructed.all:
            right_image, wrong_image = (Media(c.sha256, c.suffix) for c in (example.right, example.donor))
            gathered.loaders |= {right_image: example.right.row.image, wrong_image: example.donor.row.image}
            gathered.drafts.extend(draft_instances(example, right_image, wrong_image))
        if not gathered.drafts:
            raise NothingUsableError(f"the rows of the sources yield no example ({_most_common(gathered.skipped)}).")
        flagged = _flagged(gathered.drafts, options.seed)
        for media, load in gathered.loaders.items():
            _add_media(writer, media, load)
        for draft in flagged:
            writer.add_row(draft.to_row())
        for left_out in gathered.skipped:
            writer.add_skipped(left_out.source, left_out.row, left_out.reason)
        return writer.finish(
            _manifest(options, usable, constructed, flagged, gathered.skipped), replace=options.replace
        )


def _gather(sources: Sequence[tuple[str, str]]) -> _Gathered:
    gathered = _Gathered()
    for named in resolve_sources(sources):
        if isinstance(named, SkippedRow):
            gathered.skipped.append(named)
            continue
        if named[0] != "released":
            for row in read_source(*named):
                if isinstance(row, SkippedRow):
                    gathered.skipped.append(row)
                else:
                    gathered.rows.append(row)
            continue
        for example in read_released(named[1]):
            if isinstance(example, SkippedRow):
                gathered.skipped.append(example)
            else:
                gathered.drafts.extend(example[0])
                gathered.loaders |= example[1]
    return gathered


def _flagged(all_drafts: Sequence[InstanceDraft], seed: int) -> list[InstanceDraft]:
    by_rank = sorted((draft.id for draft in all_drafts), key=lambda name: rank_key(seed, "manual check", name))
    checked = set(by_rank[: round(_CHECKED * len(by_rank))])
    return [replace(d, strata={**d.strata, "manual_check": "yes" if d.id in checked else "no"}) for d in all_drafts]


def _add_media(writer: BuildWriter, media: Media, load: Loader) -> None:
    data = load()
    if hashlib.sha256(data).hexdigest() != media.sha256:
        raise SourceError("an image of the sources was changed while it was read; build again.")
    writer.add_media(data, media.suffix)


def _manifest(
    options: BuildOptions,
    usable: Sequence[Candidate],
    constructed: ConstructedExamples,
    all_drafts: Sequence[InstanceDraft],
    skipped: Sequence[SkippedRow],
) -> dict[str, Any]:
    examples = Counter({d.group: d.strata["type"] for d in all_drafts}.values())
    conditions = Counter(d.condition for d in all_drafts)
    words = [len(d.passage.split()) for d in all_drafts if d.passage is not None and d.condition in PAPER_CONDITIONS]
    target = options.per_stratum
    return {
        "benchmark": "cmc-bench",
        "seed": options.seed,
        "options": {"per_stratum": target},
        "sources": _sources(usable, constructed, all_drafts, skipped),
        "examples": {kind: examples[kind] for kind in TYPES},
        "shortfalls": {kind: target - examples[kind] for kind in TYPES if examples[kind] < target},
        "usable_rows_not_needed": {kind: constructed.unused[kind] for kind in TYPES},
        "conditions": {condition: conditions[condition] for condition in CONDITIONS},
        "contradicting_values": dict(Counter(example.origin for example in constructed.all)),
        "passage_words": {
            "mean": round(statistics.fmean(words), 2),
            "standard_deviation": round(statistics.stdev(words), 2) if len(words) > 1 else None,
        },
        "manual_check": sum(d.strata["manual_check"] == "yes" for d in all_drafts),
    }


def _sources(
    usable: Sequence[Candidate],
    constructed: ConstructedExamples,
    all_drafts: Sequence[InstanceDraft],
    skipped: Sequence[SkippedRow],
) -> dict[str, Any]:
    used: dict[str, set[tuple[str, ...]]] = {}
    for example in constructed.all:
        for c in (example.right, example.donor):
            used.setdefault(c.row.source, set()).add((c.row.family, c.sha256, *c.row.content))
    for draft in all_drafts:
        if draft.strata["source"] == "released":
            used.setdefault("released", set()).add((draft.id, digest(draft.to_row())))
    reasons = Counter((s.source, s.reason) for s in skipped)
    names = sorted({*used, *(c.row.source for c in usable), *(s.source for s in skipped)})
    return {
        name: {
            "usable_rows": sum(c.row.source == name for c in usable),
            "used_rows": len(used.get(name, ())),
            "used_rows_sha256": digest(sorted(used.get(name, ()))),
            "skipped": {reason: n for (source, reason), n in sorted(reasons.items()) if source == name},
        }
        for name in names
    }


def _most_common(skipped: Sequence[SkippedRow]) -> str:
    return top_reasons({"": Counter(s.reason for s in skipped)})
