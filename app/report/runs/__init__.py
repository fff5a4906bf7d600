"""Facts about a run: its provenance, settings, citations and names."""
