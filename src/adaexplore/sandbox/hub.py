"""Models of the Hugging Face hub that were downloaded to this machine."""

from __future__ import annotations

import os
from pathlib import Path


def hub_cache() -> Path | None:
    """Return the folder of downloaded models, None where there is none.

    It holds models and no token: that lies beside it.
    """
    caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    home = os.environ.get("HF_HOME") or f"{caches}/huggingface"
    cache = Path(os.environ.get("HF_HUB_CACHE") or f"{home}/hub").expanduser()
    return cache if cache.is_dir() else None


def hub_environment() -> dict[str, str]:
    """Return the variables by which a process without a network finds these models."""
    cache = hub_cache()
    return {"HF_HUB_CACHE": str(cache), "HF_HUB_OFFLINE": "1"} if cache else {}


def has_model(name: str) -> bool:
    """Return whether the model `name`, such as `openai-community/gpt2`, was downloaded."""
    cache = hub_cache()
    return bool(cache and any(cache.glob(f"models--{name.replace('/', '--')}/snapshots/*/*")))
