"""Rows of a data set on the Hugging Face Hub, through ``datasets``."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.errors import SourceError
from benchmarks.rows.files import RawRow


def read_hub_rows(data_set: str, config: str | None, split: str, files: str, instead: str) -> Iterator[RawRow]:
    """Yield the rows of one split of ``data_set``; images keep the bytes of their original files.

    ``files`` is the pattern of the split's files in the data set; no others are downloaded. Raises SourceError, which
    says that the layout ``instead`` would do, where the data set cannot be had, and SpecError for an invalid proxy.
    """
    import datasets

    from benchmarks.http_transport import route_hub_library

    route_hub_library()
    try:
        with _quiet():
            # By ``split`` alone every split of the configuration would be downloaded.
            rows = datasets.load_dataset(data_set, config, data_files={split: files}, split=split)
        for column, feature in rows.features.items():
            if isinstance(feature, datasets.Image):
                rows = rows.cast_column(column, datasets.Image(decode=False))
    # Network, cache, authorisation and layout fail in the exception classes of four libraries.
    except Exception as error:
        part = f"{config}, {split}" if config else split
        raise SourceError(
            f"{data_set} ({part}) cannot be loaded from the Hub ({error.__class__.__name__}); go online and check its id, "
            f"or give a local folder instead: {instead}."
        ) from error
    for number, fields in enumerate(rows):
        yield RawRow(f"{config + '/' if config else ''}{split}:{number}", fields)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the libraries' messages about retries; the final error is reported anyway."""
    loggers = [logging.getLogger(name) for name in ("datasets", "huggingface_hub")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
