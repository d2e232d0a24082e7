"""Checkpoints: read safely, described, averaged, converted and written whole."""
