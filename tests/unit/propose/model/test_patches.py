import random
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.llm.code import ReplyError
from adaexplore.propose.model.patches import FORMAT, Patch, apply_patches, parse_patches

SOURCE = """\
import torch


def left(x):
    scale = 2.0
    return x * scale


def right(x):
    scale = 3.0

    if x.sum() > 0:
        return torch.relu(x) * scale
    return x * scale
"""


def block(old: str, new: str, size: int = 7, words: tuple[str, str] = (" OLD", " NEW")) -> str:
    return f"{'<' * size}{words[0]}\n{old}{'=' * size}\n{new}{'>' * size}{words[1]}\n"


def parse_complaint(text: str) -> str:
    with pytest.raises(ReplyError) as caught:
        parse_patches(text)
    return sendable(caught.value)


def complaint(source: str, *patches: Patch) -> str:
    with pytest.raises(ReplyError) as caught:
        apply_patches(source, patches)
    return sendable(caught.value)


def sendable(error: ReplyError) -> str:
    message = str(error)
    message.encode()
    assert len(message) < 4000
    return message


def applied(old: str, new: str, source: str = SOURCE) -> str:
    return apply_patches(source, [Patch(old, new)]).source


class TestParse:
    def test_reads_the_requested_format(self):
        assert parse_patches(FORMAT) == [
            Patch("exact lines of the source\n", "the lines to put in their place\n")
        ]

    @pytest.mark.parametrize("size", [5, 7, 12])
    @pytest.mark.parametrize(
        "words",
        [
            (" OLD", " NEW"),
            (" SEARCH", " REPLACE"),
            ("ORIGINAL", "UPDATED"),
            ("", ""),
            (" old ", ""),
        ],
    )
    def test_reads_variants_of_the_format(self, size, words):
        assert parse_patches(block("a\n", "b\n", size, words)) == [Patch("a\n", "b\n")]

    def test_reads_several_patches_between_prose_and_fences(self):
        first, second = block("a\n", "b\n"), block("c\n", "")
        text = f"First:\n{first}\nthen:\n```diff\n{second}```\nDone."
        assert parse_patches(text) == [Patch("a\n", "b\n"), Patch("c\n", "")]

    def test_keeps_blank_lines_and_indentation(self):
        text = block("\n  a\n\n", "\n\n\tb  \n")
        assert parse_patches(text) == [Patch("\n  a\n\n", "\n\n\tb  \n")]

    def test_reads_other_line_ends_and_indented_markers(self):
        text = textwrap.indent(block("a\n", "b\n"), "  ").replace("\n", "\r\n")
        assert parse_patches(text) == [Patch("  a\n", "  b\n")]

    def test_text_may_contain_lines_like_markers(self):
        heading = "Title\n=====\n"
        assert parse_patches(block(heading, heading)) == [Patch(heading, heading)]
        assert parse_patches(block("=======\n", "=======\n", 9)) == [
            Patch("=======\n", "=======\n")
        ]

    @pytest.mark.parametrize(
        ("text", "what"),
        [
            ("Nothing to do.", "holds no patch"),
            ("<<<<<<< OLD\na\n=======\nb\n", "begins at line 1 of the reply has no end"),
            ("x\n<<<<<<< OLD\na\n" + block("a\n", "b\n"), "line 2 of the reply has no end"),
            ("<<<<<<< HERE\na\n=======\nb\n>>>>>>> NEW", "Line 5 of the reply ends a patch"),
            (block("a\n", "b\n") + "<<<<<<<\na\n>>>>>>>", "Patch 2 does not have exactly one line"),
            (block("=======\n", "=======\n"), "write all three markers longer"),
            (block("", "b\n"), "OLD part of patch 1 is empty"),
            (block(" \n\n", "b\n"), "OLD part of patch 1 is empty"),
        ],
    )
    def test_errors_show_the_format_once(self, text, what):
        message = parse_complaint(text)
        assert what in message
        assert message.count(FORMAT) == 1

    def test_other_errors(self):
        assert "NUL character in its line 2" in parse_complaint(block("a\0\n", ""))
        assert "holds 101 patches; send at most 100" in parse_complaint(block("a\n", "") * 101)

    @pytest.mark.parametrize(
        "text",
        [
            "<<<<<<< " + " " * 1_000_000 + "x",
            ">" * 1_000_000 + " " * 1_000_000 + "x",
            block("=====\n" * 150_000, "b\n", 9) + "<<<<<<<",
            block("a\n", "b\n") * 40_000,
        ],
        ids=range(4),
    )
    def test_answers_a_huge_reply(self, text):
        assert parse_complaint(text)


