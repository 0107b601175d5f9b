"""The runner of pages: what it runs, and what it finds."""

import pytest
from runnable import run

PAGE = """# A page

```python title="said.py"
WORD = "hello"
```

```python
import said
print(said.WORD, 41 + 1)
```

```text title="Output"
hello ...
```

```console
$ echo one; echo two
one
...
$ python -c "import said; print(said.WORD)"
hello
```

```sh
exit 3
```
"""


@pytest.fixture
def differences(tmp_path):
    def differences(text: str) -> list[str]:
        page = tmp_path / "page.md"
        page.write_text(text)
        return run(page, tmp_path)

    return differences


def test_a_page_that_shows_what_it_prints_has_no_differences(differences):
    assert differences(PAGE) == []


def test_wrong_output_of_python_is_found(differences):
    (found,) = differences(PAGE.replace("hello ...", "goodbye ..."))
    assert "page.md, line 7" in found
    assert "hello 42" in found


def test_wrong_output_of_a_command_is_found(differences):
    (found,) = differences(PAGE.replace("one\n...", "three\n..."))
    assert "page.md, line 17" in found


def test_a_traceback_has_the_line_of_the_page(differences):
    with pytest.raises(AssertionError, match=r'page\.page\.py", line 9'):
        differences(PAGE.replace("41 + 1", "41 / 0"))


def test_a_command_that_fails_is_an_error(differences):
    with pytest.raises(AssertionError, match="returned non-zero exit status 1"):
        differences(PAGE.replace("echo two", "false"))
