"""Small datasets in the forms of FlashInfer-Bench and SOL-ExecBench."""

from __future__ import annotations

import json
import struct
import textwrap


def tensor(*shape, dtype="bfloat16"):
    return {"shape": list(shape), "dtype": dtype}


SCALAR = {"shape": None, "dtype": "float32"}


def definition(name, op_type, reference, inputs, outputs, axes, **more):
    sizes = {
        axis: {"type": "var"} if size is None else {"type": "const", "value": size}
        for axis, size in axes.items()
    }
    return {
        "name": name,
        "op_type": op_type,
        "axes": sizes,
        "inputs": inputs,
        "outputs": outputs,
        "reference": textwrap.dedent(reference),
        **more,
    }


def trace(name, uuid, axes, inputs, **more):
    workload = {"uuid": uuid, "axes": axes, "inputs": inputs, **more}
    return {"definition": name, "workload": workload, "solution": None, "evaluation": None}


RANDOM = {"type": "random"}

NORM = definition(
    "norm_h64",
    "rmsnorm",
    """
    import torch

    @torch.no_grad()
    def run(weight, hidden_states):
        x = hidden_states.to(torch.float32)
        scale = torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + 1e-6)
        return (x * scale * weight.to(torch.float32)).to(hidden_states.dtype)
    """,
    {"hidden_states": tensor("batch_size", "hidden"), "weight": tensor("hidden")},
    {"output": tensor("batch_size", "hidden")},
    {"batch_size": None, "hidden": 64},
    description="A norm.",
)
NORM_WORKLOADS = [
    trace(
        "norm_h64",
        f"0000000{i}-aaaa",
        {"batch_size": size},
        {"hidden_states": RANDOM, "weight": RANDOM},
    )
    for i, size in enumerate((4, 16, 1, 64, 2))
]

PAGED = definition(
    "paged_d8",
    "gqa_paged",
    """
    import math
    import torch

    @torch.no_grad()
    def run(q, k_cache, kv_indptr, kv_indices, sm_scale):
        out = torch.zeros(q.shape, dtype=torch.bfloat16, device=q.device)
        lse = torch.full(q.shape[:1], -float("inf"), dtype=torch.float32, device=q.device)
        for i in range(len(q)):
            own = kv_indices[int(kv_indptr[i].item()) : int(kv_indptr[i + 1].item())].long()
            if len(own) == 0:
                continue
            keys = k_cache.squeeze(1).to(torch.float32)[own]
            logits = keys @ q[i].to(torch.float32) * sm_scale
            lse[i] = torch.logsumexp(logits, -1) / math.log(2.0)
            out[i] = (torch.softmax(logits, -1) @ keys).to(torch.bfloat16)
        return out, lse
    """,
    {
        "q": tensor("batch_size", "head_dim"),
        "k_cache": tensor("num_pages", "page_size", "head_dim"),
        "kv_indptr": tensor("len_indptr", dtype="int32"),
        "kv_indices": tensor("num_kv_indices", dtype="int32"),
        "sm_scale": SCALAR,
    },
    {"output": tensor("batch_size", "head_dim"), "lse": tensor("batch_size", dtype="float32")},
    {
        "batch_size": None,
        "num_pages": None,
        "len_indptr": None,
        "num_kv_indices": None,
        "page_size": 1,
        "head_dim": 8,
    },
    constraints=["len_indptr == batch_size + 1", "num_kv_indices == kv_indptr[-1].item()"],
)
BLOB = "./blob/paged.safetensors"
PAGED_WORKLOADS = [
    trace(
        "paged_d8",
        "11111111-bbbb",
        {"batch_size": 3, "num_pages": 4000, "len_indptr": 4, "num_kv_indices": 9},
        {
            "q": RANDOM,
            "k_cache": RANDOM,
            "kv_indptr": {"type": "safetensors", "path": BLOB, "tensor_key": "kv_indptr"},
            "kv_indices": {"type": "safetensors", "path": BLOB, "tensor_key": "kv_indices"},
            "sm_scale": {"type": "scalar", "value": 0.35},
        },
    )
]
SAMPLING = definition(
    "sampling_v16",
    "sampling",
    """
    import torch

    def run(probs):
        return torch.multinomial(probs, 1)
    """,
    {"probs": tensor("batch_size", "vocab", dtype="float32")},
    {"samples": tensor("batch_size", dtype="int64")},
    {"batch_size": None, "vocab": 16},
)
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"

