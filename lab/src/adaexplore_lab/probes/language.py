"""Triton's language: what Python and PyTorch have and a kernel has not."""

from __future__ import annotations

from adaexplore_lab.probes.base import Probe, elementwise, with_body

_SQUARE = "y = x * x"
_SIGNATURE = "(x_ptr, y_ptr, n, B: tl.constexpr)"
_ARGUMENTS = "(x, y, n, B=256)"


def _probe(
    name: str,
    statement: str,
    topics: tuple[str, ...],
    wrong: str,
    right: str,
    of: str = "x * x",
    before: str = "",
) -> Probe:
    """Of two bodies, below the same definitions."""
    reference, candidate = elementwise(of, before=before)
    return Probe(
        name=name,
        kind="compile",
        statement=statement,
        topics=topics,
        reference=reference,
        witness=with_body(candidate, wrong),
        remedy=with_body(candidate, right),
    )


def _around(
    name: str,
    statement: str,
    topics: tuple[str, ...],
    wrong: dict[str, str],
    right: dict[str, str],
    body: str = _SQUARE,
    before: str = "",
) -> Probe:
    """Of two programs around one body: the texts that `wrong` and `right` name are replaced."""
    reference, candidate = elementwise("x * x", before=before)
    program = with_body(candidate, body)
    return Probe(
        name=name,
        kind="compile",
        statement=statement,
        topics=topics,
        reference=reference,
        witness=_replaced(program, wrong),
        remedy=_replaced(program, right),
    )


def _helper(
    name: str,
    statement: str,
    topics: tuple[str, ...],
    wrong: str,
    right: str,
    body: str,
) -> Probe:
    """Of two definitions above the kernel."""
    return _around(name, statement, topics, {"HELPER": wrong}, {"HELPER": right}, body, "HELPER")


def _replaced(program: str, texts: dict[str, str]) -> str:
    for old, new in texts.items():
        program = program.replace(old, new)
    return program


