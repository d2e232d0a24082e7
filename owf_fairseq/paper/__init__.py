"""The paper's tables, and our results beside them."""
