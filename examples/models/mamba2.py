"""Eight blocks of Mamba2-370M in the code of transformers alone: 2048 tokens."""

import torch
from sizes import DEVICE, placed, sized
from transformers import Mamba2Config, Mamba2Model


def make():
    """Return the model and its calls."""
    torch.manual_seed(0)
    hidden = sized(1024, 64)
    config = Mamba2Config(
        vocab_size=sized(50288, 256),
        hidden_size=hidden,
        num_hidden_layers=sized(8, 2),
        head_dim=sized(64, 16),
        num_heads=2 * hidden // sized(64, 16),
        state_size=sized(128, 16),
        n_groups=1,
        chunk_size=sized(256, 16),
    )
    model = placed(Mamba2Model(config))
    ids = torch.randint(0, config.vocab_size, (sized(1, 2), sized(2048, 32)), device=DEVICE)
    return model, {"prefill": {"input_ids": ids, "use_cache": False}}
