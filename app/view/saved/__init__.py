"""The page and its contents in one file."""
