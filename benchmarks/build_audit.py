"""The audit of a build, stored beside its rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from benchmarks.audit import Audit, BlindQuestion, audit
from benchmarks.base import Benchmark
from benchmarks.build import Build, media_path
from benchmarks.errors import MediaError
from benchmarks.factors.factor_instances import instances_of
from benchmarks.stats.clusters import ClusterNames
from benchmarks.untrusted.safe_files import UnsafeFileError, read_bytes, replace_file
from benchmarks.vocabulary import Instance, Media

if TYPE_CHECKING:
    from pydantic import TypeAdapter

FILE = "audit.json"
_VERSION = 5
"""Raise it whenever a rule changes, so that stored audits are made again."""
_LARGEST = 256 << 20


@dataclass(frozen=True, slots=True)
class _Stored:
    """An audit as it is stored; ``build`` is the build's digest."""

    version: int
    build: str
    audit: Audit


def audit_build(build: Build, benchmark: Benchmark) -> Audit:
    """Return the audit of a build: the stored one, or else a new one, which is stored if the folder can be written."""
    if (stored := _read(build)) is not None:
        return stored
    instances = instances_of(benchmark, build, next(iter(benchmark.prompt_sets)))
    result = audit_instances(benchmark, instances, build)
    with suppress(OSError, UnsafeFileError):
        replace_file(build.path, FILE, _adapter().dump_json(_Stored(_VERSION, build.digest, result)))
    return result


def audit_instances(benchmark: Benchmark, instances: Iterable[Instance], build: Build | None = None) -> Audit:
    """Return the audit of instances, with the number of questions that are open."""
    shown: dict[str, tuple[str, str]] = {}

    def counted() -> Iterator[Instance]:
        for instance in instances:
            if instance.condition not in benchmark.without_sources:
                shown[instance.id] = instance.group, instance.question
            yield instance

    questions, sizes = blind_questions(benchmark, counted(), build)
    audited = {shown[question.id] for question in questions}  # under some condition
    return replace(audit(questions, media=sizes.get), open=len({*shown.values()} - audited))


def blind_questions(
    benchmark: Benchmark, instances: Iterable[Instance], build: Build | None = None
) -> tuple[Sequence[BlindQuestion], Mapping[str, int]]:
    """Return the closed questions of instances in their clusters, and the sizes in bytes of their media in ``build``.

    An instance that is not of its benchmark's form, as in a run that was made up, is open.
    """
    names, sizes = ClusterNames(), dict[str, int]()
    questions = []
    for instance in instances:
        names.add(instance.group, benchmark.pages(instance).own)
        if instance.condition in benchmark.without_sources:
            continue  # it is audited where its sources are shown
        question = None
        with suppress(LookupError, ValueError):
            question = benchmark.blind_question(instance)
        if question is not None:
            questions.append((question, instance.group))
            if build is not None:
                _add_sizes(sizes, build, instance)
    return [replace(question, cluster=names.cluster(group), example=group) for question, group in questions], sizes


def _add_sizes(sizes: dict[str, int], build: Build, instance: Instance) -> None:
    for part in instance.parts:
        if isinstance(part, Media) and part.sha256 not in sizes:
            with suppress(MediaError, OSError):
                sizes[part.sha256] = media_path(build.path, part).stat().st_size


def _read(build: Build) -> Audit | None:
    """Return the stored audit of this very build; None if there is none, or none that can be used."""
    with suppress(OSError, UnsafeFileError, ValueError):
        stored = _adapter().validate_json(read_bytes(build.path, FILE, limit=_LARGEST))
        if (stored.version, stored.build) == (_VERSION, build.digest):
            return stored.audit
    return None


def _adapter() -> TypeAdapter[_Stored]:
    from pydantic import TypeAdapter

    return TypeAdapter(_Stored)