class TestExactMatch:
    def test_replaces_lines_in_place(self):
        patched = apply_patches(SOURCE, [Patch("    scale = 3.0\n", "    scale = 4.0\n")])
        assert patched.source == SOURCE.replace("3.0", "4.0")
        assert patched.notes == ()

    def test_an_empty_new_part_deletes_lines(self):
        assert applied("import torch\n\n\n", "") == SOURCE.removeprefix("import torch\n\n\n")

    def test_a_blank_line_is_a_replacement(self):
        assert applied("a\n", "\n", "a\nb\n") == "\nb\n"

    def test_part_of_a_line_does_not_match(self):
        assert "matches nowhere" in complaint(SOURCE, Patch("scale = 3", "scale = 4"))

    def test_each_patch_applies_to_the_result_of_the_one_before(self):
        first = Patch("    scale = 3.0\n\n", "    scale = 4.0\n    bias = 1.0\n")
        second = Patch("    bias = 1.0\n    if x.sum() > 0:\n", "    if True:\n")
        assert apply_patches(SOURCE, [first, second]).source == SOURCE.replace(
            "3.0\n\n    if x.sum() > 0:", "4.0\n    if True:"
        )

    def test_the_last_line_may_lack_a_line_end(self):
        assert applied("b", "c", "a\nb") == "a\nc\n"

    def test_line_ends_become_line_feeds(self):
        assert applied("b\r\n", "c\r\n", "a\r\nb\r\n") == "a\nc\n"


class TestTolerantMatch:
    def test_ignores_trailing_and_blank_space(self):
        old = "    scale = 3.0  \n    if x.sum() > 0:\n\n        return torch.relu(x) * scale\n"
        patched = apply_patches(SOURCE, [Patch(f"\n{old}\n\n", "\n    return x\n\n")])
        head, tail = SOURCE.split("    scale = 3.0\n")
        rest = tail.partition("* scale\n")[2]
        assert patched.source == f"{head}    return x\n{rest}"
        assert patched.notes == ("patch 1: lines 10-13 match but for blank space",)

    @pytest.mark.parametrize(("old", "new"), [("", "    "), ("        ", "    "), ("\t", "    ")])
    def test_new_lines_get_the_indentation_of_old_lines(self, old, new):
        patch = Patch(
            f"{old}scale = 3.0\n\n{old}if x.sum() > 0:\n", f"{old}if x.any():\n\n{old}    y = 1\n"
        )
        patched = apply_patches(SOURCE, [patch])
        assert patched.source == SOURCE.replace(
            "    scale = 3.0\n\n    if x.sum() > 0:\n", f"{new}if x.any():\n\n{new}    y = 1\n"
        )
        assert patched.notes == ("patch 1: lines 10-12 match but for indentation",)

    def test_keeps_a_line_with_less_indentation_than_the_old_lines(self):
        new = '        text = """\nflush\n"""\n'
        assert applied("        scale = 3.0\n", new) == SOURCE.replace(
            "    scale = 3.0\n", '    text = """\nflush\n"""\n'
        )


