"""Training of adapters with mlx-vlm's layers, losses and batches, in a loop that can stop and resume."""
