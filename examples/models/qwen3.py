"""Eight layers of Qwen3-1.7B: a prefill of 2048 tokens, and a decoding step of 16 sequences."""

import inspect

import torch
from sizes import DEVICE, DTYPE, placed, sized
from transformers import Qwen3Config, Qwen3ForCausalLM, StaticCache

TOKENS = sized(2048, 24)
SEQUENCES = sized(16, 2)
ROOM = 128  # of the cache behind the tokens; 64 of them are generated to compare


def make():
    """Return the model and both calls, each of a kind of its own."""
    model, ids = decoder()
    return model, {"prefill": prefill_of(ids), "decode": decode_of(model, ids)}


def prefill():
    """Return the model and the call with many tokens."""
    model, ids = decoder()
    return model, {"prefill": prefill_of(ids)}


def decode():
    """Return the model and the call with one token and a cache."""
    model, ids = decoder()
    return model, {"decode": decode_of(model, ids)}


def decoder():
    """Return the model, and tokens for it."""
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=sized(151936, 512),
        hidden_size=sized(2048, 128),
        intermediate_size=sized(6144, 384),
        num_hidden_layers=sized(8, 2),
        num_attention_heads=sized(16, 4),
        num_key_value_heads=sized(8, 2),
        head_dim=sized(128, 32),
        tie_word_embeddings=True,
        eos_token_id=None,
    )
    model = placed(Qwen3ForCausalLM(config))
    ids = torch.randint(0, config.vocab_size, (SEQUENCES, TOKENS + 1), device=DEVICE)
    return model, ids


def prefill_of(ids):
    """Return the call with the tokens of one sequence."""
    return {"input_ids": ids[:1, :TOKENS], "use_cache": False, "logits_to_keep": 1}


@torch.no_grad()
def decode_of(model, ids):
    """Return the call with the last token of each sequence, and a cache of those before."""
    config = model.config
    parameters = inspect.signature(model.forward).parameters
    name = "cache" if "cache" in parameters else "past_key_values"  # since transformers 5.24
    cache = StaticCache(config=config, max_cache_len=TOKENS + ROOM)
    cache.early_initialization(
        SEQUENCES, config.num_key_value_heads, config.head_dim, DTYPE, torch.device(DEVICE)
    )
    model(input_ids=ids[:, :TOKENS], logits_to_keep=1, **{name: cache})
    return {"input_ids": ids[:, TOKENS:], name: cache}
