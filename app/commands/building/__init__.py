"""Commands that build question sets: build, sets, vary, passages, prompts and the figures of a build."""
