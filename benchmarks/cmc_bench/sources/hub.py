"""Rows of a data set on the Hugging Face Hub, whose files are fetched into its cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatch
from itertools import chain, count
from pathlib import Path

from benchmarks.errors import SourceError
from benchmarks.fetch.download import download
from benchmarks.fetch.hub import is_offline, repository
from benchmarks.fetch.hub_cache import cached_snapshot, link_snapshot, repository_folder
from benchmarks.fetch.remote_file import FetchError, distinct_files, path_inside
from benchmarks.rows.files import RawRow, SkippedRow, read_rows


def fetch_hub_files(data_set: str, patterns: Sequence[str], instead: str) -> list[list[Path]]:
    """Return the files of ``data_set`` that match each of ``patterns``; those that are not in the cache are downloaded.

    Raises SourceError where the data set has no such files, FetchError where it cannot be had, which both say that the layout
    ``instead`` would do, and SpecError for an invalid proxy.
    """
    try:
        folder = _fetched(data_set, patterns)
    except FetchError as error:
        raise FetchError(f"{error} Or give a local folder instead: {instead}.") from error
    files = [sorted(folder.glob(pattern)) for pattern in patterns]
    missing = next((pattern for pattern, matches in zip(patterns, files, strict=True) if not matches), None)
    if missing is not None:
        raise SourceError(f"{data_set} on the Hub has no file {missing}; give a local folder instead: {instead}.")
    return files


def read_hub_rows(files: Sequence[Path], part: str, source: str) -> Iterator[RawRow | SkippedRow]:
    """Yield the rows of ``files``, numbered from 0 after ``part`` and a colon; images keep the bytes of their original files."""
    rows = chain.from_iterable(read_rows(file, file.parent, source) for file in files)
    for row, number in zip(rows, count()):
        where = f"{part}:{number}"
        yield replace(row, where=where) if isinstance(row, RawRow) else replace(row, row=where)


def _fetched(data_set: str, patterns: Sequence[str]) -> Path:
    """Return the folder of the data set's newest commit, with the files that match a pattern. Raises FetchError."""
    if is_offline():
        if (folder := cached_snapshot(data_set, "dataset")) is None:
            raise FetchError(
                f"HF_HUB_OFFLINE is set, and {data_set} is not in the cache; unset it and run the same command."
            )
        return folder
    repo = repository(data_set, "dataset", lambda name: any(fnmatch(name, pattern) for pattern in patterns))
    blobs = repository_folder(data_set, "dataset") / "blobs"
    files = distinct_files(repo.remote(file, path_inside(blobs, file.digest.value)) for file in repo.files)
    for file, reason in download(files).items():
        raise FetchError(f"{file.name} of {data_set} could not be fetched: {reason}; run the same command again.")
    return link_snapshot(repo)
