"""Launches: grids, meta-parameters, autotuning, and what may be an argument."""

from __future__ import annotations

from adaexplore_lab.probes.base import Probe
from adaexplore_lab.probes.programs import probe, program, reference

_DOUBLE = reference("2 * x", "torch.randn(1000)")

_KERNEL = """
@triton.jit
def kernel(x_ptr, y_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(y_ptr + i, 2 * tl.load(x_ptr + i, mask=m), mask=m)
"""

_TUNED = """
HEAD
def kernel(x_ptr, y_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(y_ptr + i, 2 * tl.load(x_ptr + i, mask=m), mask=m)
"""

_GRID = "(triton.cdiv(n, 256),)"
_META = 'lambda meta: (triton.cdiv(n, meta["B"]),)'
_CONFIG = 'triton.Config({"B": 256})'


def _forward(launch: str) -> str:
    return f"y = torch.empty_like(x)\nn = x.numel()\n{launch}\nreturn y"


def _launch(
    name: str,
    statement: str,
    topics: tuple[str, ...],
    wrong: str,
    right: str,
    kernel: str = _KERNEL,
) -> Probe:
    """Two ways to launch a kernel that doubles x."""
    template = program(kernel, _forward("HOLE"))
    return probe("launch", name, statement, topics, _DOUBLE, template, wrong, right)


def _decorated(
    name: str, statement: str, topics: tuple[str, ...], wrong: str, right: str, grid: str = _META
) -> Probe:
    """Two ways to decorate it."""
    template = program(_TUNED.replace("HEAD", "HOLE"), _forward(f"kernel[{grid}](x, y, n)"))
    return probe("launch", name, statement, topics, _DOUBLE, template, wrong, right)


def _headed(name: str, statement: str, topics: tuple[str, ...], wrong: str) -> Probe:
    """Something else in place of a bare `@triton.jit`."""
    template = program(
        _KERNEL.replace("@triton.jit", "HOLE"), _forward(f"kernel[{_GRID}](x, y, n, B=256)")
    )
    return probe("launch", name, statement, topics, _DOUBLE, template, wrong, "@triton.jit")


def _scaled(
    name: str,
    statement: str,
    topics: tuple[str, ...],
    wrong: str,
    right: str,
    *,
    parameter: str = "s",
    expression: str = "s",
) -> Probe:
    """Two arguments `s` for a kernel that multiplies by what `expression` makes of it."""
    kernel = f"""
@triton.jit
def kernel(x_ptr, y_ptr, {parameter}, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    x = tl.load(x_ptr + i, mask=m)
    tl.store(y_ptr + i, x * {expression}, mask=m)
"""
    template = program(kernel, _forward(f"kernel[{_GRID}](x, y, HOLE, n, B=256)"))
    return probe("launch", name, statement, topics, _DOUBLE, template, wrong, right)


