"""Ladder of one model: from PyTorch in full precision to MLX in 4 bits, step by step."""
