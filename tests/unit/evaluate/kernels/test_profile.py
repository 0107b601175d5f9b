import importlib
import inspect
import sys
from types import SimpleNamespace

import pytest
import torch

from adaexplore.core.verdict.evaluation import Launch
from adaexplore.evaluate.kernels.launches import watched_launches
from adaexplore.evaluate.kernels.profile import origin_of, own_kernels, read_profile
from adaexplore.evaluate.kernels.profiler import OUTSIDE, kernels_in, poisoned_memory, profile_calls
from adaexplore.evaluate.wire.kernel_messages import Profiled, ProfiledKernel, ProfiledTriton

SOURCE = '''
import triton
import triton.language as tl

@triton.autotune(configs=[], key=[])
@triton.jit
def softmax_kernel(x_ptr, n, B: tl.constexpr):
    """Not a __global__ mention(in a docstring)."""

@triton.jit(do_not_specialize=["n"])
def scale(x_ptr, n):
    pass

CUDA = """
template <typename T>
__global__ void __launch_bounds__(256) bias_relu(T* x, int n) { x[0] = 0; }
"""

def not_a_kernel(x):
    return x
'''
ELEMENTWISE = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>"
CUBLAS = "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_execute_kernel__5x_cublas"


def event(name, dur, cat="kernel", **args):
    shape = {
        "registers per thread": 32,
        "shared memory": 16384,
        "grid": [64, 2, 1],
        "block": [128, 1, 1],
        "est. achieved occupancy %": 75,
    }
    return {"ph": "X", "cat": cat, "name": name, "ts": 1.0, "dur": dur, "args": shape | args}


def reply(*events, calls=2, triton=()):
    return Profiled(calls, tuple(kernels_in({"traceEvents": list(events)})), tuple(triton))


def read(*events, source=SOURCE, **more):
    return read_profile(reply(*events, **more), source, "triton")


