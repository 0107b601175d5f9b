"""Two ways to the same kernels are one candidate."""

from adaexplore.propose.compiler.identity import fingerprint


def test_docstring_does_not_count() -> None:
    body = "import torch\nx = 1\n"
    assert fingerprint('"""One way."""\n' + body) == fingerprint('"""Another\nway.\n"""\n' + body)
    assert fingerprint('"""One way."""\n' + body) != fingerprint(
        '"""One way."""\n' + body + "y = 2\n"
    )


def test_text_that_is_no_python_is_compared_whole() -> None:
    assert fingerprint("def (") == fingerprint("def (")
    assert fingerprint("def (") != fingerprint("def )")
