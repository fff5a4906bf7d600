"""Commands that make or judge runs: batch, resume, judge, import, adopt and the papers' setups."""
