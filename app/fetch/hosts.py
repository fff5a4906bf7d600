"""Where data are fetched from: the one place that names hosts, beside the Hub, whose address is the library's (HF_ENDPOINT)."""

from __future__ import annotations

import os

MIRROR = "RASHOMON_MIRROR"
"""The variable that names another server: what is at https://HOST/PATH is then asked of MIRROR/HOST/PATH."""

COCO = "https://s3.amazonaws.com/images.cocodataset.org"
"""COCO's bucket. images.cocodataset.org is the same one, but shows a certificate of another name."""

GITHUB = "https://raw.githubusercontent.com"


def coco(folder: str, name: str) -> str:
    """The address of one of COCO's images, such as ``train2017`` and ``000000000034.jpg``."""
    return _address(f"{COCO}/{folder}/{name}")


def github(repository: str, commit: str, path: str) -> str:
    """The address of a file of a GitHub repository, as it was at ``commit``."""
    return _address(f"{GITHUB}/{repository}/{commit}/{path}")


def _address(url: str) -> str:
    mirror = os.environ.get(MIRROR)
    return f"{mirror.rstrip('/')}/{url.removeprefix('https://')}" if mirror else url
