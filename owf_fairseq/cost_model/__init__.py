"""Predicted decoding speed, from the shape of a model and of a device. Needs neither torch nor fairseq."""
