import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.llm.code import (
    MAX_SOURCE,
    ReplyError,
    check_module,
    extract_code,
)

MODULE = """\
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x.relu()
"""
DOCUMENTED = '''\
import torch


class ModelNew(torch.nn.Module):
    """Used so:

    ```python
    ModelNew()(x)
    ```

    and gives
```
a tensor
```
    """

    def forward(self, x):
        return x.relu()
'''


def complaint(text: str) -> str:
    with pytest.raises(ReplyError) as caught:
        extract_code(text)
    message = str(caught.value)
    message.encode()
    assert len(message) < 4000
    return message


def fenced(code: str, fence: str = "```", info: str = "python") -> str:
    return f"{fence}{info}\n{code}{fence}\n"


class TestBlocks:
    @pytest.mark.parametrize("info", ["", "python", "py", " Python3 title='a.py'", "triton"])
    @pytest.mark.parametrize("fence", ["```", "~~~", "``````"])
    def test_code_is_found_in_a_block_with_any_fence(self, fence, info):
        assert extract_code(f"Here it is:\n\n{fenced(MODULE, fence, info)}\nDone.") == MODULE

    def test_a_longer_fence_closes_a_block(self):
        assert extract_code(f"```py\n{MODULE}`````  \n") == MODULE

    @pytest.mark.parametrize("indent", ["  ", "    ", "\t"])
    def test_code_is_found_in_an_indented_block(self, indent):
        reply = f"1. The module:\n\n{textwrap.indent(fenced(DOCUMENTED), indent)}\n2. Done."
        assert extract_code(reply) == DOCUMENTED

    def test_an_indented_block_may_hold_unindented_code(self):
        assert extract_code(f"  ```python\n{MODULE}  ```\n") == MODULE

    @pytest.mark.parametrize("fence", ["```", "````", "~~~"])
    def test_fences_in_a_docstring_do_not_end_a_block(self, fence):
        assert extract_code(f"So:\n{fenced(DOCUMENTED, fence)}And so on.") == DOCUMENTED

    def test_code_is_found_after_a_block_with_an_unbalanced_quote(self):
        assert extract_code(fenced('say """\n', info="text") + fenced(MODULE)) == MODULE

    def test_code_is_found_after_an_unclosed_block(self):
        assert extract_code(f"```python\nimport torch\n\nBetter:\n{fenced(MODULE)}") == MODULE

    def test_a_reply_without_fences_may_be_the_module(self):
        assert extract_code(DOCUMENTED) == DOCUMENTED

    @pytest.mark.parametrize(
        "code",
        [
            "ModelNew = object\n",
            "ModelNew: type = object\n",
            "from torch.nn import Linear as ModelNew\n",
            "A, ModelNew = object, object\n",
            "try:\n    import triton\nfinally:\n    pass\nif True:\n    class ModelNew: ...\n",
        ],
    )
    def test_any_binding_defines_the_entry_point(self, code):
        assert extract_code(fenced(code)) == code

    def test_the_entry_point_may_have_another_name(self):
        assert extract_code(fenced("class Model: ...\n"), entry="Model") == "class Model: ...\n"


class TestChoiceOfBlock:
    def test_the_last_module_wins(self):
        other = MODULE.replace("relu", "tanh")
        assert extract_code(fenced(other) + "Better:\n" + fenced(MODULE)) == MODULE

    @pytest.mark.parametrize(
        "later",
        [
            fenced("y = ModelNew()(x)\n"),
            fenced("class ModelNew\n"),
            fenced("def ModelNew(): ...\n"),
            f"```python\n{MODULE.replace('relu', 'tanh')}",
            fenced("class ModelNew: ...\nreturn\n"),
            "``` \n",
        ],
        ids=["usage", "broken", "function", "cut off", "stray return", "stray fence"],
    )
    def test_a_later_block_that_is_not_a_module_is_ignored(self, later):
        assert extract_code(fenced(MODULE) + later) == MODULE

    def test_blocks_are_not_joined(self):
        message = complaint(
            fenced("@triton.jit\ndef kernel(x): ...\n") + "Then:\n" + fenced("class Net: ...\n")
        )
        assert "defines ModelNew" in message
        assert "def kernel (block at line 1); class Net (block at line 6)" in message


class TestText:
    def test_lines_end_with_line_feeds(self):
        assert extract_code(fenced(MODULE).replace("\n", "\r\n")) == MODULE

    def test_tabs_are_preserved(self):
        code = "class ModelNew:\n\tx = '\t'\n"
        assert extract_code(fenced(code)) == code

    def test_byte_order_marks_are_removed(self):
        assert extract_code("\ufeff" + MODULE) == MODULE
        assert extract_code(f"```\n\ufeff{MODULE}```") == MODULE

    def test_the_module_ends_with_one_newline(self):
        assert extract_code(fenced(MODULE + "\n\n")) == MODULE
        assert extract_code(MODULE.rstrip()) == MODULE


