"""Files that macOS adds to folders by itself, such as the halves of files on disks without extended attributes."""

from __future__ import annotations

from pathlib import Path

_NAMES = frozenset({".DS_Store", ".localized", "__MACOSX"})


def is_finder_file(name: str) -> bool:
    """Return whether macOS, rather than the user, puts files or folders of this name next to others."""
    return name.startswith("._") or name in _NAMES


def folder_entries(folder: Path) -> list[Path]:
    """Return the sorted entries of a folder without those of macOS. Raises OSError."""
    return sorted(entry for entry in folder.iterdir() if not is_finder_file(entry.name))
