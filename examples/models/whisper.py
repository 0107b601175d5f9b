"""The encoder of Whisper large-v3: four recordings of 30 seconds."""

import torch
from sizes import placed, random, sized
from transformers import WhisperConfig
from transformers.models.whisper.modeling_whisper import WhisperEncoder

FRAMES = sized(3000, 96)


def make():
    """Return the model and its calls."""
    torch.manual_seed(0)
    config = WhisperConfig(
        num_mel_bins=sized(128, 16),
        d_model=sized(1280, 128),
        encoder_layers=sized(32, 2),
        encoder_attention_heads=sized(20, 4),
        encoder_ffn_dim=sized(5120, 512),
        max_source_positions=FRAMES // 2,
    )
    model = placed(WhisperEncoder(config))
    return model, {"recordings": (random(sized(4, 2), config.num_mel_bins, FRAMES),)}
