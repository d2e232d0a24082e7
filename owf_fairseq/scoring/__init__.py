"""``owf evaluate``: scores of translations, and whether systems differ."""
