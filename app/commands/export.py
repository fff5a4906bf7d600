"""``rashomon export``: tables, figures and samples as files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from app.commands.spinner import doing
from app.exports.formats import FORMATS, usual_folder, write
from app.exports.writer import check_formats, told
from app.store.workspace import Workspace
from benchmarks.errors import SpecError


def export(
    workspace: Workspace,
    runs: Sequence[str],
    *,
    formats: Sequence[str],
    out: Path | None,
    judge: str | None,
    canonical: bool,
    width: str,
    metric: str | None,
    caption: Sequence[str] = (),
) -> None:
    """Write the tables of ``runs`` together, and each one's samples, in every one of ``formats``; see ``write``."""
    check_formats(formats, FORMATS)
    captions = dict(_caption(text) for text in caption)
    folders = [workspace.run_folder(run) for run in runs]
    with doing("reading the runs") as say:
        made = write(
            workspace,
            folders,
            formats=formats,
            out=out or usual_folder(folders),
            judge=judge,
            canonical=canonical,
            width=width,
            metric=metric,
            captions=captions,
            step=lambda what, done, total: say(f"{what} ({done} of {total})"),
        )
    print(told(made.folder, (name for name, _ in made.files)))


def _caption(text: str) -> tuple[str, str]:
    name, equals, words = text.partition("=")
    if not equals or not words.strip():
        raise SpecError(f"--caption takes TABLE=TEXT, not {text!r}; write for example 'main=Results on our charts'.")
    return name.strip(), words.strip()
