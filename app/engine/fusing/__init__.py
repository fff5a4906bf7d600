"""Fusing an adapter into a model's folder, and the check of what that keeps."""