class TestFuzzyMatch:
    OLD = """\
def right(x):
    scale = 3.0  # as before
    if x.sum() > 0:
        return torch.relu(x) * scale
    return x * scale
"""

    def test_matches_the_only_nearly_equal_lines(self):
        patched = apply_patches(SOURCE, [Patch(self.OLD, "right = left\n")])
        assert patched.source == SOURCE[: SOURCE.index("def right")] + "right = left\n"
        assert patched.notes == ("patch 1: lines 9-14 match by 92 %",)

    @pytest.mark.parametrize("missing", [0, 2, 4])
    def test_matches_with_one_line_more_or_less(self, missing):
        lines = [f"    value_{i} = compute({i}, of=thing_{i * i})\n" for i in range(40)]
        source = "".join(lines)
        fewer = lines[10:30]
        del fewer[missing + 3]
        assert applied("".join(fewer), "", source) == "".join(lines[:10] + lines[30:])
        more = lines[10:30]
        more.insert(missing + 3, "    print('here')\n")
        assert applied("".join(more), "", source) == "".join(lines[:10] + lines[30:])

    def test_new_lines_get_the_indentation_of_old_lines(self):
        patch = Patch(textwrap.indent(self.OLD, "  "), "  right = left\n  again = right\n")
        assert apply_patches(SOURCE, [patch]).source.endswith("\n\nright = left\nagain = right\n")

    def test_does_not_match_if_two_places_are_nearly_as_good(self):
        twice = SOURCE + "\n\n" + SOURCE.replace("right", "wrong").replace("3.0", "3.5")
        message = complaint(twice, Patch(self.OLD.replace("right", "night"), ""))
        assert message.startswith("Patch 1 is ambiguous in the source. It matches at lines 9, 25;")

    def test_does_not_match_on_too_few_letters(self):
        assert "matches nowhere" in complaint("stride_in_bm = 4\n", Patch("stride_in_am = 4\n", ""))


class TestComplaints:
    def test_shows_the_places_of_a_patch_that_matches_twice(self):
        message = complaint(SOURCE, Patch("    return x * scale\n", "    return x\n"))
        assert message == (
            "Patch 1 is ambiguous in the source. It matches at lines 6, 14; OLD needs lines that "
            "only one of them has:\n"
            "   5|     scale = 2.0\n"
            "   6|     return x * scale\n"
            "...\n"
            "  13|         return torch.relu(x) * scale\n"
            "  14|     return x * scale\n"
            "No patch was made: send all of them again, with this one mended."
        )

    def test_several_tolerant_matches_are_ambiguous(self):
        assert "is ambiguous" in complaint(SOURCE, Patch("return x * scale  \n", ""))

    def test_counts_many_matches(self):
        assert "at lines 1, 2, 3 and 7 more" in complaint("x\n" * 10, Patch("x\n", "y\n"))

    def test_shows_the_nearest_lines_of_a_patch_that_matches_nowhere(self):
        old = "    bias = 5.0\n    if x > 0:\n        return torch.relu(x) * scale\n"
        message = complaint(SOURCE, Patch("import torch\n", "import os\n"), Patch(old, ""))
        assert message == (
            "Patch 2 matches nowhere in the source as the patches before it leave it. The nearest "
            "lines are these, and lack `bias = 5.0`; copy OLD from the source:\n"
            "  10|     scale = 3.0\n"
            "  11| \n"
            "  12|     if x.sum() > 0:\n"
            "  13|         return torch.relu(x) * scale\n"
            "No patch was made: send all of them again, with this one mended."
        )

    def test_the_nearest_lines_begin_at_the_difference(self):
        lines = [f"value_{i} = compute({i}, of=thing_{i * i})\n" for i in range(60)]
        old = [*lines[5:30], *(line.upper() for line in lines[30:50])]
        message = complaint("".join(lines), Patch("".join(old), ""))
        assert "lack `VALUE_30 =" in message
        assert "these, and lack" in message
        assert "\n  29| value_28" in message
        assert message.count("| value_") == 12

    def test_refuses_a_patch_without_old_lines(self):
        for old in ("", "\n", "\ufeff"):
            assert "OLD part of patch 1 is empty" in complaint(SOURCE, Patch(old, "import os\n"))

    def test_says_if_nothing_resembles_a_patch(self):
        assert "Nothing there resembles its OLD" in complaint(SOURCE, Patch("@@@ +++\n", ""))
        assert "Nothing there resembles its OLD" in complaint("", Patch("x\n", ""))

    @pytest.mark.parametrize(
        "patches",
        [
            [],
            [Patch("    scale = 3.0\n", "    scale = 3.0\n")],
            [Patch("scale = 3.0  \n", "scale = 3.0\n")],
            [Patch("import torch\n", "import os\n"), Patch("import os\n", "import torch\n")],
        ],
    )
    def test_refuses_patches_that_change_nothing(self, patches):
        assert complaint(SOURCE, *patches).startswith("The patches change nothing.")


