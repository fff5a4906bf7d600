"""Features of a vision encoder: cached in memory and on disk, and checked."""
