"""The build of CMC-Bench: data sources in, instances on disk out."""

from __future__ import annotations

import hashlib
import statistics
from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from benchmarks.build import Build, BuildOptions, BuildWriter, BuiltRow
from benchmarks.cmc_bench.cmc_constants import CONDITIONS, CONFLICT_CONDITIONS, FOUND, PAPER_CONDITIONS, TYPES
from benchmarks.cmc_bench.cmc_instances import InstanceDraft, draft_instances, instance_ids
from benchmarks.cmc_bench.cmc_released import read_released
from benchmarks.cmc_bench.construction.candidate_file import CandidateFile, RowFile
from benchmarks.cmc_bench.construction.cmc_candidates import candidates
from benchmarks.cmc_bench.construction.cmc_construction import construct
from benchmarks.cmc_bench.construction.cmc_table_1 import table_1
from benchmarks.cmc_bench.construction.constructed_examples import NO_DONOR, NO_PASSAGE, ConstructedExamples
from benchmarks.cmc_bench.construction.contradiction_pairing import rank
from benchmarks.cmc_bench.construction.value_distribution import generated_values
from benchmarks.cmc_bench.sources import read_source
from benchmarks.cmc_bench.sources.cmc_source_row import OWN_ROWS, resolve_sources
from benchmarks.errors import NothingUsableError, SourceError, SpecError
from benchmarks.hash_collections import HashOrder, count_distinct, hash64
from benchmarks.rows.files import Loader, SkippedRow, file_name
from benchmarks.rows.sources import top_reasons
from benchmarks.vocabulary import Media, digest, digest_of_list

_CHECKED = 0.2
"""The fraction of instances flagged for manual checks (section 3.2)."""


class _Skipped:
    """Source rows that were left out: written to the build as they come, and counted by source and reason."""

    def __init__(self, writer: BuildWriter) -> None:
        self._writer = writer
        self.reasons: Counter[tuple[str, str]] = Counter()

    def add(self, row: SkippedRow) -> None:
        self._writer.add_skipped(row.source, row.row, row.reason)
        # A reason of a user's own row goes on with what the row says.
        self.reasons[row.source, row.reason.partition(":")[0] if row.source == OWN_ROWS else row.reason] += 1

    def most_common(self) -> str:
        """Return the three most frequent reasons."""
        counts: Counter[str] = Counter()
        for (_, reason), count in self.reasons.items():
            counts[reason] += count
        return top_reasons({"": counts})


@dataclass
class _Gathered:
    """The sources' rows, in a temporary file, and the drafts of the author's release, with loaders of their images.

    Attributes:
        stated: The ``image_answer`` and ``text_answer`` of the user's rows that fill them, by the row's place.
    """

    rows: RowFile = field(default_factory=RowFile)
    drafts: list[InstanceDraft] = field(default_factory=list)
    loaders: dict[Media, Loader] = field(default_factory=dict)
    stated: dict[str, dict[str, str]] = field(default_factory=dict)


def build(sources: Sequence[tuple[str, str]], out: Path, options: BuildOptions) -> Build:
    """Read the sources, construct the examples and write them to ``out``; see ``Benchmark.build``.

    Rows and examples are in temporary files, so memory grows by some 200 bytes a row. Raises SpecError for unknown source
    names, SourceError for sources that are not there, of no known layout, or without a row that can be used.
    """
    if options.per_stratum < 1:
        raise SpecError(f"the target of examples per conflict type is {options.per_stratum}; set it to at least 1.")
    with BuildWriter(out) as writer:
        skipped = _Skipped(writer)
        gathered = _gather(sources, skipped, options)
        usable = CandidateFile(gathered.rows)
        usable_rows: Counter[str] = Counter()
        for candidate in candidates(gathered.rows):
            if isinstance(candidate, SkippedRow):
                skipped.add(candidate)
            else:
                usable.append(candidate)
                usable_rows[candidate.row.source] += 1
                if candidate.image.warnings:
                    writer.add_warning(candidate.row.row, "; ".join(candidate.image.warnings))
        if not usable and not gathered.drafts:
            raise NothingUsableError(f"the sources have no usable row ({skipped.most_common()}).")
        constructed = construct(usable, seed=options.seed, per_type=options.per_stratum, difficulty=options.difficulty)
        for left_out in constructed.left_out:
            skipped.add(left_out)
        if not gathered.drafts and not any(constructed.examples.values()):
            raise NothingUsableError(f"the rows of the sources yield no example ({skipped.most_common()}).")
        own_rows = _own_rows(writer, gathered, constructed)
        if not gathered.drafts and not any(set(e.conditions) & set(CONFLICT_CONDITIONS) for e in constructed.all):
            raise NothingUsableError(
                f"no row has sources that disagree ({top_reasons(own_rows['conditions_left_out'])})."
            )
        for media, load in gathered.loaders.items():
            _add_media(writer, media, load)
        facts = _Facts()
        with_origin = FOUND in own_rows.get("evidence", {})
        checked = _checked(_ids(gathered, constructed), options.seed)
        for draft, is_checked in zip(
            _drafts(gathered, constructed, writer, with_origin=with_origin), checked, strict=True
        ):
            row = draft.to_row()
            row["strata"]["manual_check"] = "yes" if is_checked else "no"
            writer.add_row(row)
            facts.add(draft, row, is_checked=bool(is_checked))
        manifest = _manifest(options, constructed, facts) | own_rows
        if values := generated_values(constructed.all, of_all=options.difficulty is not None):
            manifest["generated_values"] = values
        if options.difficulty:
            manifest["difficulty"] = options.difficulty
        writer.add_file("table-1.csv", facts.table_1())
        manifest["sources"] = _sources(usable_rows, _used(usable, constructed, facts.released), skipped.reasons)
        return writer.finish(manifest, replace=options.replace)


