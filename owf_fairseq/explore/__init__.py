"""The layouts that a budget of parameters allows, and how fast each should be. Needs neither torch nor fairseq."""
