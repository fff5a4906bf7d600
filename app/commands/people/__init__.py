"""Commands for people's work: label, override, review and answer."""