def _own_rows(writer: BuildWriter, gathered: _Gathered, constructed: ConstructedExamples) -> dict[str, Any]:
    """Return the facts of the user's own rows for the manifest, after recording the rows, and each condition that one lacks.

    Without a passage among them and with all conditions there are none.
    """
    evidence: Counter[str] = Counter()
    left_out: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for example in constructed.all:
        row = example.right.row
        evidence[example.evidence] += row.source == OWN_ROWS
        if row.source == OWN_ROWS:
            cells = {"image": example.right.sha256, **row.cells, **gathered.stated.get(row.row, {})}
            writer.add_built_row(BuiltRow(row.row, example.right.id, cells, file_name(row.image)))
        for condition, reason in example.left_out.items():
            writer.add_skipped(row.source, row.row, reason, condition)
            left_out[condition][reason] += 1
    facts: dict[str, Any] = {"conditions_left_out": left_out} if left_out else {}
    return facts | ({"evidence": +evidence} if (+evidence).keys() - {NO_PASSAGE} else {})


def _gather(sources: Sequence[tuple[str, str]], skipped: _Skipped, options: BuildOptions) -> _Gathered:
    gathered = _Gathered()
    for named in resolve_sources(sources):
        if isinstance(named, SkippedRow):
            skipped.add(named)
            continue
        if named[0] != "released":
            for row in read_source(*named, options.cluster, options.mapping):
                if isinstance(row, SkippedRow):
                    skipped.add(row)
                else:
                    gathered.rows.append(row)
                    if row.source == OWN_ROWS and row.stated:
                        gathered.stated[row.row] = row.stated
            continue
        for example in read_released(named[1]):
            if isinstance(example, SkippedRow):
                skipped.add(example)
            else:
                gathered.drafts.extend(example[0])
                gathered.loaders |= example[1]
    return gathered


def _drafts(
    gathered: _Gathered, constructed: ConstructedExamples, writer: BuildWriter, *, with_origin: bool
) -> Iterator[InstanceDraft]:
    """Yield all instances, in the build's order, after adding the images of their examples."""
    yield from gathered.drafts
    for example in constructed.all:
        for candidate in filter(None, (example.right, example.donor)):
            _add_media(writer, candidate.media, candidate.row.image)
        yield from draft_instances(example, with_origin=with_origin)


def _ids(gathered: _Gathered, constructed: ConstructedExamples) -> Iterator[str]:
    """Yield the ids of all instances, in the build's order."""
    for draft in gathered.drafts:
        yield draft.id
    for example in constructed.all:
        yield from instance_ids(example)


def _checked(ids: Iterable[str], seed: int) -> bytearray:
    """Return a byte for each instance, which is 1 if it is flagged for manual checks: those of the lowest ranks."""
    order, count = HashOrder(), 0
    for count, name in enumerate(ids, 1):
        order.add(rank(seed, "manual check", name), count - 1)
    flags, last = bytearray(count), -1
    for place, (own_rank, number) in enumerate(order):
        if place >= round(_CHECKED * count) and own_rank != last:  # equal ids are flagged alike
            break
        flags[number], last = 1, own_rank
    return flags


def _add_media(writer: BuildWriter, media: Media, load: Loader) -> None:
    if writer.has_media(media):
        return
    data = load()
    if hashlib.sha256(data).hexdigest() != media.sha256:
        raise SourceError("an image of the sources was changed while it was read; build again.")
    writer.add_media(data, media.suffix)


