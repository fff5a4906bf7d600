"""Hosts of the data, other than the Hub, whose address is set by HF_ENDPOINT."""

from __future__ import annotations

import os

MIRROR = "RASHOMON_MIRROR"
"""The environment variable of a mirror: https://HOST/PATH is then fetched from MIRROR/HOST/PATH."""

COCO = "https://s3.amazonaws.com/images.cocodataset.org"
"""COCO's bucket. images.cocodataset.org is the same bucket, but with a certificate for another name."""

GITHUB = "https://raw.githubusercontent.com"


def coco(folder: str, name: str) -> str:
    """Return the address of a COCO image, such as ``000000000034.jpg`` in ``train2017``."""
    return _address(f"{COCO}/{folder}/{name}")


def github(repository: str, commit: str, path: str) -> str:
    """Return the address of a file in a GitHub repository at ``commit``."""
    return _address(f"{GITHUB}/{repository}/{commit}/{path}")


def _address(url: str) -> str:
    mirror = os.environ.get(MIRROR)
    return f"{mirror.rstrip('/')}/{url.removeprefix('https://')}" if mirror else url