class TestMessages:
    @pytest.mark.parametrize(
        ("reply", "what"),
        [
            ("  \n", "The reply is empty."),
            ("I cannot make this faster.", "no fenced code block."),
            ("class ModelNew:\n  x = = 1", "is no module itself. The module does not parse"),
            (fenced("softmax\n"), "no code block with Python that defines ModelNew"),
            (f"Well:\n```python\n{MODULE}", "begins at line 2 of the reply is never closed"),
            (f"```python\n{DOCUMENTED}", "is never closed"),
            ("```", "is never closed"),
            (fenced("class Model: ...\n"), "defines Model, which is the reference's class"),
            (fenced("ModelNew = '\0'\n"), "NUL character in its line 2"),
            (fenced("ModelNew = '\ud800'\n"), "not Python source"),
        ],
    )
    def test_a_message_names_the_error(self, reply, what):
        assert what in complaint(reply)

    @pytest.mark.parametrize("code", ["-" * 100_000 + "1", "1" + "+1" * 100_000], ids=["-", "+"])
    def test_deep_nesting_is_reported(self, code):
        assert "nested too deeply" in complaint(fenced(f"ModelNew = {code}\n"))

    def test_an_overlong_module_is_reported(self):
        assert f"and {MAX_SOURCE} are allowed" in complaint(fenced(MODULE + "x = 1\n" * MAX_SOURCE))
        assert "2000 lines of ```" in complaint(fenced(MODULE) * 1000)

    def test_a_syntax_error_is_reported_with_its_line(self):
        broken = MODULE.replace("return x.relu()", "return x.relu(")
        message = complaint("Here:\n" + fenced(broken) + "and\n" + fenced("x = 1\n"))
        assert message.startswith(
            "In the code block at line 2 of the reply: The module does not parse: '(' was never "
            "closed, in its line 6:\n        return x.relu(\nSend the whole module"
        )

    def test_a_long_list_of_names_is_shortened(self):
        message = complaint(fenced("".join(f"def f{i}(): ...\n" for i in range(50))))
        assert "def f7, 42 more (block at line 1)" in message

    @pytest.mark.parametrize(
        "text",
        [
            "`" * 1_000_000,
            "~" * 1_000_000 + "`",
            "```" + " " * 1_000_000 + "`",
            " " * 1_000_000 + "ModelNew",
            "```\n" * 250_000,
            '```\n\\"""\n```\n' * 80_000,
            "```\nModelNew " + '"\\"' * 300_000 + "\n```",
            fenced('"""\n' + "'''\n" * 4000) * 60,
            "word " * 200_000,
        ],
        ids=range(9),
    )
    def test_a_huge_reply_is_handled_quickly(self, text):
        assert complaint(text)


class TestCheckModule:
    def test_a_module_passes(self):
        check_module(MODULE)

    @pytest.mark.parametrize(
        ("source", "what"),
        [
            ("", "found: no class and no function"),
            ("class Net: ...\n", "does not define ModelNew at its top level; found: class Net."),
            ("def f():\n    class ModelNew: ...\n", "found: def f."),
            ("ModelNew: type\n", "does not define ModelNew"),
            ("from x import *\n", "does not define ModelNew"),
            ("class ModelNew: ...\nreturn 1\n", "in its line 2:\nreturn 1"),
            ("class ModelNew:\n  x\n\ty\n", "does not parse"),
            ("ModelNew = 1\0", "null bytes"),
            pytest.param("ModelNew = 1\n" * MAX_SOURCE, "send a shorter one", id="too long"),
        ],
    )
    def test_any_other_source_is_refused(self, source, what):
        with pytest.raises(ReplyError) as caught:
            check_module(source)
        assert what in str(caught.value)


TOKENS = [
    *("```", "```python", "  ```", "````", "~~~", '"""', "'", "#", "\\", "\n", "\r\n"),
    *("class ModelNew:", "    x = 1", "ModelNew = 1", "class Model: ...", "\ufeff", "\0", "\ud800"),
]
PIECES = st.lists(st.sampled_from(TOKENS) | st.text(max_size=20), max_size=30)


@given(st.one_of(st.text(), PIECES.map("\n".join), PIECES.map("".join)))
def test_any_text_gives_a_module_or_a_refusal(text):
    try:
        code = extract_code(text)
    except ReplyError:
        assert complaint(text)
    else:
        check_module(code)
        assert code.endswith("\n")
        assert "\r" not in code
        assert extract_code(code) == code


PROSE = st.text(st.characters(exclude_characters="`~\0", codec="utf-8"), max_size=200)
BODIES = st.lists(st.text(st.characters(codec="utf-8"), max_size=30).map(repr), max_size=20)


@given(before=PROSE, after=PROSE, body=BODIES, fence=st.sampled_from(["```", "~~~~", "`````"]))
def test_a_module_in_prose_is_found_verbatim(before, after, body, fence):
    code = MODULE + "".join(f"\nX{i} = {value}\n" for i, value in enumerate(body))
    assert extract_code(f"{before}\n{fenced(code, fence)}{after}") == code
