"""``python -m owf_fairseq`` is ``owf``."""

import sys

from owf_fairseq.cli import main

sys.exit(main())
