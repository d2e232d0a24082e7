"""Lets test modules in every folder import the helpers that lie beside this file."""

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent))

# the models of the tests are so small that a second thread costs more than it saves, most of all on a busy machine
torch.set_num_threads(1)
