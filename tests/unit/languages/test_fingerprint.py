import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.languages.fingerprint import fingerprint

SOURCE = '''
import torch, triton
import triton.language as tl

@triton.jit
def helper(v):
    return v * 2

@triton.jit
def scale(x, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(x + offs, helper(tl.load(x + offs)), mask=offs < n)

def launch(x, blocks):
    grid = (blocks,)
    scale[grid](x, x.numel(), BLOCK=64)
    return x

class ModelNew(torch.nn.Module):
    def forward(self, x):
        """Scales."""
        count = x.numel() // 64  # rounds down
        return launch(x, count)
'''


def changed(*pairs):
    source = SOURCE
    for old, new in pairs:
        assert old in source
        source = source.replace(old, new)
    return source


@pytest.mark.parametrize(
    "pairs",
    [
        [('        """Scales."""\n', ""), ("  # rounds down", "")],
        [("count", "how_many"), ("offs", "at"), ("helper", "twice"), ("launch", "go")],
        [("(x, blocks)", "(\n    x,\n    blocks,\n)")],
    ],
)
def test_equivalent_sources_share_a_fingerprint(pairs):
    assert fingerprint(changed(*pairs)) == fingerprint(SOURCE)


@pytest.mark.parametrize(
    "pairs",
    [
        [("BLOCK=64", "BLOCK=128")],
        [("v * 2", "v * 3")],
        [("tl.store", "tl.debug_store")],
        [("def forward(self, x)", "def forward(self, y)"), ("numel", "nelement")],
        [("return launch(x, count)", "return launch(count, x)")],
        [("(x, n, BLOCK: tl.constexpr)", "(n, x, BLOCK: tl.constexpr)")],
    ],
)
def test_different_sources_have_different_fingerprints(pairs):
    assert fingerprint(changed(*pairs)) != fingerprint(SOURCE)


def test_parameters_passed_by_name_keep_their_names():
    first = "def f(a, b):\n    return a - b\ny = f(a=1, b=2)\n"
    assert fingerprint(first) != fingerprint(
        first.replace("(a, b)", "(b, a)").replace("a - b", "b - a")
    )


def test_a_source_that_reads_itself_is_compared_verbatim():
    source = SOURCE + "\ntext = open(__file__).read()\n"
    assert fingerprint(source) != fingerprint(source.replace("  # rounds down", ""))


def test_comments_of_cpp_in_strings_are_ignored():
    source = 'code = """\nvoid f() {  // first\n  g("//"); /* then */\n}\n"""\n'
    assert fingerprint(source) == fingerprint(
        source.replace("first", "second").replace("/* then */", "")
    )
    assert fingerprint(source) != fingerprint(source.replace('"//"', '"/"'))
    assert fingerprint(source) != fingerprint(source.replace("  // first\n", "  // first "))


@given(st.text())
def test_any_text_has_a_fingerprint_or_none(text):
    assert fingerprint(text) == fingerprint(text)
    assert len(fingerprint(text)) in (0, 64)


class TestWithCompiledKernels:
    def test_machine_code_replaces_the_bodies_of_launched_kernels(self):
        other = changed(("v * 2", "v + v"), ("scale", "double"), ("offs", "at"))
        assert fingerprint(SOURCE, {"scale": ["c0de"]}) == fingerprint(other, {"double": ["c0de"]})
        assert fingerprint(SOURCE, {"scale": ["c0de"]}) != fingerprint(SOURCE, {"scale": ["f00d"]})

    def test_the_body_of_a_kernel_without_machine_code_counts(self):
        other = changed(("tl.load(x + offs)", "tl.load(x + offs + 1)"))
        assert fingerprint(SOURCE, {"scale": ["c0de"]}) == fingerprint(other, {"scale": ["c0de"]})
        assert fingerprint(SOURCE, {"else": ["c0de"]}) != fingerprint(other, {"else": ["c0de"]})
        assert fingerprint(SOURCE, {}) != fingerprint(other, {})

    def test_the_assignment_of_codes_to_kernels_counts(self):
        codes = {"scale": ["a"], "helper": ["b"]}
        assert fingerprint(SOURCE, codes) != fingerprint(SOURCE, {"scale": ["b"], "helper": ["a"]})
        assert fingerprint(SOURCE, {"_helion_f": ["a"]}) != fingerprint(
            SOURCE, {"_helion_f": ["b"]}
        )

    def test_host_code_counts(self):
        other = changed(("numel() // 64", "numel() // 128"))
        assert fingerprint(SOURCE, {"scale": ["c0de"]}) != fingerprint(other, {"scale": ["c0de"]})

    def test_a_source_that_is_not_python_has_no_fingerprint(self):
        assert fingerprint("def (", {"scale": ["c0de"]}) == ""
