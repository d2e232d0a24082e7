"""`owf distill`: training data whose target side is a teacher's translations."""
