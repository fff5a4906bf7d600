"""Files of a model, as the Hub lists them, become blobs of its cache."""

from __future__ import annotations

import pytest

from app.fetch import fetch_models
from benchmarks.fetch.hub_repository import HubFile, Repository
from benchmarks.fetch.remote_file import Digest, FetchError


@pytest.mark.parametrize("digest", ["../../x", "/tmp/x", ""])
def test_no_digest_of_a_listing_leads_out_of_the_blobs(digest: str, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = Repository("org/it", "model", "main", "", (HubFile("model.safetensors", 1, Digest("sha256", digest)),))
    monkeypatch.setattr(fetch_models, "repository", lambda *_: listed)
    with pytest.raises(FetchError, match="nothing was fetched"):
        fetch_models.list_files("org/it")