class TestReading:
    def test_launches_and_time_are_per_call(self):
        found = read(
            event("softmax_kernel", 10.0), event("softmax_kernel", 14.0), event(ELEMENTWISE, 8.0)
        )
        first, second = found.profile.kernels
        assert (first.name, first.origin, first.launches, first.time_us) == (
            "softmax_kernel",
            "custom",
            1.0,
            12.0,
        )
        assert (second.origin, second.launches, second.time_us) == ("aten", 0.5, 4.0)
        assert found.profile.device_us == 16.0
        assert found.profile.custom_share == 0.75

    def test_a_launch_has_its_form_and_its_spills(self):
        spilling = ProfiledTriton("scale", own=True, spills_bytes=48)
        found = read(event("scale", 1.0), triton=[spilling])
        assert found.profile.kernels[0].launch == Launch(
            (64, 2, 1), (128, 1, 1), 32, 16384, 0.75, 48
        )

    def test_the_bytes_that_a_call_gives_a_kernel_are_known_if_every_launch_was_seen(self):
        def bytes_of(launches):
            seen = ProfiledTriton(
                "scale", own=True, spills_bytes=0, launches=launches, given_bytes=96
            )
            two = (event("scale", 1.0), event("scale", 1.0))
            return read(*two, triton=[seen]).profile.kernels[0].given_bytes

        assert (bytes_of(2), bytes_of(1)) == (48.0, None)

    def test_copies_and_fills_count_but_host_events_do_not(self):
        found = read(
            event("scale", 1.0),
            {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy DtoD", "dur": 3.0, "args": {}},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "dur": 99.0},
            {"ph": "M", "name": "process_name"},
        )
        assert [use.name for use in found.profile.kernels] == ["Memcpy DtoD", "scale"]
        assert found.profile.kernels[0].launch is None
        assert found.profile.device_us == 2.0

    def test_the_list_is_limited_and_the_sums_are_complete(self):
        found = read(*(event(f"k{i}", 1.0) for i in range(34)), calls=1)
        assert len(found.profile.kernels) == 24
        assert found.profile.device_us == 34

    @pytest.mark.parametrize(
        "forged",
        [
            Profiled(0, (ProfiledKernel("k", 1, 1.0, None),), ()),
            Profiled(1, (), ()),
            Profiled(1, (ProfiledKernel("k", 1, float("nan"), None),), ()),
            Profiled(1, (ProfiledKernel("k", 1, float("inf"), None),), ()),
            Profiled(1, (ProfiledKernel("k", 1, -1.0, None),), ()),
            Profiled(1, (ProfiledKernel("k", 1, 1e308, None),) * 2, ()),
        ],
    )
    def test_a_nonsensical_reply_is_no_profile(self, forged):
        assert read_profile(forged, SOURCE, "triton") is None


class TestLabels:
    @pytest.mark.parametrize(
        ("events", "labels"),
        [
            ([event("softmax_kernel", 9.5), event(ELEMENTWISE, 0.5)], ()),
            ([event("softmax_kernel", 5.0), event(CUBLAS, 5.0)], ("library:cublas",)),
            (
                [event("softmax_kernel", 0.1), event(CUBLAS, 9.9)],
                ("own-kernels-negligible", "library:cublas"),
            ),
            ([event(CUBLAS, 9.9)], ("own-kernels-not-launched", "library:cublas")),
            (
                [event("triton_poi_fused_relu_0", 1.0)],
                ("own-kernels-not-launched", "library:inductor"),
            ),
        ],
    )
    def test_labels_of_a_profile(self, events, labels):
        assert read(*events).labels == labels

    def test_a_source_without_kernels(self):
        assert read(event(ELEMENTWISE, 1.0), source="x = 1").labels == (
            "no-custom-kernel",
            "library:aten",
        )

    def test_inductors_kernels_are_own_if_the_source_contains_their_text(self):
        source = "@triton.jit\ndef triton_poi_fused_relu_0(x): ..."
        found = read(event("triton_poi_fused_relu_0", 1.0), source=source)
        assert (found.labels, found.profile.custom_share) == ((), 1.0)

    def test_a_kernel_that_only_the_launch_names_is_own(self):
        renamed = ProfiledTriton("made_by_exec", own=True, spills_bytes=None)
        assert read(event("made_by_exec", 1.0), triton=[renamed]).profile.custom_share == 1.0


class TestOrigins:
    @pytest.mark.parametrize(
        ("name", "origin"),
        [
            ("void bias_relu<float>(float*, int)", "custom"),
            ("void bias_relu<c10::Half>(c10::Half*, int)", "custom"),
            ("bias_relu(at::GenericPackedTensorAccessor<float, 2ul, int>)", "custom"),
            ("void at::native::bias_relu<float>(float*, int)", "aten"),
            ("void (anonymous namespace)::bias_relu<float>(float*, int)", "custom"),
            ("mine::bias_relu(float*, int)", "custom"),
            ("softmax_kernel", "custom"),
            (CUBLAS, "cublas"),
            ("nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NNT", "cublas"),
            ("void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nn_align1>", "cublas"),
            ("ampere_sgemm_128x64_tn", "cublas"),
            ("void gemv2T_kernel_val<int, int, float, float>", "cublas"),
            ("sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nhwckrsc_nchw", "cudnn"),
            ("void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>", "cudnn"),
            ("void implicit_convolve_sgemm<float, float, 1024, 5, 5, 3, 3>", "cudnn"),
            (ELEMENTWISE, "aten"),
            ("void at::native::(anonymous namespace)::softmax_kernel<float>", "aten"),
            ("void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128>>", "aten"),
            ("triton_red_fused__softmax_0", "inductor"),
            ("Memcpy DtoD (Device -> Device)", "other"),
            ("somebody_elses_kernel", "other"),
        ],
    )
    def test_the_origin_of_a_kernel(self, name, origin):
        assert origin_of(name, own_kernels(SOURCE)) == origin

    @pytest.mark.parametrize(
        ("name", "origin"),
        [
            ("kernel_cutlass_scale_tensorptrf32gmemo1_0", "custom"),
            ("kernel_cutlass_scaled_tensorptrf32gmemo1_0", "other"),
            ("a_kernel_cutlass_scale_0", "other"),
        ],
    )
    def test_a_name_may_be_the_beginning_of_the_launched_one(self, name, origin):
        assert origin_of(name, {"kernel_cutlass_scale_*"}) == origin

    def test_own_kernels_are_read_from_the_syntax_tree(self):
        assert own_kernels(SOURCE) == {"softmax_kernel", "scale", "bias_relu"}
        assert own_kernels("# @triton.jit\n# def k(): ...") == set()
        assert own_kernels("not python (") == set()

    @pytest.mark.parametrize(
        "declared",
        [
            "__global__ void k(float* x)",
            "__global__\nvoid\nk (float* x)",
            'extern "C" __global__ void k(float* x)',
            "static __global__ __launch_bounds__(256) void k(float* x)",
            "void __global__ k(float* x)",
            "__global__ static void __launch_bounds__(max(A, (B)), 2) k(float* x)",
            "__global__ void __cluster_dims__(2, 1, 1) __maxnreg__(64) k(float* x)",
            "template <> __global__ void k<float, 4>(float* x)",
        ],
    )
    def test_every_form_of_declaration_of_a_cuda_kernel(self, declared):
        assert own_kernels(f"CUDA = r'''{declared} {{}}'''") == {"k"}

    @pytest.mark.parametrize(
        "text",
        [
            "// __global__ void k(float* x)",
            "/* __global__ void\n k(float* x) */",
            "__device__ void k(float* x) {}",
            "void k(float* x) { f<<<1, 2>>>(x); }",
        ],
    )
    def test_text_that_declares_no_cuda_kernel(self, text):
        assert own_kernels(f"CUDA = r'''{text}'''") == set()


class TestOnTheCpu:
    def test_operators_and_time_outside_them(self):
        a = torch.randn(64, 64)

        def call(_):
            return torch.relu(a @ a)

        reply = profile_calls(call, 3, "cpu")
        found = read_profile(reply, "", "cpp")
        uses = {use.name: use for use in found.profile.kernels}
        assert uses["aten::mm"].origin == uses["aten::relu"].origin == "aten"
        assert uses["aten::mm"].launches == 1.0
        assert uses[OUTSIDE].origin == "custom"
        assert 0 < found.profile.custom_share < 1
        assert found.labels == ()


class TestLaunches:
    def test_without_triton_no_launch_is_recorded(self, monkeypatch, tmp_path):
        monkeypatch.delitem(sys.modules, "triton.runtime.jit", raising=False)
        with watched_launches(tmp_path) as launches:
            pass
        assert (launches.count, launches.kernels) == (0, {})

    @pytest.fixture
    def jit(self, monkeypatch, tmp_path):
        """Triton's own function class, with a `run` that only records its arguments."""
        jit = pytest.importorskip("triton.runtime.jit")
        told = []

        def run(function, *args, grid, warmup, **kwargs):
            told.append(warmup)
            metadata = type("Metadata", (), {"name": "scale"})
            return type("Kernel", (), {"metadata": metadata, "n_spills": 12})()

        wanted = inspect.signature(jit.JITFunction.run).parameters
        assert inspect.signature(run).parameters.keys() - {"function"} <= wanted.keys()
        monkeypatch.setattr(jit.JITFunction, "run", run)
        file = tmp_path / "candidate_1.py"
        file.write_text("import triton\n\n@triton.jit\ndef scale(x):\n    pass\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.delitem(sys.modules, "candidate_1", raising=False)
        return importlib.import_module("candidate_1").scale, told

    def test_every_launch_is_recorded_with_its_owner(self, jit, tmp_path):
        scale, told = jit
        with watched_launches(tmp_path) as launches:
            scale[(1,)](None)
            scale[(1,)](None)
        assert told == [False, False]
        assert (launches.count, launches.kernels) == (2, {"scale": (True, 48)})
        with watched_launches(tmp_path / "elsewhere") as launches:
            scale[(1,)](None)
        assert launches.kernels == {"scale": (False, 48)}

    def test_the_tensors_of_all_launches_are_counted(self, jit, tmp_path):
        scale, _ = jit
        with watched_launches(tmp_path) as launches:
            scale[(1,)](torch.empty(4, 2), 3, flag=torch.empty(5, dtype=torch.int8))
            scale[(1,)](SimpleNamespace(base=torch.empty(6, dtype=torch.float16)))
        assert launches.given == {"scale": (2, 32 + 5 + 12)}

    def test_a_kernel_generated_in_the_candidates_folder_is_own(self, jit, tmp_path):
        scale, _ = jit
        with watched_launches(tmp_path.parent) as launches:
            scale[(1,)](None)
        assert launches.kernels == {"scale": (True, 48)}

    def test_suppressed_it_is_compiled_and_not_launched(self, jit, tmp_path):
        scale, told = jit
        with watched_launches(tmp_path, suppress=True) as launches:
            assert scale[(1,)](None) is not None
        assert (told, launches.count) == ([True], 1)
        scale[(1,)](None)
        assert told == [True, False]  # and afterwards it is as before

    def test_a_warm_up_is_no_launch(self, jit, tmp_path):
        scale, _ = jit
        with watched_launches(tmp_path) as launches:
            scale.run(None, grid=(1,), warmup=True)
        assert launches.count == 0


def test_memory_is_poisoned_for_a_while():
    with poisoned_memory():
        assert torch.empty(100).isnan().all()
        assert torch.empty_like(torch.ones(100)).isnan().all()
    assert not torch.are_deterministic_algorithms_enabled()
