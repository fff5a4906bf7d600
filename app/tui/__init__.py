"""The terminal interface. Nothing outside this package imports Textual, and this line imports nothing."""
