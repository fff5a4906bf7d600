"""Rows of a data set on the Hugging Face Hub, through ``datasets``."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.cmc_bench.files import RawRow
from benchmarks.errors import SourceError


def hub_rows(data_set: str, config: str | None, split: str, instead: str) -> Iterator[RawRow]:
    """The rows of one split of ``data_set``; images keep the bytes of their original files.

    Raises SourceError, which says that the layout ``instead`` would do, where the data set cannot be had.
    """
    import datasets

    try:
        rows = datasets.load_dataset(data_set, config, split=split)
        for column, feature in rows.features.items():
            if isinstance(feature, datasets.Image):
                rows = rows.cast_column(column, datasets.Image(decode=False))
    # Network, cache, authorisation and layout fail in the exception classes of four libraries.
    except Exception as error:
        part = f"{config}, {split}" if config else split
        raise SourceError(
            f"{data_set} ({part}) cannot be loaded from the Hub or its cache ({error.__class__.__name__}); go online, or "
            f"give a local folder instead: {instead}."
        ) from error
    for number, fields in enumerate(rows):
        yield RawRow(f"{config + '/' if config else ''}{split}:{number}", fields)
