"""Single samples of a run: their texts, media and thumbnails."""
