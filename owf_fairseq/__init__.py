"""A fairseq plugin for Transformers with shared, dropped and widened feed-forward networks.

After Pires, Lopes, Assogba and Setiawan, "One Wide Feedforward is All You Need" (2023, arXiv:2309.01826). Importing it
registers its models with fairseq (except in a program named ``owf``, which answers before fairseq is imported); on the
command line ``--user-dir`` does the same.
"""

import logging
import sys
from pathlib import Path

__version__ = "0.1.0"

USER_DIR = str(Path(__file__).resolve().parent)
"""What to give to fairseq's ``--user-dir``."""

# fairseq advertises tensorboardX while it is imported
logging.getLogger("fairseq.tasks.text_to_speech").setLevel(logging.WARNING)

# The command `owf` imports fairseq (seconds) in the subcommands that need it, and not to print its help.
if Path(sys.argv[0] if getattr(sys, "argv", None) else "").name not in ("owf", "owf.exe"):
    from owf_fairseq import models as _models  # noqa: F401