class TestLargeSources:
    LINES = tuple(
        f"    name_{i % 71} = f_{i % 37}({i % 53}, {i}, thing={i * i})" for i in range(3000)
    )

    def test_matches_a_long_patch_with_some_lines_changed(self):
        old = [*self.LINES[1000:1200]]
        for changed in range(7, 200, 20):
            old[changed] = old[changed].replace("thing", "think")
        del old[50]
        patched = apply_patches("\n".join(self.LINES), [Patch("\n".join(old), "    pass\n")])
        assert patched.source.split("\n")[:-1] == [
            *self.LINES[:1000],
            "    pass",
            *self.LINES[1200:],
        ]

    @pytest.mark.parametrize(
        ("source", "old"),
        [
            ("ab\nba\n" * 1500, "abx\nbay\n" * 200),
            ("a" * 100 + "b" * 100 + "\n" + "ab" * 60 + "\n", "ab" * 60 + "z\n" + "ba" * 60 + "\n"),
            ("x " * 200_000, "y " * 500_000),
            ("x\n" * 3000, "\n" * 300_000 + "x\ny"),
            ("x\n" * 3000, "x\n" * 300_000),
            ("(" * 100_000, "(" * 90_000),
        ],
        ids=range(6),
    )
    def test_answers_input_that_is_hard_to_compare(self, source, old):
        assert complaint(source, Patch(old, "z"))


LINES = st.lists(
    st.sampled_from(
        ["", "    x = 1", "def f(a):", "\tpass", "  return y  ", "\x0c", "\ud800", "\ufeff"]
    )
    | st.text(max_size=10),
    max_size=12,
).map("\n".join)
MARKED = st.lists(
    st.sampled_from(["<<<<<<< OLD", "=======", ">>>>>>> NEW", "<<<<<", ">>>>>>", "=====", "```"])
    | LINES,
    max_size=12,
).map("\n".join)


@given(MARKED)
def test_any_reply_is_parsed_or_refused(text):
    try:
        patches = parse_patches(text)
    except ReplyError:
        assert parse_complaint(text)
    else:
        assert patches
        assert all(patch.old.strip() for patch in patches)


@given(source=LINES, patches=st.lists(st.builds(Patch, LINES, LINES), max_size=3))
def test_any_patch_is_applied_or_refused(source, patches):
    try:
        patched = apply_patches(source, patches)
    except ReplyError:
        assert complaint(source, *patches)
    else:
        assert patched.source != source


@st.composite
def cuts(draw):
    """A source of different lines, where to cut it, and what to put there."""
    rng = random.Random(draw(st.integers(0, 2**32)))
    lines = [
        " " * 4 * rng.randrange(4) + f"v{i} = {rng.choice('fgh')}({rng.random()})"
        if rng.random() < 0.8
        else ""
        for i in range(draw(st.integers(1, 60)))
    ]
    filled = [at for at, line in enumerate(lines) if line]
    if not filled:
        lines, filled = ["v = 1"], [0]
    first = draw(st.sampled_from(filled))
    last = draw(st.sampled_from([at for at in filled if at >= first]))
    new = draw(st.lists(st.sampled_from(["", "    y = 1", "z = 2"]), max_size=5))
    return lines, first, last + 1, new


@given(cuts(), st.sampled_from(["", "  ", "\t", "        "]))
def test_a_patch_cut_out_and_indented_gives_the_expected_source(cut, margin):
    lines, first, end, new = cut
    old, shifted = (
        "".join(f"{margin if line else ''}{line}\n" for line in part)
        for part in (lines[first:end], new)
    )
    [patch] = parse_patches(f"So:\n```\n{block(old, shifted)}```\n")
    patched = apply_patches("".join(f"{line}\n" for line in lines), [patch])
    assert patched.source == "".join(f"{line}\n" for line in [*lines[:first], *new, *lines[end:]])
    assert len(patched.notes) == bool(margin)