ROPE = definition(
    "rope_half",
    None,
    """
    import torch

    @torch.no_grad()
    def run(x, cos, eps):
        return x[..., : x.shape[-1] // 2] * cos + eps
    """,
    {
        "x": tensor("rows", "dim", dtype="float32"),
        "cos": tensor("rows", "half", dtype="float32"),
        "eps": SCALAR,
    },
    {"y": tensor("rows", "half", dtype="float32")},
    {"rows": None, "dim": 8},
)
ROPE["axes"]["half"] = {"type": "expr", "expression": "dim // 2"}
ROPE_WORKLOADS = [
    {
        "uuid": f"rope-00{rows}",
        "axes": {"rows": rows},
        "inputs": {"x": RANDOM, "cos": RANDOM, "eps": {"type": "scalar", "value": 0.5}},
        **more,
    }
    for rows, more in (
        (2, {}),
        (6, {"tolerance": {"max_atol": 1e-4, "max_rtol": 1e-3, "max_error_cap": 0.5}}),
    )
]
CUSTOM = definition(
    "custom_matmul",
    "matmul",
    """
    import torch

    def generate_inputs(axes_and_scalars, device):
        m, k = axes_and_scalars["M"], axes_and_scalars["K"]
        return {"A": torch.randn(m, k, device=device), "B": torch.ones(k, m, device=device)}

    @torch.no_grad()
    def run(A, B):
        return A @ B
    """,
    {"A": tensor("M", "K", dtype="float32"), "B": tensor("K", "M", dtype="float32")},
    {"C": tensor("M", "M", dtype="float32")},
    {"M": None, "K": None},
    custom_inputs_entrypoint="generate_inputs",
)
CUSTOM_WORKLOADS = [
    {
        "uuid": "matmul-001",
        "axes": {"M": 3, "K": 5},
        "inputs": {"A": {"type": "custom"}, "B": {"type": "custom"}},
    }
]


def lines(workloads):
    return "".join(f"{json.dumps(workload)}\n" for workload in workloads)


DATASET = {
    "definitions/rmsnorm/norm_h64.json": json.dumps(NORM),
    "workloads/rmsnorm/norm_h64.jsonl": lines(NORM_WORKLOADS),
    "definitions/gqa_paged/paged_d8.json": json.dumps(PAGED),
    "workloads/gqa_paged/paged_d8.jsonl": lines(PAGED_WORKLOADS),
    "definitions/sampling/sampling_v16.json": json.dumps(SAMPLING),
    "blob/paged.safetensors": POINTER,
}
"""A dataset of FlashInfer-Bench: the indices of one definition are a pointer of Git LFS."""

TASKS = {
    "L1/rope_half/definition.json": json.dumps(ROPE),
    "L1/rope_half/workload.jsonl": lines(ROPE_WORKLOADS),
    "L2/custom_matmul/definition.json": json.dumps(CUSTOM),
    "L2/custom_matmul/workload.jsonl": lines(CUSTOM_WORKLOADS),
}
"""Two tasks of SOL-ExecBench."""


def put(folder, files):
    """Write files into a folder; return it."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def safetensors(**tensors):
    """The bytes of a file of 32-bit integers."""
    header, content = {}, b""
    for name, values in tensors.items():
        own = struct.pack(f"<{len(values)}i", *values)
        places = [len(content), len(content) + len(own)]
        header[name] = {"dtype": "I32", "shape": [len(values)], "data_offsets": places}
        content += own
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + content