class _Facts:
    """Counts of a build's instances for its manifest; memory holds a hash of each example."""

    def __init__(self) -> None:
        self.conditions: Counter[str] = Counter()
        self._instances: Counter[tuple[str, str]] = Counter()
        self._of_source: Counter[str] = Counter()
        self._checked_in_paper = 0
        self._passage_words: Counter[int] = Counter()
        self.checked = 0
        self.released: set[tuple[str, str]] = set()
        """The ids and digests of the instances of the author's release."""
        self._groups: defaultdict[str, array[int]] = defaultdict(lambda: array("Q"))
        self._group = ""

    def add(self, draft: InstanceDraft, row: Mapping[str, Any], *, is_checked: bool) -> None:
        """Count an instance with its row in the build."""
        self.conditions[draft.condition] += 1
        self.checked += is_checked
        self._instances[draft.strata["type"], draft.condition] += 1
        self._checked_in_paper += is_checked and draft.condition in PAPER_CONDITIONS
        if draft.strata["source"] == "released":
            self.released.add((draft.id, digest(row)))
        if draft.passage is not None and draft.condition in PAPER_CONDITIONS:
            self._passage_words[len(draft.passage.split())] += 1
        if draft.group != self._group:
            self._group = draft.group
            self._groups[draft.strata["type"]].append(hash64(draft.group))
            self._of_source[draft.strata["source"]] += 1

    def table_1(self) -> bytes:
        """Return the paper's Table 1 of the build as a CSV file."""
        return table_1(self.examples(), self._instances, self._of_source, self.passage_length(), self._checked_in_paper)

    def passage_length(self) -> tuple[float, float | None]:
        """Return the mean length of the passages under the paper's conditions in words, with its deviation if there are two."""
        words = self._passage_words
        deviation = statistics.stdev(words.elements()) if words.total() > 1 else None
        return statistics.fmean(words.elements()), deviation

    def examples(self) -> dict[str, int]:
        """Return the number of examples of each type."""
        return {kind: count_distinct(self._groups[kind]) if kind in self._groups else 0 for kind in TYPES}


def _manifest(options: BuildOptions, constructed: ConstructedExamples, facts: _Facts) -> dict[str, Any]:
    examples, (mean, deviation) = facts.examples(), facts.passage_length()
    target = options.per_stratum
    return {
        "benchmark": "cmc-bench",
        "seed": options.seed,
        "options": {"per_stratum": target},
        "examples": examples,
        "shortfalls": {kind: target - examples[kind] for kind in TYPES if examples[kind] < target},
        "usable_rows_not_needed": {kind: constructed.unused[kind] for kind in TYPES},
        "conditions": {condition: facts.conditions[condition] for condition in CONDITIONS},
        "contradicting_values": dict(Counter(example.origin for example in constructed.all if example.value)),
        "passage_words": {
            "mean": round(mean, 2),
            "standard_deviation": None if deviation is None else round(deviation, 2),
        },
        "manual_check": facts.checked,
    }


def _sources(
    usable_rows: Mapping[str, int], used: Mapping[str, tuple[int, str]], reasons: Mapping[tuple[str, str], int]
) -> dict[str, Any]:
    """Return the facts of each source; ``used`` holds the number of rows that examples use, and the digest of these."""
    names = sorted({*used, *usable_rows, *(source for source, _ in reasons)})
    nothing = (0, digest([]))
    return {
        name: {
            "usable_rows": usable_rows.get(name, 0),
            "used_rows": used.get(name, nothing)[0],
            "used_rows_sha256": used.get(name, nothing)[1],
            "skipped": {reason: n for (source, reason), n in sorted(reasons.items()) if source == name},
        }
        for name in names
    }


def _used(
    usable: CandidateFile, constructed: ConstructedExamples, released: Collection[tuple[str, str]]
) -> dict[str, tuple[int, str]]:
    """Return, for each source, the number of rows that examples use, and the digest of their sorted contents.

    ``released`` holds the ids and digests of the instances of the author's release.
    """
    is_used = bytearray(len(usable))
    for examples in constructed.examples.values():
        for number in chain(examples.rights, examples.donors):
            if number != NO_DONOR:
                is_used[number] = 1
    orders: defaultdict[str, defaultdict[str, HashOrder]] = defaultdict(lambda: defaultdict(HashOrder))
    counts: Counter[str] = Counter()
    for number, candidate in enumerate(usable):
        if is_used[number]:
            orders[candidate.row.source][candidate.row.family].add(int(candidate.sha256[:16], 16), number)
            counts[candidate.row.source] += 1
    used = {
        source: (counts[source], digest_of_list(_sorted_contents(usable, families)))
        for source, families in orders.items()
    }
    if released:
        used["released"] = len(released), digest(sorted(released))
    return used


def _sorted_contents(usable: CandidateFile, families: Mapping[str, HashOrder]) -> Iterator[tuple[str, ...]]:
    """Yield the family, the image's digest and the content of candidates, sorted; ``families`` sorts them by the digest."""
    for family in sorted(families):
        for _, pairs in groupby(families[family], key=itemgetter(0)):
            rows = (usable[number] for _, number in pairs)
            yield from sorted((family, candidate.sha256, *candidate.row.content) for candidate in rows)
