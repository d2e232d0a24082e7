"""How similar models are inside: sentence representations of every component, CKA and LNS of them, tables and plots."""
