"""The ``match`` judge: CMC-Bench's five labels by rule, offline, where the rules can show them."""

from judges.cmc_rules.cmc_match_judge import Match as Match
