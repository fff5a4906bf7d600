"""Two runs, or two models, stage by stage: where they part, and how much that changes."""
