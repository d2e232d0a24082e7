"""The models and their named architectures; importing this registers them with fairseq."""

from owf_fairseq.compat import allow_fairseq_checkpoints, allow_literals_only, keep_async_checkpoints_whole
from owf_fairseq.models import architectures as _architectures  # noqa: F401  registers the archs
from owf_fairseq.models.transformer import OwfTransformerModel
from owf_fairseq.resuming import make_training_resumable

__all__ = ["OwfTransformerModel"]

allow_fairseq_checkpoints()
allow_literals_only()
keep_async_checkpoints_whole()
make_training_resumable()
