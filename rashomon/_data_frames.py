"""Data that other libraries read as Arrow: tables and records."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any

from benchmarks.errors import ExtraMissingError

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


class ArrowData(ABC):
    """Data with rows and columns, built once as Arrow and shared with every library that reads Arrow.

    It has the Arrow PyCapsule interface, so ``polars.DataFrame(data)``, ``pyarrow.table(data)`` and DuckDB take it as it is.
    """

    @abstractmethod
    def _build(self) -> Any:
        """Return the ``pyarrow.Table``."""

    @cached_property
    def _table(self) -> Any:
        return self._build()

    def arrow(self) -> pyarrow.Table:
        """Return the data as a ``pyarrow.Table``."""
        return self._table

    def pandas(self) -> pandas.DataFrame:
        """Return the data as a ``pandas.DataFrame`` whose columns are the Arrow ones, without copies.

        Raises ExtraMissingError if pandas is not installed.
        """
        try:
            import pandas
        except ImportError as error:
            raise ExtraMissingError("pandas is not installed; install it with `pip install pandas`.") from error
        return self._table.to_pandas(types_mapper=pandas.ArrowDtype)

    def polars(self) -> polars.DataFrame:
        """Return the data as a ``polars.DataFrame``, without a copy of what Polars stores as Arrow does.

        Raises ExtraMissingError if Polars is not installed.
        """
        try:
            import polars
        except ImportError as error:
            raise ExtraMissingError("polars is not installed; install it with `pip install polars`.") from error
        return polars.DataFrame(self)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)
