"""Source text from TorchInductor.

Inductor's private names are used here and in `autotuned.py`, and elsewhere only in the text of
candidates. StandaloneSource for torch 2.11 and 2.13.
"""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import torch
from torch import Tensor, fx
from torch._functorch.compile_utils import fx_graph_cse
from torch._inductor import compile_fx, config, constant_folding, freezing
from torch._inductor.fx_passes import freezing_patterns
from torch._inductor.fx_passes.post_grad import view_to_reshape
from torch._inductor.graph import GraphLowering
from torch._inductor.select_algorithm import TritonTemplate, extern_kernels

from adaexplore.propose.compiler.graph import Traced, UnsupportedError, Weight, outputs_of
from adaexplore.propose.compiler.tape import Tape

_ALWAYS: dict[str, Any] = {
    "fx_graph_cache": False,  # a cached graph would skip code generation
    "fx_graph_remote_cache": False,
    "enable_caching_generated_triton_templates": False,  # else another precision is reused
    "fallback_random": True,  # the same random numbers as eager
    "graph_partition": False,
    "size_asserts": False,
    "alignment_asserts": False,
    "scalar_asserts": False,
    "nan_asserts": False,
    "triton.unique_kernel_names": True,
    "triton.descriptive_names": "original_aten",
}

COMPILER_TROUBLE = (
    RuntimeError,
    AssertionError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
    ImportError,
    OSError,
)
"""Exceptions of Inductor when options do not fit a graph; it has no exception type of its own."""


@dataclass(frozen=True, slots=True)
class LoweringOptions:
    """LoweringOptions of lowering a graph.

    `config` goes to Inductor, without names unknown to its version. `fold` computes tensors that
    depend on weights only outside the graph; `pack` then chooses the CPU library whose packed
    weights are used: `none`, `mkl` or `onednn`. `autocast` lowers under bfloat16 autocast.
    `dot_precision` is Triton's `input_precision` for matrix products of the templates; empty keeps
    Inductor's choice.
    """

    config: dict[str, Any] = field(default_factory=dict)
    fold: bool = False
    pack: str = "none"
    autocast: bool = False
    dot_precision: str = ""


@dataclass(frozen=True)
class Lowered:
    """Inductor's wrapper source, and the meaning of its names.

    `arguments[i]` is the index, among the inputs of the traced graph, of the wrapper's argument
    `i`. `constants` are tensors that the source refers to by name and that `tape` can trace back to
    the weights.
    """

    source: str
    arguments: list[int]
    constants: dict[str, Tensor]
    tape: Tape


class _CapturedError(Exception):
    """Ends compilation once the source is known."""


def lower(traced: Traced, options: LoweringOptions) -> Lowered:
    """Return Inductor's source for a traced graph under `options`; nothing is compiled or run.

    Raises `UnsupportedError` with one line if Inductor cannot lower the graph.
    """
    lowering = _Lowering(traced, options)
    known = config.get_config_copy()
    patches = {key: value for key, value in _ALWAYS.items() if key in known}
    patches |= {key: value for key, value in options.config.items() if key in known}
    patches["always_keep_tensor_constants"] = options.fold
    module = copy.deepcopy(traced.module)
    if options.autocast:
        _keep_output_dtypes(module, traced.output_dtypes)
    device = traced.values[0].device.type if traced.values else "cpu"
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        if options.autocast:
            stack.enter_context(torch.autocast(device, torch.bfloat16))
        stack.enter_context(config.patch(patches))
        stack.enter_context(lowering.capturing())
        stack.enter_context(_dot_precision(options.dot_precision))
        try:
            compile_fx.compile_fx(module, list(traced.values), inner_compile=lowering.inner_compile)
        except COMPILER_TROUBLE as error:
            if lowering.source is None:
                raise UnsupportedError(explain(error)) from error
        except _CapturedError:
            pass
    if lowering.source is None:
        raise UnsupportedError("the graph computes nothing")
    return Lowered(lowering.source, lowering.arguments, lowering.constants, lowering.tape)


class _Lowering:
    """One run of Inductor: its hooks and their results."""

    def __init__(self, traced: Traced, options: LoweringOptions) -> None:
        self.source: str | None = None
        self.arguments: list[int] = list(range(len(traced.sources)))
        self.constants: dict[str, Tensor] = {}
        self.tape = Tape(traced.values)
        self._traced = traced
        self._options = options

    @contextlib.contextmanager
    def capturing(self) -> Iterator[None]:
        """Take the wrapper's source and constants as soon as they exist, and stop there."""
        codegen = GraphLowering.codegen

        @functools.wraps(codegen)
        def keeping_constants(graph: Any) -> Any:
            result = codegen(graph)
            self.constants = dict(graph.constants)
            return result

        def keep_source(source: str) -> None:
            self.source = source
            raise _CapturedError

        with (
            mock.patch.object(GraphLowering, "codegen", keeping_constants),
            mock.patch.object(GraphLowering, "save_output_code", staticmethod(keep_source)),
        ):
            yield

    def inner_compile(self, module: fx.GraphModule, inputs: Any, **kwargs: Any) -> Any:
        """Compile the functional graph, folded or not; called by Inductor."""
        if len(module.graph.find_nodes(op="placeholder")) != len(self._traced.sources):
            raise UnsupportedError("inputs share memory and are changed in place")
        if len(outputs_of(module)) < self._traced.outputs or _returns_mutations():
            raise UnsupportedError("an input is changed in a way that is no copy into it")
        if not self._options.fold:
            return compile_fx.compile_fx_inner(module, inputs, **kwargs)
        inputs = self._make_weights_constant(module, inputs)
        folder = functools.partial(_RecordingFolder, tape=self.tape)
        with (
            mock.patch.object(constant_folding, "ConstantFolder", folder),
            _packing(self._options.pack, inputs),
        ):
            kwargs["layout_opt"] = _fold(module, inputs)
        fake_mode = torch._guards.detect_fake_mode(inputs)
        with mock.patch.object(fake_mode, "allow_non_fake_inputs", True), self.tape:
            return compile_fx.compile_fx_inner(
                module, inputs, **(kwargs | {"static_input_idxs": (), "is_inference": True})
            )

    def _make_weights_constant(self, module: fx.GraphModule, inputs: list[Any]) -> list[Any]:
        """Make weights attributes of the graph, except those that it writes to or returns."""
        nodes = module.graph.find_nodes(op="placeholder")
        written = {
            node.args[0]
            for node in module.graph.nodes
            if node.target is torch.ops.aten.copy_.default
        }
        returned = set(module.graph.output_node().all_input_nodes)
        self.arguments = []
        for index, (node, source) in enumerate(zip(nodes, self._traced.sources, strict=True)):
            if isinstance(source, Weight) and node not in written | returned:
                constant_folding.replace_node_with_constant(
                    module, node, self._traced.values[index]
                )
            else:
                self.arguments.append(index)
        return [inputs[index] for index in self.arguments]


