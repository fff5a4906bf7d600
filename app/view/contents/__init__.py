"""Contents of the page, read from runs."""
