"""The parts of a model: feed-forward blocks, attention with shared projections, and the layers that use them."""
