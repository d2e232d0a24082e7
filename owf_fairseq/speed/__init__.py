"""``owf benchmark``: how fast models decode, and how much memory they take."""
