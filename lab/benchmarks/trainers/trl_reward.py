"""Twenty training steps of TRL's `GRPOTrainer`, whose reward function asks a service.

    python trl_reward.py http://x:TOKEN@127.0.0.1:8710/openenv INDEX

The model is a random one of some thousand weights. Of the two completions of a step, the reward
function judges the first as the model wrote it, and takes a kernel of `steps` for the second.
INDEX is the place of `steps.REFERENCE` in the split `train`; the environment has trl and httpx.
Prints a JSON object.
"""

import importlib.metadata
import json
import sys
import tempfile
import time

import httpx
from datasets import Dataset
from steps import REFERENCE, steps
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import GRPOConfig, GRPOTrainer

URL, INDEX = sys.argv[1], int(sys.argv[2])
ORDER = {"split": "train", "index": INDEX, "reward": "drkernel-staircase", "wait_s": 280}
ROWS = []
HTTP = httpx.Client(timeout=300)


def judge(code):
    """Return the reward of a kernel, None where the service has no verdict."""
    begun = HTTP.post(f"{URL}/reset", json=ORDER).raise_for_status().json()["observation"]
    assert REFERENCE.strip() in begun["prompt"]
    order = {"action": {"code": code}, "episode_id": begun["episode_id"]}
    for _ in range(10):
        answer = HTTP.post(f"{URL}/step", json=order)
        if answer.status_code != 503:
            found = answer.raise_for_status().json()
            return found["reward"], found["observation"]["status"]
        time.sleep(float(answer.headers["retry-after"]))
    return None, "no verdict"


def reward(completions, kernel, status, **_):
    """Return the rewards of completions, as TRL asks for them."""
    rewards = []
    for place, completion in enumerate(completions):
        scripted = place % 2
        code = kernel[place] if scripted else completion
        value, found = judge(code)
        rewards.append(value)
        expected = status[place] if scripted else "compile_error"
        ROWS.append({"expected": expected, "status": found, "reward": value, "scripted": scripted})
    return rewards


def byte_tokenizer():
    """Return a tokenizer with a token for each byte."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: i for i, token in enumerate(["<pad>", "<eos>", *alphabet])}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>")


def main():
    """Train for twenty steps; print what the reward function returned to TRL."""
    tokenizer = byte_tokenizer()
    shape = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1}
    config = LlamaConfig(
        vocab_size=len(tokenizer), num_attention_heads=2, num_key_value_heads=2, **shape
    )
    sent = steps()
    rows = [{"prompt": "kernel:", "kernel": code, "status": status} for code, status in sent]
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        trainer = GRPOTrainer(
            LlamaForCausalLM(config),
            reward_funcs=[reward],
            args=GRPOConfig(
                output_dir=folder,
                max_steps=len(sent),
                per_device_train_batch_size=2,
                num_generations=2,
                max_completion_length=8,
                use_cpu=True,
                report_to=[],
                save_strategy="no",
                logging_steps=1,
                shuffle_dataset=False,
            ),
            train_dataset=Dataset.from_list(rows),
            processing_class=tokenizer,
        )
        trainer.train()
    means = [log["reward"] for log in trainer.state.log_history if "reward" in log]
    print(
        json.dumps(
            {
                "client": f"trl {importlib.metadata.version('trl')}",
                "training_steps": trainer.state.global_step,
                "as_expected": sum(row["status"] == row["expected"] for row in ROWS),
                "s": round(time.perf_counter() - began, 1),
                "mean_rewards": means,
                "rows": ROWS,
            }
        )
    )


if __name__ == "__main__":
    main()