LAUNCH: tuple[Probe, ...] = (
    _launch(
        "grid-is-a-tuple",
        "A grid is a tuple, also with one axis, or a callable that returns one: "
        "`kernel[(g,)](...)`. A bare integer is a TypeError.",
        ("grid", "triton.cdiv"),
        "kernel[triton.cdiv(n, 256)](x, y, n, B=256)",
        "kernel[(triton.cdiv(n, 256),)](x, y, n, B=256)",
    ),
    _launch(
        "grid-is-needed",
        "Host code launches a kernel with a grid in brackets, `kernel[grid](...)`: a plain call "
        "is an error, as plain calls are for kernels that call kernels.",
        ("grid",),
        "kernel(x, y, n, B=256)",
        f"kernel[{_GRID}](x, y, n, B=256)",
    ),
    _launch(
        "grid-callable-takes-meta",
        "A grid that is a callable takes one argument, the dictionary of the launch's "
        "parameters: a lambda without one is a TypeError.",
        ("grid", "lambda"),
        f"kernel[lambda: {_GRID}](x, y, n, B=256)",
        f"kernel[lambda meta: {_GRID}](x, y, n, B=256)",
    ),
    _launch(
        "grid-callable-keys",
        "What a grid's callable is given has the kernel's own parameter names as keys: any other "
        "name is a KeyError.",
        ("grid", "lambda", "meta"),
        'kernel[lambda meta: (triton.cdiv(n, meta["BLOCK_SIZE"]),)](x, y, n, B=256)',
        'kernel[lambda meta: (triton.cdiv(n, meta["B"]),)](x, y, n, B=256)',
    ),
    _launch(
        "num-warps-power-of-two",
        "`num_warps` is a power of two: 1, 2, 4, 8 or 16; any other number is refused.",
        ("num_warps",),
        f"kernel[{_GRID}](x, y, n, B=256, num_warps=3)",
        f"kernel[{_GRID}](x, y, n, B=256, num_warps=4)",
    ),
    _launch(
        "constexpr-is-given",
        "Every `tl.constexpr` parameter without a default is passed at the launch, unless an "
        "autotuner or a heuristic sets it.",
        ("tl.constexpr", "grid"),
        f"kernel[{_GRID}](x, y, n)",
        f"kernel[{_GRID}](x, y, n, B=256)",
    ),
    _launch(
        "argument-once",
        "Positional arguments fill a kernel's parameters in order: one that is passed by name as "
        "well is a TypeError.",
        ("tl.constexpr",),
        f"kernel[{_GRID}](x, y, n, 256, B=256)",
        f"kernel[{_GRID}](x, y, n, B=256)",
    ),
    _launch(
        "unknown-launch-keyword",
        "A launch takes the kernel's parameters and the backend's options, such as `num_warps` and "
        "`num_stages`: other keywords, such as CUDA's block or threads, are a KeyError.",
        ("num_warps", "grid"),
        f"kernel[{_GRID}](x, y, n, B=256, num_threads=128)",
        f"kernel[{_GRID}](x, y, n, B=256, num_warps=4)",
    ),
    _launch(
        "block-size-is-int",
        "A block size is an integer: one that `/` or `math.sqrt` made is a float, which "
        "`tl.arange` refuses.",
        ("tl.constexpr", "tl.arange", "/"),
        f"kernel[{_GRID}](x, y, n, B=1024 / 4)",
        f"kernel[{_GRID}](x, y, n, B=1024 // 4)",
    ),
    _launch(
        "no-tensor-as-constexpr",
        "A `tl.constexpr` is a Python number, not a tensor that holds one: convert on the host "
        "with `int()` or `.item()`.",
        ("tl.constexpr", ".item"),
        f"kernel[{_GRID}](x, y, n, B=torch.tensor(256))",
        f"kernel[{_GRID}](x, y, n, B=256)",
    ),
    _launch(
        "no-parameter-named-grid",
        "Do not name a kernel's parameter `grid` or `warmup`: launches use these keywords.",
        ("grid", "tl.constexpr"),
        f"kernel[{_GRID}](x, y, n, grid=256)",
        f"kernel[{_GRID}](x, y, n, 256)",
        _KERNEL.replace("B:", "grid:").replace("B", "grid"),
    ),
    _decorated(
        "jit-is-innermost",
        "`@triton.jit` stands next to `def`, below `@triton.autotune` and `@triton.heuristics`.",
        ("triton.autotune", "triton.jit"),
        f'@triton.jit\n@triton.autotune(configs=[{_CONFIG}], key=["n"])',
        f'@triton.autotune(configs=[{_CONFIG}], key=["n"])\n@triton.jit',
    ),
    _decorated(
        "configs-are-triton-config",
        "Autotuning wants `triton.Config` objects: plain dictionaries have no num_warps and fail.",
        ("triton.autotune", "triton.Config"),
        '@triton.autotune(configs=[{"B": 256}], key=["n"])\n@triton.jit',
        f'@triton.autotune(configs=[{_CONFIG}], key=["n"])\n@triton.jit',
    ),
    _decorated(
        "config-names-parameters",
        "The keys of a `triton.Config` are names of the kernel's parameters: any other is "
        "unknown at the launch.",
        ("triton.autotune", "triton.Config"),
        '@triton.autotune(configs=[triton.Config({"BLOCK": 256})], key=["n"])\n@triton.jit',
        f'@triton.autotune(configs=[{_CONFIG}], key=["n"])\n@triton.jit',
        _GRID,
    ),
    _decorated(
        "autotune-needs-key",
        "`@triton.autotune` needs `key`, the names of the arguments whose change tunes again; an "
        "empty list is one, leaving it out is not.",
        ("triton.autotune", "key"),
        f"@triton.autotune(configs=[{_CONFIG}])\n@triton.jit",
        f'@triton.autotune(configs=[{_CONFIG}], key=["n"])\n@triton.jit',
    ),
    _decorated(
        "heuristics-are-functions",
        "The values of `@triton.heuristics` are functions of the launch's arguments: a bare "
        "number is not callable.",
        ("triton.heuristics",),
        '@triton.heuristics({"B": 256})\n@triton.jit',
        '@triton.heuristics({"B": lambda args: 256})\n@triton.jit',
    ),
    _launch(
        "no-tuned-parameter-at-launch",
        "What an autotuner's configurations set is not passed at the launch too: the two conflict.",
        ("triton.autotune", "tl.constexpr"),
        f"kernel[{_META}](x, y, n, B=256)",
        f"kernel[{_META}](x, y, n)",
        _TUNED.replace("HEAD", f'@triton.autotune(configs=[{_CONFIG}], key=["n"])\n@triton.jit'),
    ),
    _scaled(
        "no-list-argument",
        "Pass several values as a tuple, or each by itself: a list is no kernel argument.",
        ("list", "tuple"),
        "[2.0, 3.0]",
        "(2.0, 3.0)",
        expression="s[0]",
    ),
    _scaled(
        "no-list-constexpr",
        "A `tl.constexpr` is hashable: a tuple, not a list or a dictionary.",
        ("tl.constexpr", "list", "tuple"),
        "[2, 3]",
        "(2, 3)",
        parameter="s: tl.constexpr",
        expression="s[0]",
    ),
    _scaled(
        "no-numpy-scalar-argument",
        "NumPy's numbers are no kernel arguments: convert them with `int()` or `float()`.",
        ("numpy", "int"),
        '__import__("numpy").int64(2)',
        'int(__import__("numpy").int64(2))',
    ),
    _scaled(
        "string-is-constexpr",
        "A string argument, such as the name of an activation, needs a `tl.constexpr` parameter.",
        ("str", "tl.constexpr"),
        '"relu"',
        "2",
    ),
    _scaled(
        "dtype-argument-is-triton-s",
        "A dtype for `.to` in a kernel is one of Triton's, passed as a `tl.constexpr`: torch's "
        "has no meaning there.",
        ("dtype", "tl.constexpr", ".to"),
        "torch.float32",
        "tl.float32",
        parameter="s: tl.constexpr",
        expression="(tl.zeros((B,), tl.int32) + 2).to(s)",
    ),
    probe(
        "launch",
        "no-complex-tensor",
        "Triton has no complex numbers: pass `torch.view_as_real(x)`, with pairs in the last axis.",
        ("complex64", "view_as_real"),
        reference("torch.view_as_real(torch.complex(x, x)) * 2", "torch.randn(500)"),
        program(
            _KERNEL,
            """
            z = torch.complex(x, x)
            y = torch.empty_like(torch.view_as_real(z))
            n = y.numel()
            kernel[(triton.cdiv(n, 256),)](HOLE, y, n, B=256)
            return y
            """,
        ),
        "z",
        "torch.view_as_real(z)",
    ),
    probe(
        "launch",
        "three-grid-axes",
        "A grid has three axes at most, and `tl.program_id` takes 0, 1 or 2: fold further ones "
        "into one of them and take them apart with `//` and `%`.",
        ("tl.program_id", "grid"),
        reference("2 * x", "torch.randn(3, 2, 5, 100)"),
        program(
            """
            @triton.jit
            def kernel(x_ptr, y_ptr, d1, d2, n, B: tl.constexpr):
                HOLE
                row = (p0 * d1 + p1) * d2 + p2
                i = p3 * B + tl.arange(0, B)
                m = i < n
                tl.store(y_ptr + row * n + i, 2 * tl.load(x_ptr + row * n + i, mask=m), mask=m)
            """,
            """
            y = torch.empty_like(x)
            d0, d1, d2, n = x.shape
            kernel[(d0 * d1, d2, triton.cdiv(n, 64))](x, y, d1, d2, n, B=64)
            return y
            """,
        ),
        "p0, p1, p2, p3 = tl.program_id(0), 0, tl.program_id(1), tl.program_id(3)",
        "p0, p1, p2, p3 = tl.program_id(0) // d1, tl.program_id(0) % d1, tl.program_id(1), "
        "tl.program_id(2)",
    ),
    probe(
        "launch",
        "no-self-in-kernel",
        "A kernel is a function, not a method: `self` would be one more argument of the launch. "
        "Define it at the top level.",
        ("class", "self"),
        _DOUBLE,
        program(
            _KERNEL.replace("(x_ptr", "(HOLEx_ptr"), _forward(f"kernel[{_GRID}](x, y, n, B=256)")
        ),
        "self, ",
        "",
    ),
    _launch(
        "no-callable-constexpr",
        "A block size at the launch is a number: a lambda of meta-parameters is for the grid only.",
        ("tl.constexpr", "lambda", "grid", "callable"),
        f"kernel[{_GRID}](x, y, n, B=lambda meta: 256)",
        f"kernel[{_GRID}](x, y, n, B=256)",
    ),
    _scaled(
        "no-dict-argument",
        "A dictionary is no kernel argument: pass each of its values by itself.",
        ("dict", "grid"),
        '{"s": 2.0}',
        "2.0",
    ),
    _headed(
        "launch-options-at-the-launch",
        "`num_warps` and `num_stages` are given at the launch or in a `triton.Config`: "
        "`@triton.jit` does not take them.",
        ("triton.jit", "num_warps", "num_stages"),
        "@triton.jit(num_warps=4)",
    ),
    _headed(
        "kernels-are-jitted",
        "What is launched has `@triton.jit` above its `def`: a plain function takes no grid.",
        ("triton.jit", "grid", "decorator"),
        "",
    ),
    _launch(
        "no-blocks-on-the-host",
        "Functions of `tl` work in jitted functions only: on the host use torch.",
        ("tl.zeros", "tl.cdiv", "torch.zeros", "def"),
        f"y += tl.zeros((1,), tl.float32)\nkernel[{_GRID}](x, y, n, B=256)",
        f"y += torch.zeros(1, device=x.device)\nkernel[{_GRID}](x, y, n, B=256)",
    ),
)
