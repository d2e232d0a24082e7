"""Training by configs: files of fairseq-train's flags, the exact command that they stand for, and what is recorded."""
