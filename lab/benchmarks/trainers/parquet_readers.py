"""Read exported Parquet files as verl and TRL do.

    python parquet_readers.py FOLDER

FOLDER has rl.parquet, sft.parquet, sft-steps.parquet and preferences.parquet, by `adaexplore export
--parquet`; the environment has verl, trl, datasets and transformers. Prints a JSON object.
"""

import contextlib
import importlib.metadata
import io
import json
import sys
from pathlib import Path

from datasets import load_dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

TEMPLATE = "{% for m in messages %}{{ m.role }}:{{ m.content }}<eos>{% endfor %}"


def byte_tokenizer():
    """Return a tokenizer with a token for each byte, and a chat template."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: i for i, token in enumerate(["<pad>", "<eos>", *alphabet])}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>", chat_template=TEMPLATE
    )


def by_verl(folder, tokenizer):
    """Read the RL rows with verl's `RLHFDataset`."""
    from omegaconf import OmegaConf
    from verl.utils.dataset.rl_dataset import RLHFDataset

    config = OmegaConf.create({"max_prompt_length": 20000, "filter_overlong_prompts": True})
    with contextlib.redirect_stdout(io.StringIO()):
        rows = RLHFDataset(str(folder / "rl.parquet"), tokenizer, config)
    row = rows[0]
    keys = ("data_source", "ability", "reward_model", "extra_info")
    return {"rows": len(rows), "keys": [key for key in keys if key in row]}


def by_trl(folder, tokenizer):
    """Prepare the other forms as TRL's trainers do."""
    from trl import apply_chat_template, is_conversational

    found = {}
    for form in ("sft", "sft-steps", "preferences"):
        rows = load_dataset("parquet", data_files=str(folder / f"{form}.parquet"))["train"]
        row = apply_chat_template(rows[0], tokenizer)
        found[form] = {
            "rows": len(rows),
            "conversational": is_conversational(rows[0]),
            "keys": sorted(key for key in ("text", "prompt", "chosen", "rejected") if key in row),
            "licences": sorted(set(rows["license"])),
        }
    return found


def main():
    """Read all of them with the readers that this environment has."""
    folder, tokenizer, found = Path(sys.argv[1]), byte_tokenizer(), {}
    for package, read in (("verl", by_verl), ("trl", by_trl)):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            name = f"{package} {importlib.metadata.version(package)}"
            found[name] = read(folder, tokenizer)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
