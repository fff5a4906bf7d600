"""The third of a question set that is held out for a final decision, cluster by cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from benchmarks.build import Build
from benchmarks.hash_collections import hash64
from benchmarks.registry import get_benchmark
from benchmarks.stats.clusters import ClusterNames
from benchmarks.vocabulary import Instance

_HELD_OUT = 3
"""One in this many clusters is held out."""


def assign_pages(known: Mapping[str, bool], build: Build, seed: int) -> dict[str, bool]:
    """Return whether each page is held out, with those of ``build`` added to the ``known`` ones.

    New clusters are taken in the order of their hashes until a third of the clusters is held out. A cluster that has a known
    page follows it; one that joins a page that may have been asked with others is not held out.
    """
    clusters = _clusters(build)
    parts = dict(known)
    held_out, unassigned = 0, []
    for pages in clusters:
        earlier = {known[page] for page in pages if page in known}
        if earlier:
            parts.update(dict.fromkeys(pages, all(earlier)))
            held_out += all(earlier)
        else:
            unassigned.append(pages)
    new = max(0, round(len(clusters) / _HELD_OUT) - held_out)
    unassigned.sort(key=lambda pages: hash64(f"{seed}|final|{min(pages)}"))
    for place, pages in enumerate(unassigned):
        parts.update(dict.fromkeys(pages, place < new))
    return parts


def _clusters(build: Build) -> list[list[str]]:
    """Return the pages of each cluster of a build's examples, in the build's order."""
    benchmark, names = get_benchmark(build.benchmark), ClusterNames()
    own: dict[str, str] = {}  # a page and an example that has it
    for instance in build_instances(build):
        pages = benchmark.pages(instance).own
        names.add(instance.group, pages)
        own |= dict.fromkeys(pages, instance.group)
    clusters: dict[int, list[str]] = {}
    for page, example in own.items():
        clusters.setdefault(names.cluster(example), []).append(page)
    return list(clusters.values())


def build_instances(build: Build) -> Iterable[Instance]:
    """Return the instances of a build with the benchmark's first prompt set; every iteration reads them again."""
    benchmark = get_benchmark(build.benchmark)
    return benchmark.instances(build, next(iter(benchmark.prompt_sets)))
