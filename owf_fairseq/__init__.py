"""A fairseq plugin for Transformers with shared, dropped and widened feed-forward networks.

After Pires, Lopes, Assogba and Setiawan, "One Wide Feedforward is All You Need" (2023, arXiv:2309.01826). Importing
``owf_fairseq.models`` registers its models with fairseq. On the command line ``--user-dir`` does, because fairseq
imports a user-dir's ``models``. The package itself imports neither fairseq nor torch, so that ``owf --help`` is quick.
"""

import logging
from pathlib import Path

__version__ = "0.1.0"

USER_DIR = str(Path(__file__).resolve().parent)
"""What to give to fairseq's ``--user-dir``.

fairseq imports no package twice: a Python program that has imported this one, and then runs one of fairseq's commands
in the same process, imports ``owf_fairseq.models`` itself.
"""

# fairseq advertises tensorboardX while it is imported
logging.getLogger("fairseq.tasks.text_to_speech").setLevel(logging.WARNING)
