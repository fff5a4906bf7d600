"""The recommended run, with the advice and the caveats."""
