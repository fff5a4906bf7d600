"""Commands that read runs: show, compare, recommend, check, try, export, report and others."""
