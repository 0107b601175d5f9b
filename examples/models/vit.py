"""ViT-L/16: a batch of 32 images."""

import torch
from sizes import placed, random, sized
from transformers import ViTConfig, ViTForImageClassification

IMAGE = sized(224, 64)


def make():
    """Return the model and its calls."""
    torch.manual_seed(0)
    config = ViTConfig(
        hidden_size=sized(1024, 128),
        num_hidden_layers=sized(24, 9),
        num_attention_heads=sized(16, 4),
        intermediate_size=sized(4096, 512),
        image_size=IMAGE,
        patch_size=16,
        num_labels=1000,
    )
    model = placed(ViTForImageClassification(config))
    return model, {"images": (random(sized(32, 4), 3, IMAGE, IMAGE),)}
