"""Each case changes its own process, so it runs in one of its own."""

import textwrap

import pytest

from adaexplore.sandbox.jobs import run_job


@pytest.fixture
def after(server):
    """Name functions and flags that a change replaced, and flags that could not be put back."""

    def after(change):
        request = {"change": textwrap.dedent(change)}
        told = run_job(server, "worker_entries:change_under_watch", request, 60.0)
        return told["replaced"], told["flags"], told["restored"]

    return after


REPLACED = {
    "a function of a module": "import time; time.perf_counter_ns = lambda: 0",
    "by setattr": "import time; setattr(time, 'perf' + '_counter_ns', lambda: 0)",
    "a method of PyTorch's": "torch.cuda.Event.elapsed_time = lambda self, other: 1e-6",
    "a tensor's copy": "torch.Tensor.copy_ = lambda self, other: self",
    "a function that is then lacking": "del torch.relu",
    "a module's call": "torch.nn.Module.__call__ = lambda self, *a: None",
    "the clock": "from adaexplore.evaluate.timing import clock\n"
    "clock.CpuClock.block = lambda *a: [1.0]",
    "the session": "from adaexplore.evaluate.candidate.worker import CandidateSession\n"
    "CandidateSession._time = lambda *a: {}",
    "a function it uses": "from adaexplore.evaluate.candidate import worker\n"
    "worker.finished_for = list",
    "the code in a function": """
        from adaexplore.evaluate.candidate.worker import CandidateSession
        CandidateSession._time.__code__ = (lambda self, count: {}).__code__
    """,
    "a kernel of PyTorch's own": """
        torch.my_library = torch.library.Library("aten", "IMPL")
        torch.my_library.impl("digamma", lambda x: x, "CPU")
    """,
    "a builtin": "import builtins; builtins.sum = lambda values: 0",
    "the interpreter's hook": "import sys; sys.setprofile(lambda *a: None)",
    "tracing": "import sys; sys.settrace(lambda *a: None)",
    "a function mode": """
        class Mode(torch.overrides.TorchFunctionMode):
            def __torch_function__(self, function, types, args=(), kwargs=None):
                return function(*args, **(kwargs or {}))
        Mode().__enter__()
    """,
}
FLAGS = {
    "TF32 in cuDNN": ("torch.backends.cudnn.allow_tf32 = False", "cudnn.allow_tf32"),
    "cuDNN's benchmark": ("torch.backends.cudnn.benchmark = True", "cudnn.benchmark"),
    "matmul": ("torch.set_float32_matmul_precision('medium')", "float32 matmul precision"),
    "the dtype": ("torch.set_default_dtype(torch.float64)", "the default dtype"),
    "threads": ("torch.set_num_threads(7)", "the number of threads"),
    "grad mode": ("torch.set_grad_enabled(False)", "grad mode"),
}
LEFT_ALONE = {
    "nothing": "",
    "a name of its own": "torch.my_own = torch.nn.functional.my_own = lambda: 0",
    "torch.compile": "torch.compile(torch.nn.Linear(2, 2))(torch.ones(1, 2))",
    "more of PyTorch": "import torch._dynamo, torch.export, torch.utils.cpp_extension, torch.fx",
    "an operator of its own": """
        torch.my_library = torch.library.Library("mine", "DEF")
        torch.my_library.define("same(Tensor x) -> Tensor")
        torch.my_library.impl("same", lambda x: x.clone(), "CPU")
    """,
    "a mode that is left again": "with torch.device('cpu'), torch.no_grad(): torch.ones(2)",
    "flags put back": "with torch.backends.cudnn.flags(enabled=True, benchmark=True): pass",
}


@pytest.mark.parametrize("how", REPLACED)
def test_a_replaced_function_is_named(after, how):
    replaced, *_ = after(REPLACED[how])
    assert replaced


@pytest.mark.parametrize("how", FLAGS)
def test_a_flag_is_named_and_put_back(after, how):
    change, name = FLAGS[how]
    _, changed, restored = after(change)
    assert changed == [name]
    assert restored == []


@pytest.mark.parametrize("how", LEFT_ALONE)
def test_what_is_nobody_s_business(after, how):
    assert after(LEFT_ALONE[how]) == ([], [], [])
