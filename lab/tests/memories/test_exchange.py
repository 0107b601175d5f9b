import dataclasses

from adaexplore.memory.exports import as_lines, as_markdown
from adaexplore_lab.imports.lines import Saying, sayings
from test_memory_files import RULE

OTHER = dataclasses.replace(
    RULE, name="pad", kind="silent", statement="Mask\nagain.", support=7, gone=()
)


def test_lines_are_those_that_are_read_again(tmp_path):
    path = tmp_path / "rules.txt"
    path.write_text(as_lines([RULE, OTHER]))
    assert sayings(path, 0) == [Saying("Mask again.", 7.0), Saying(RULE.statement, 4.0)]


def test_a_page_has_each_rule_with_its_programs_and_places():
    page = as_markdown([OTHER, RULE])
    assert page.index("## Language and functions") < page.index("## What compiles and is wrong")
    assert "Triton 3.6.0 for sm_90 (2 hold), Triton 3.9.0 for sm_90 (2 hold)" in page
    assert "Gone on Triton 3.12.0 for sm_100." in page
    assert page.count("```python\nclass ModelNew:") == 4
