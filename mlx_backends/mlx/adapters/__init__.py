"""Adapters of MLX models: applied, fused, converted and requantised."""