LANGUAGE: tuple[Probe, ...] = (
    _probe(
        "no-power-operator",
        "Blocks have no `**`: multiply, or use `tl.exp2` and `tl.log2` for powers that vary.",
        ("**", "pow"),
        "y = x ** 2",
        _SQUARE,
    ),
    _probe(
        "no-torch-in-kernels",
        "A kernel cannot call torch functions: use those of `triton.language`.",
        ("torch", "tl.exp"),
        "y = torch.exp(x)",
        "y = tl.exp(x)",
        of="torch.exp(x)",
    ),
    _probe(
        "arange-power-of-two",
        "The length of `tl.arange` is a power of two: round it up and mask what is too much.",
        ("tl.arange",),
        """
        j = tl.arange(0, 100)
        y = x * x + tl.sum(j) * 0.0
        """,
        """
        j = tl.arange(0, 128)
        y = x * x + tl.sum(tl.where(j < 100, j, 0)) * 0.0
        """,
    ),
    _probe(
        "no-floor-division-of-floats",
        "`//` divides integers only: of floats take `tl.floor(x / y)`.",
        ("//", "tl.floor"),
        "y = x // 2.0",
        "y = tl.floor(x / 2.0)",
        of="torch.floor(x / 2.0)",
    ),
    _probe(
        "no-bitwise-operator-on-floats",
        "`&`, `|` and `^` take integers and conditions, not floats: compare first.",
        ("&", "|", "^", "mask"),
        "y = tl.where(x & m, x * x, 0.0)",
        "y = tl.where((x != 0.0) & m, x * x, 0.0)",
    ),
    _probe(
        "no-invert-on-floats",
        "`~` inverts integers and conditions, not floats: compare with zero.",
        ("~", "tl.where"),
        "y = tl.where(~x, 0.0, x * x)",
        "y = tl.where(x == 0.0, 0.0, x * x)",
    ),
    _probe(
        "no-in-operator",
        "A kernel has no `in`: compare with each value and join by `or`.",
        ("in", "or"),
        """
        y = x * x
        if n in (1, 2):
            y = x * x * 1.0
        """,
        """
        y = x * x
        if n == 1 or n == 2:
            y = x * x * 1.0
        """,
    ),
    _probe(
        "no-slice-of-a-block",
        "A block cannot be sliced: load the part that is needed, or mask the rest.",
        ("slice", "[:]", "tl.sum"),
        "y = x * x + tl.sum(x[0:4]) * 0.0",
        "y = x * x + tl.sum(tl.where(tl.arange(0, B) < 4, x, 0.0)) * 0.0",
    ),
    _probe(
        "no-ellipsis-index",
        "A block takes no `...` as an index: write `:` for each dimension.",
        ("...", "None", "tl.expand_dims"),
        "y = x * x + tl.sum(x[..., None], axis=1) * 0.0",
        "y = x * x + tl.sum(x[:, None], axis=1) * 0.0",
    ),
    _probe(
        "no-element-of-a-block",
        "A block cannot be indexed by a number: select with `tl.where` and reduce.",
        ("[]", "index", "tl.sum", "tensor index"),
        "y = x * x + x[0] * 0.0",
        "y = x * x + tl.sum(tl.where(tl.arange(0, B) == 0, x, 0.0)) * 0.0",
    ),
    _probe(
        "no-assignment-to-an-element",
        "The elements of a block cannot be assigned: make a new block with `tl.where`.",
        ("[]", "index", "tl.where", "assignment"),
        """
        y = x * x
        y[i >= n] = 0.0
        """,
        """
        y = x * x
        y = tl.where(i >= n, 0.0, y)
        """,
    ),
    _probe(
        "no-index-of-a-pointer",
        "A pointer cannot be indexed: `tl.load(pointer + offsets, mask=...)` reads.",
        ("[]", "pointer", "tl.load"),
        "y = x * x_ptr[i]",
        "y = x * tl.load(x_ptr + i, mask=m, other=0.0)",
    ),
    _probe(
        "no-float-offset",
        "`/` gives a float, which is no offset of a pointer: divide integers by `//`.",
        ("/", "//", "pointer"),
        "y = x * tl.load(x_ptr + (2 * i) / 2, mask=m, other=0.0)",
        "y = x * tl.load(x_ptr + (2 * i) // 2, mask=m, other=0.0)",
    ),
    _probe(
        "no-float-range",
        "`/` gives a float, which is no bound of `range`: divide integers by `//`.",
        ("/", "//", "range"),
        """
        y = x * x
        for j in range(0, n / 2):
            y += 0.0
        """,
        """
        y = x * x
        for j in range(0, n // 2):
            y += 0.0
        """,
    ),
    _probe(
        "no-if-on-a-block",
        "`if` takes one value, not a block: choose by element with `tl.where`.",
        ("if", "tl.where"),
        """
        if x > 0:
            y = x
        else:
            y = x * 0.0
        """,
        "y = tl.where(x > 0, x, 0.0)",
        of="torch.relu(x)",
    ),
    _probe(
        "name-bound-in-one-branch",
        "Bind a name before an `if` at run time when only one branch assigns it.",
        ("if", "else"),
        """
        if n > 0:
            y = x * x
        """,
        """
        y = x
        if n > 0:
            y = x * x
        """,
    ),
    _probe(
        "branches-of-one-shape",
        "Both branches of an `if` at run time give a name one shape: no number beside a block.",
        ("if", "else", "tl.zeros"),
        """
        if n > 0:
            y = x * x
        else:
            y = 0.0
        """,
        """
        if n > 0:
            y = x * x
        else:
            y = tl.zeros((B,), tl.float32)
        """,
    ),
    _probe(
        "branches-of-one-dtype",
        "Both branches of an `if` at run time give a name the same dtype: `1.0`, not `1`.",
        ("if", "else", "dtype"),
        """
        if n > 0:
            s = 1
        else:
            s = 0.5
        y = x * x * s
        """,
        """
        if n > 0:
            s = 1.0
        else:
            s = 0.5
        y = x * x * s
        """,
    ),
    _probe(
        "loop-keeps-the-dtype",
        "A value carried through a loop keeps its dtype: start a float sum at `0.0`, not `0`.",
        ("for", "range", "dtype", "accumulator"),
        """
        s = 0
        for j in range(0, n):
            s += 0.5
        y = x * x + s * 0.0
        """,
        """
        s = 0.0
        for j in range(0, n):
            s += 0.5
        y = x * x + s * 0.0
        """,
    ),
    _probe(
        "loop-keeps-the-shape",
        "A value carried through a loop keeps its shape: start a block's sum at `tl.zeros(shape)`.",
        ("for", "range", "tl.zeros", "accumulator"),
        """
        y = 0.0
        for j in range(0, n):
            y += x
        y = x * x + y * 0.0
        """,
        """
        y = tl.zeros((B,), tl.float32)
        for j in range(0, n):
            y += x
        y = x * x + y * 0.0
        """,
    ),
    _probe(
        "loop-over-a-tuple",
        "`for` runs over `range` and `tl.static_range` only: index the tuple.",
        ("for", "tuple", "tl.static_range"),
        """
        y = x * x
        for s in (1.0, 2.0):
            y += x * s * 0.0
        """,
        """
        y = x * x
        scales = (1.0, 2.0)
        for j in tl.static_range(2):
            y += x * scales[j] * 0.0
        """,
    ),
    _probe(
        "loop-with-enumerate",
        "`enumerate` and `zip` do not exist in a kernel: loop over `tl.static_range` and index.",
        ("for", "enumerate", "zip", "tl.static_range"),
        """
        y = x * x
        scales = (1.0, 2.0)
        for j, s in enumerate(scales):
            y += x * s * j * 0.0
        """,
        """
        y = x * x
        scales = (1.0, 2.0)
        for j in tl.static_range(2):
            y += x * scales[j] * j * 0.0
        """,
    ),
    _probe(
        "static-range-of-constants",
        "The bounds of `tl.static_range` are constants: use `range` for one known at run time.",
        ("for", "tl.static_range", "range"),
        """
        y = x * x
        for j in tl.static_range(n):
            y += 0.0
        """,
        """
        y = x * x
        for j in range(n):
            y += 0.0
        """,
    ),
    _probe(
        "range-of-scalars",
        "The bounds of `range` are single values, not blocks: reduce a block first.",
        ("for", "range", "tl.max"),
        """
        y = x * x
        for j in range(0, i):
            y += 0.0
        """,
        """
        y = x * x
        for j in range(0, tl.max(i, axis=0)):
            y += 0.0
        """,
    ),
    _probe(
        "no-break",
        "A kernel has no `break`: put the condition into a `while`.",
        ("break", "for", "while"),
        """
        y = x * x
        for j in range(0, n):
            if j > 3:
                break
            y += 0.0
        """,
        """
        y = x * x
        j = 0
        while j < n and j <= 3:
            y += 0.0
            j += 1
        """,
    ),
    _probe(
        "no-continue",
        "A kernel has no `continue`: put the rest of the loop's body under an `if`.",
        ("continue", "for", "if"),
        """
        y = x * x
        for j in range(0, n):
            if j > 3:
                continue
            y += 0.0
        """,
        """
        y = x * x
        for j in range(0, n):
            if j <= 3:
                y += 0.0
        """,
    ),
    _probe(
        "no-return-in-a-loop",
        "A kernel cannot `return` from a loop: carry the condition through it.",
        ("return", "for", "while"),
        """
        y = x * x
        for j in range(0, n):
            if j > n:
                return
            y += 0.0
        """,
        """
        y = x * x
        for j in range(0, n):
            if j <= n:
                y += 0.0
        """,
    ),
    _probe(
        "kernel-returns-nothing",
        "A kernel that is launched returns no value: it stores its result through a pointer.",
        ("return", "tl.store"),
        """
        y = x * x
        tl.store(y_ptr + i, y, mask=m)
        return y
        """,
        """
        y = x * x
        tl.store(y_ptr + i, y, mask=m)
        return
        """,
    ),
    _probe(
        "no-chained-assignment",
        "A kernel has no `a = b = value`: assign one name at a time.",
        ("=",),
        "y = z = x * x",
        """
        y = x * x
        z = y
        """,
    ),
    _probe(
        "no-starred-assignment",
        "A kernel has no `a, *rest = values`: index the tuple.",
        ("*", "tuple"),
        """
        a, *rest = (x, x, x)
        y = a * rest[0]
        """,
        """
        values = (x, x, x)
        y = values[0] * values[1]
        """,
    ),
    _probe(
        "no-assignment-in-expression",
        "Older Tritons have no `:=` in a kernel: assign in a statement of its own.",
        (":=",),
        "y = (z := x) * z",
        """
        z = x
        y = z * z
        """,
    ),
    _probe(
        "no-lambda",
        "A kernel has no `lambda`: define a function under `@triton.jit` and call that.",
        ("lambda", "@triton.jit"),
        """
        square = lambda v: v * v
        y = square(x)
        """,
        "y = square_of(x)",
        before="@triton.jit\ndef square_of(v):\n    return v * v\n",
    ),
    _probe(
        "no-nested-function",
        "No `def` inside a kernel: define the function beside it, under `@triton.jit`.",
        ("def", "@triton.jit"),
        """
        def square(v):
            return v * v
        y = square(x)
        """,
        "y = square_of(x)",
        before="@triton.jit\ndef square_of(v):\n    return v * v\n",
    ),
    _probe(
        "no-dict",
        "A kernel has no dict: use a name for each value, or a tuple.",
        ("dict", "{}"),
        """
        values = {"a": x}
        y = values["a"] * x
        """,
        """
        values = (x,)
        y = values[0] * x
        """,
    ),
    _probe(
        "no-try",
        "A kernel has no `try`: nothing raises in it; guard by a mask or an `if`.",
        ("try", "except"),
        """
        try:
            y = x * x
        except ZeroDivisionError:
            y = x
        """,
        _SQUARE,
    ),
    _probe(
        "no-del",
        "A kernel has no `del`: registers of names not used again are free anyway.",
        ("del",),
        """
        y = x * x
        del x
        """,
        _SQUARE,
    ),
    _probe(
        "no-match",
        "A kernel has no `match`: use `if`, on a `tl.constexpr` to choose at compile time.",
        ("match", "if", "tl.constexpr"),
        """
        y = x
        match B:
            case 256:
                y = x * x
        """,
        """
        y = x
        if B == 256:
            y = x * x
        """,
    ),
    _probe(
        "no-import",
        "A kernel cannot `import`: import at the top of the module.",
        ("import", "libdevice"),
        """
        from triton.language.extra import libdevice
        y = libdevice.abs(x) * libdevice.abs(x)
        """,
        "y = outer.abs(x) * outer.abs(x)",
        before="from triton.language.extra import libdevice as outer",
    ),
    _probe(
        "no-math-on-blocks",
        "Functions of `math` take constants: for a block use `tl.exp` and so on.",
        ("math", "tl.exp"),
        "y = math.exp(x)",
        "y = tl.exp(x)",
        of="torch.exp(x)",
        before="import math",
    ),
    _probe(
        "no-builtin-abs",
        "The builtin `abs` takes no block: use `tl.abs`.",
        ("abs", "tl.abs"),
        "y = abs(x)",
        "y = tl.abs(x)",
        of="torch.abs(x)",
    ),
    _probe(
        "no-builtin-sum",
        "The builtin `sum` takes no block: use `tl.sum`.",
        ("sum", "tl.sum"),
        "y = x * x + sum(x) * 0.0",
        "y = x * x + tl.sum(x) * 0.0",
    ),
    _probe(
        "no-builtin-pow",
        "The builtin `pow` takes no block: use `libdevice.pow`, or multiply.",
        ("pow", "libdevice.pow"),
        "y = pow(x, 2)",
        "y = libdevice.pow(x, 2.0)",
        before="from triton.language.extra import libdevice",
    ),
    _probe(
        "no-builtin-round",
        "The builtin `round` takes no block: use `libdevice.rint`, which rounds half to even.",
        ("round", "libdevice.rint"),
        "y = round(x)",
        "y = libdevice.rint(x)",
        of="torch.round(x)",
        before="from triton.language.extra import libdevice",
    ),
    _probe(
        "no-builtin-casts",
        "`float(...)` and `int(...)` do not convert a block: use `.to(tl.float32)`.",
        ("float", "int", ".to"),
        "y = float(x > 0)",
        "y = (x > 0).to(tl.float32)",
        of="(x > 0).float()",
    ),
    _probe(
        "no-builtin-len",
        "A block has no `len`: use `.shape`, or the constant it was made with.",
        ("len", ".shape"),
        "y = x * x / len(x) * B",
        "y = x * x / x.shape[0] * B",
    ),
    _helper(
        "global-constants",
        "A kernel reads no plain global: make it `tl.constexpr(...)`, or pass it as an argument.",
        ("global", "tl.constexpr"),
        "SCALE = 1.0",
        "SCALE = tl.constexpr(1.0)",
        "y = x * x * SCALE",
    ),
    _helper(
        "annotated-global-constants",
        "Annotating a global as `tl.constexpr` does not make it one: assign `tl.constexpr(...)`.",
        ("global", "tl.constexpr", "annotation"),
        "SCALE: tl.constexpr = 1.0",
        "SCALE = tl.constexpr(1.0)",
        "y = x * x * SCALE",
    ),
    _helper(
        "helpers-are-jitted",
        "A kernel calls jitted functions only: put `@triton.jit` above each helper.",
        ("@triton.jit", "def"),
        "def square(v):\n    return v * v",
        "@triton.jit\ndef square(v):\n    return v * v",
        "y = square(x)",
    ),
    _helper(
        "helper-returns-one-type",
        "All returns of a jitted function have the same type: `0.0` beside a block fails.",
        ("@triton.jit", "return", "if"),
        "@triton.jit\ndef square(v, k):\n    if k > 0:\n        return v * v\n    return 0.0",
        "@triton.jit\ndef square(v, k):\n    if k > 0:\n        return v * v\n    return v * 0.0",
        "y = square(x, n)",
    ),
    _around(
        "lengths-are-constexpr",
        "A block's length is known at compile time: annotate its parameter as `tl.constexpr`.",
        ("tl.constexpr", "tl.arange"),
        {_SIGNATURE: "(x_ptr, y_ptr, n, B)"},
        {},
    ),
    _around(
        "autotune-keys-are-parameters",
        "The keys of `@triton.autotune` are names of the kernel's parameters.",
        ("@triton.autotune", "key"),
        {
            "@triton.jit": "@triton.autotune([triton.Config({'B': 256})], key=['size'])\n"
            "@triton.jit",
            _ARGUMENTS: "(x, y, n)",
        },
        {
            "@triton.jit": "@triton.autotune([triton.Config({'B': 256})], key=['n'])\n@triton.jit",
            _ARGUMENTS: "(x, y, n)",
        },
    ),
    _around(
        "no-keyword-only-parameters",
        "Older Tritons take no keyword-only parameters in a kernel: leave the bare `*` out.",
        ("*", "def"),
        {_SIGNATURE: "(x_ptr, y_ptr, n, *, B: tl.constexpr)"},
        {},
    ),
    _helper(
        "no-recursion-at-run-time",
        "A jitted function cannot call itself until a run-time condition: write a loop.",
        ("@triton.jit", "recursion", "while"),
        "@triton.jit\ndef power(v, k):\n"
        "    if k <= 1:\n        return v\n    return v * power(v, k - 1)",
        "@triton.jit\ndef power(v, k):\n    p = v\n"
        "    while k > 1:\n        p *= v\n        k -= 1\n    return p",
        "y = power(x, n - n + 2)",
    ),
    _helper(
        "kernels-have-a-source",
        "`@triton.jit` reads the function's source: what `exec` defines has none.",
        ("@triton.jit", "exec"),
        "exec('@triton.jit\\ndef square(v):\\n    return v * v')",
        "@triton.jit\ndef square(v):\n    return v * v",
        "y = square(x)",
    ),
    _helper(
        "closures-hold-constexpr",
        "A kernel reads a local of the function around it only if that is a `tl.constexpr`.",
        ("closure", "tl.constexpr", "def"),
        "def maker(scale):\n    @triton.jit\n    def scaled(v):\n        return v * scale\n\n"
        "    return scaled\n\n\nsquare = maker(1.0)",
        "def maker(scale):\n    @triton.jit\n    def scaled(v):\n        return v * scale\n\n"
        "    return scaled\n\n\nsquare = maker(tl.constexpr(1.0))",
        "y = x * square(x)",
    ),
    _probe(
        "constants-made-in-a-loop",
        "What a run-time loop computes is no constant: give lengths as expressions of constants.",
        ("for", "tl.constexpr", "tl.arange"),
        """
        k = 2
        for j in range(0, 3):
            k = k * 2
        y = x * x + tl.sum(tl.arange(0, k)) * 0.0
        """,
        """
        k: tl.constexpr = 2 * 2 * 2 * 2
        y = x * x + tl.sum(tl.arange(0, k)) * 0.0
        """,
    ),
    _probe(
        "no-set",
        "A kernel has no set: use a tuple.",
        ("set", "{}", "tuple"),
        """
        values = {1.0, 2.0}
        y = x * x
        """,
        """
        values = (1.0, 2.0)
        y = x * x
        """,
    ),
    _probe(
        "no-raise",
        "A kernel has no `raise`: check on the host, or use `tl.device_assert`.",
        ("raise", "assert", "tl.device_assert"),
        """
        y = x * x
        if n < 0:
            raise ValueError("n")
        """,
        """
        y = x * x
        tl.device_assert(n >= 0)
        """,
    ),
    _probe(
        "no-global-statement",
        "A kernel has no `global`: store what others should see through a pointer.",
        ("global", "tl.store"),
        """
        global total
        y = x * x
        """,
        _SQUARE,
    ),
    _probe(
        "loop-with-else",
        "Loops have no `else` in a kernel: write it after the loop.",
        ("for", "else"),
        """
        for j in range(0, n):
            pass
        else:
            y = x * x
        """,
        """
        for j in range(0, n):
            pass
        y = x * x
        """,
    ),
    _probe(
        "names-start-with-a-value",
        "Bind a name before the run-time loop that assigns it when it is read after the loop.",
        ("for", "range"),
        """
        for j in range(0, n):
            y = x * x
        """,
        """
        y = x
        for j in range(0, n):
            y = x * x
        """,
    ),
    _probe(
        "blocks-of-one-shape",
        "Blocks of different lengths do not combine: give them one length, or axes of 1.",
        ("broadcast", "shape", "+"),
        "y = x * x + tl.arange(0, 16) * 0.0",
        "y = x * x + tl.arange(0, B) * 0.0",
    ),
    _probe(
        "no-sum-of-pointers",
        "Pointers are not added to each other: add integers to one of them.",
        ("pointer", "+"),
        "y = x * tl.load(x_ptr + (y_ptr + i), mask=m, other=0.0)",
        "y = x * tl.load(x_ptr + i, mask=m, other=0.0)",
    ),
    _around(
        "no-comparison-of-a-pointer",
        "A pointer is not compared to a number: tell an absent tensor by `is not None`.",
        ("pointer", "None", "if", "compare"),
        {"CONDITION": "y_ptr != 0"},
        {"CONDITION": "y_ptr is not None"},
        body="if CONDITION:\n    y = x * x",
    ),
    _probe(
        "no-chained-comparison",
        "Older Tritons have no chained comparison, `0 <= i < n`: join two by `&`.",
        ("<=", "<", "comparison"),
        "y = x * x\nif 0 <= tl.program_id(0) < n:\n    y = x * x * 1.0",
        "y = x * x\nif (0 <= tl.program_id(0)) & (tl.program_id(0) < n):\n    y = x * x * 1.0",
    ),
)
