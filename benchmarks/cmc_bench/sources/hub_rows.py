"""Rows of a data set on the Hugging Face Hub: its files are fetched into the Hub's cache and read by ``datasets``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from glob import escape
from pathlib import Path

from benchmarks.errors import SourceError
from benchmarks.fetch.file_download import download
from benchmarks.fetch.hub_cache import cached_snapshot, link_snapshot, repository_folder
from benchmarks.fetch.hub_repository import is_offline, repository
from benchmarks.fetch.remote_file import FetchError, distinct_files, path_inside
from benchmarks.rows.files import RawRow


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


def read_hub_rows(files: Sequence[Path], part: str, instead: str) -> Iterator[RawRow]:
    """Yield the rows of ``files``, numbered from 0 after ``part`` and a colon; images keep the bytes of their original files.

    Raises SourceError, which says that the layout ``instead`` would do, where a file cannot be read.
    """
    import datasets

    paths = [escape(str(file)) for file in files]
    try:
        rows = datasets.load_dataset("parquet", data_files=paths, split="train", streaming=True).decode(False)
        for number, fields in enumerate(rows):
            yield RawRow(f"{part}:{number}", fields)
    # Files and layout fail in the exception classes of four libraries.
    except Exception as error:
        raise SourceError(
            f"{part} cannot be read from the files of the Hub ({error.__class__.__name__}); delete them from its cache and run "
            f"the same command, or give a local folder instead: {instead}."
        ) from error


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
