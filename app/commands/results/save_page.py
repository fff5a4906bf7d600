"""``rashomon view --save``: the page of answers as one file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from app.commands.terminal.spinner import spinner
from app.store.run_references import newest_of_a_build, run_folders
from app.store.workspace import Workspace
from app.text.plural import count_of
from app.text.text_escaping import clean, size
from app.view.contents.page_contents import Contents
from app.view.saved.page_licences import check_full_media
from app.view.saved.saved_page import MediaChoice, estimated_size, saved_page
from benchmarks.errors import StoreError
from benchmarks.untrusted.safe_files import is_disk_full, open_regular, replace_file, write_error
from benchmarks.untrusted.typed_paths import typed_path

_DOCTYPE = b"<!doctype html"


def save_page(
    workspace: Workspace, runs: Sequence[str], file: Path, media: MediaChoice, *, judge: str | None, trust: str | None
) -> int:
    """Write the page of ``runs``, or of the newest ones, to a file; print its expected size first. Return the exit code.

    Raises SpecError if a licence does not let the file have full media, StoreError if it cannot be written, or is there and is
    no page.
    """
    path = typed_path(file)
    folders = run_folders(workspace, runs) if runs else newest_of_a_build(workspace)
    if os.path.lexists(path) and not _is_page(path):
        raise StoreError(f"{path} exists and is not a page; name another file with --save.")
    if media == "full":
        check_full_media(workspace, folders)
    with spinner("reading the runs"):
        contents = Contents(workspace, folders, judge=judge, rule=trust, saved=True)
        expected = estimated_size(contents, media)
    head = contents.head()
    pictures = {"none": "no media", "full": "full media", "thumbnails": "thumbnails"}[media]
    of_runs = f"{count_of(head.instances, 'instance')} of {count_of(len(head.runs), 'run')}"
    print(clean(f"{path.name}: about {size(expected)}, with {of_runs} and {pictures}"), flush=True)
    target = Path(os.path.realpath(path))  # a link stays one
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with spinner("writing the page") as update:
            replace_file(target.parent, target.name, _encoded(saved_page(contents, media), expected, update))
        written = target.stat().st_size
    except OSError as error:
        advice = "free some space" if is_disk_full(error) else "name another file with --save"
        raise write_error(path, error, advice) from error
    print(clean(f"wrote {path}: {size(written)}"))
    return 0


def _is_page(path: Path) -> bool:
    with suppress(OSError), open_regular(path) as stream:
        return stream.read(len(_DOCTYPE)) == _DOCTYPE
    return False


def _encoded(pieces: Iterator[str], expected: int, update: Callable[[str], None]) -> Iterator[bytes]:
    written = 0
    for piece in pieces:
        encoded = piece.encode()
        written += len(encoded)
        update(f"writing the page: {size(written)} of about {size(max(expected, written))}")
        yield encoded