class _RecordingFolder(constant_folding.ConstantFolder):  # type: ignore[misc]
    """Inductor's constant folder, with the folding recorded."""

    def __init__(self, *args: Any, tape: Tape, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._tape = tape

    def run(self) -> Any:
        """Fold under the tape: the caller has switched all modes off."""
        with self._tape:
            return super().run()


def _fold(module: fx.GraphModule, inputs: list[Any]) -> bool:
    """Run Inductor's freezing passes over weights; return True for channels-last layout."""
    layout = bool(GraphLowering.decide_layout_opt(module, is_inference=True))
    if layout:
        compile_fx.fake_tensor_prop(module, inputs, True)
        freezing.convert_conv_weights_to_channels_last(module)
    view_to_reshape(module)
    module.graph = fx_graph_cse(module.graph)
    module.recompile()
    freezing_patterns.freezing_passes(module, inputs)
    constant_folding.constant_fold(module)
    module.graph.output_node().meta["user_visible_output_idxs"] = [
        index for index, node in enumerate(outputs_of(module)) if isinstance(node, fx.Node)
    ]
    return layout


@contextlib.contextmanager
def _packing(pack: str, inputs: list[Any]) -> Iterator[None]:
    """Choose the library that packed CPU weights are for; no effect on a GPU."""
    if any(isinstance(value, Tensor) and value.is_cuda for value in inputs):
        yield
    elif pack == "none":
        freezing_patterns.lazy_init()  # else patterns registered now would outlive the patch
        with mock.patch.object(freezing_patterns, "pass_patterns", []):
            yield
    elif pack == "mkl":
        yield
    else:
        from torch._inductor.fx_passes import mkldnn_fusion

        device = mkldnn_fusion.CpuMkldnnDeviceOp
        pack_weight, pack_linear = device.pack_linear_weight, device.pack_linear
        with (  # Inductor keeps oneDNN's packing for low precision; it pays in fp32 as well
            mock.patch.object(
                device,
                "pack_linear_weight",
                lambda self, graph, _, *rest: pack_weight(self, graph, True, *rest),
            ),
            mock.patch.object(
                device,
                "pack_linear",
                lambda self, graph, _, *rest: pack_linear(self, graph, True, *rest),
            ),
        ):
            yield


@contextlib.contextmanager
def _dot_precision(precision: str) -> Iterator[None]:
    """Make the Triton templates multiply with `input_precision=precision`."""
    if not precision:
        yield
        return

    class Template:
        def __init__(self, template: Any) -> None:
            self._template = template

        def render(self, *args: Any, **kwargs: Any) -> str:
            text: str = self._template.render(*args, **kwargs)
            return text.replace("allow_tf32=ALLOW_TF32", f'input_precision="{precision}"')

    with contextlib.ExitStack() as stack:
        for template in TritonTemplate.all_templates.values():
            stack.enter_context(
                mock.patch.object(template, "template", Template(template.template))
            )
        yield


def _keep_output_dtypes(module: fx.GraphModule, dtypes: tuple[torch.dtype, ...]) -> None:
    """Cast outputs that autocast made smaller back to the dtypes of the reference."""
    output = module.graph.output_node()
    tensors = [node for node in outputs_of(module) if isinstance(node, fx.Node)]
    with module.graph.inserting_before(output):
        for node, dtype in zip(tensors, dtypes, strict=True):
            if dtype.is_floating_point:
                cast = module.graph.call_function(torch.ops.aten.to.dtype, (node, dtype))
                output.replace_input_with(node, cast)
    module.recompile()


def _returns_mutations() -> bool:
    context = torch._guards.TracingContext.try_get()
    metadata = context.fw_metadata if context is not None else None
    return metadata is not None and bool(metadata.mutated_inp_runtime_indices)


def explain(error: BaseException) -> str:
    """Return an error of Inductor in one line."""
    lines = [line for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return f"Inductor: {lines[0].strip()[:200]}"


def public_name(kernel: str) -> str:
    """Return the public function behind `extern_kernels.<kernel>` in Inductor's source.

    Raises `UnsupportedError` for a helper of Inductor's own.
    """
    if kernel == "bias_addmm":  # addmm that checks the bias's strides first
        return "torch.addmm"
    function = getattr(extern_kernels, kernel, None)
    if isinstance(function, torch._ops.OpOverload | torch._ops.OpOverloadPacket):
        return f"torch.ops.{function}"
    if function is not None and function is getattr(torch, kernel, None):
        return f"torch.{kernel}"
    raise UnsupportedError(f"calls Inductor's own helper {kernel}")
