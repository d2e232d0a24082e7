"""From raw text to fairseq's binary data: line-exact text files, segmentation, and the quickstart's corpus."""
