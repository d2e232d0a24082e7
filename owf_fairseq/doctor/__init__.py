"""``owf doctor``: what is installed, and what is wrong with it."""
