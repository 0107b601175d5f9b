"""ConvNeXt-B: a batch of 64 images."""

import torch
from sizes import placed, random, sized
from transformers import ConvNextConfig, ConvNextForImageClassification

IMAGE = sized(224, 64)


def make():
    """Return the model and its calls."""
    torch.manual_seed(0)
    config = ConvNextConfig(
        hidden_sizes=sized([128, 256, 512, 1024], [16, 32, 64, 128]),
        depths=sized([3, 3, 27, 3], [2, 2, 13, 2]),
        image_size=IMAGE,
        num_labels=1000,
        layer_scale_init_value=1.0,  # as after training; at 1e-6 no block changes what is seen
    )
    model = placed(ConvNextForImageClassification(config))
    return model, {"images": (random(sized(64, 2), 3, IMAGE, IMAGE),)}
