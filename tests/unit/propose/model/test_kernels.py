"""Windows of kernels, told without repetition."""

from dataclasses import replace

from asked import ESTIMATED, FAILED, PASSED, module, node
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.core.text.feedback import render
from adaexplore.propose.model.kernels import kernel_view, path_views


def older(source: str, changes: str) -> str:
    """What a source was before a unified difference was applied to it."""
    lines, at, made = source.splitlines(), 0, []
    for change in changes.splitlines():
        if change.startswith("@@"):
            begin = int(change.split("+")[1].split()[0].split(",")[0]) - 1
            made += lines[at:begin]
            at = begin
        else:
            made += [] if change.startswith("+") else [change[1:]]
            at += not change.startswith("-")
    return "\n".join([*made, *lines[at:], ""])


def test_a_view_has_source_note_and_result():
    kernel = kernel_view(node(4, FAILED, note="an idea", origin="somebody"))
    assert (kernel.step, kernel.origin, kernel.note) == (4, "somebody", "an idea")
    assert not kernel.passed
    assert kernel.source == module(4)
    assert kernel.result.startswith(kernel.verdict)


def test_an_estimate_is_shown_with_the_compilers_report():
    assert kernel_view(node(1, ESTIMATED)).result == f"{render(ESTIMATED)}\n9 registers"
    measured = replace(PASSED, detail="9 registers")
    assert kernel_view(node(1, measured)).result == render(measured)


def test_earlier_kernels_are_shown_as_changes():
    first, second, last = path_views([node(1), node(2), node(3)])
    assert [first.source, second.source] == ["", ""]
    assert first.changes == ""
    assert last.source == module(3)
    assert "made in step 2" in second.changes
    assert "made in step 2" in last.changes


def test_a_rewritten_kernel_is_shown_whole():
    other = "value = 0\n" * 10
    first, second = path_views([node(1, source=other), node(2)])
    assert (first.source, second.source) == (other, module(2))
    assert second.changes == ""


def test_a_step_without_a_module_is_allowed():
    first, second, last = path_views([node(1), node(2, FAILED, source=""), node(3)])
    assert (first.source, second.source, last.source) == (module(1), "", module(3))
    assert second.changes == last.changes == ""


@given(st.lists(st.lists(st.sampled_from("abcd"), min_size=12, max_size=16), max_size=5))
def test_every_source_can_be_reconstructed(sources):
    texts = ["".join(f"line {name}\n" for name in source) for source in sources]
    told = path_views([node(i, source=source) for i, source in enumerate(texts)])
    known = ""
    for i in reversed(range(len(told))):
        if i + 1 < len(told) and not told[i].source:
            known = older(known, told[i + 1].changes)
        else:
            known = told[i].source
        assert known == texts[i]
