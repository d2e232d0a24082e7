"""`owf shortlist`: from word alignments to the symbols that a translation may have."""
