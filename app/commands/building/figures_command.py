"""``rashomon figures``: the statistics of a build as its paper draws them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from app.annotation.review_session import find_build
from app.exports.export_input import Files
from app.exports.export_writer import check_formats, write_files, written_message
from app.figures.figure_style import FIGURE_FORMATS, inches, to_bytes
from app.figures.table_figures import draw_table
from app.store.workspace import Workspace
from benchmarks.errors import SpecError
from benchmarks.registry import get_benchmark
from benchmarks.untrusted.typed_paths import typed_path


def draw_figures(workspace: Workspace, name: str, *, formats: Sequence[str], out: Path | None, width: str) -> None:
    """Write the figures of the build ``name`` in all ``formats``, and print their names.

    Raises SpecError if the benchmark's paper draws none, or for an unknown format or width.
    """
    check_formats(formats, FIGURE_FORMATS)
    inches(width)
    build = find_build(workspace, name)
    build.require_plain()
    with build.reading():
        tables = get_benchmark(build.benchmark).build_tables(build)
    if not tables:
        raise SpecError(
            f"there are no figures of {build.benchmark}'s examples; `rashomon export RUN --format pdf` draws a run's."
        )
    files: Files = {}
    for table in tables:
        for form in formats:
            # Drawn anew for each format: a figure that was rendered once is laid out a little differently afterwards.
            figure = draw_table(table, width=width)
            if figure is not None:
                files[f"{table.name}.{form}"] = to_bytes(figure, form)
    folder = typed_path(out) if out else Path("figures") / build.path.name
    write_files(folder, files)
    print(written_message(folder, files))
