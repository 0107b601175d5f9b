import dataclasses

from test_memory_files import RULE

from adaexplore.core import Gain, Platform
from adaexplore.memory import Saying, read_sayings
from adaexplore_lab.memories.exchange import as_lines, as_markdown, difference

OTHER = dataclasses.replace(
    RULE, name="pad", kind="silent", statement="Mask\nagain.", support=7, gone=()
)


def test_lines_are_those_that_are_read_again(tmp_path):
    path = tmp_path / "rules.txt"
    path.write_text(as_lines([RULE, OTHER]))
    assert read_sayings(path, 0) == [Saying("Mask again.", 7.0), Saying(RULE.statement, 4.0)]


def test_a_page_has_each_rule_with_its_programs_and_places():
    page = as_markdown([OTHER, RULE])
    assert page.index("## Language and functions") < page.index("## What compiles and is wrong")
    assert "Triton 3.6.0 for sm_90 (2 hold), Triton 3.9.0 for sm_90 (2 hold)" in page
    assert "Gone on Triton 3.12.0 for sm_100." in page
    assert page.count("```python\nclass ModelNew:") == 4


def test_a_page_has_the_gains_of_a_speed_rule():
    platform = Platform("3.9.0", "sm_90", "NVIDIA H200")
    gain = Gain(platform, 1.8, (1.79, 1.81))
    page = as_markdown(
        [dataclasses.replace(RULE, kind="speed", holds=(platform,), gone=(), gains=(gain,))]
    )
    assert "## What is right and slow" in page
    assert "Measured: 1.8x (1.79 to 1.81) on Triton 3.9.0 for sm_90 NVIDIA H200." in page
    assert "Fails with" not in page


def test_a_difference_names_rules_added_removed_and_changed():
    old = [RULE, dataclasses.replace(RULE, name="b"), dataclasses.replace(RULE, name="c")]
    new = [
        RULE,
        dataclasses.replace(RULE, name="b", support=9),
        dataclasses.replace(RULE, name="d"),
    ]
    found = difference(old, new)
    assert (found.added, found.removed, found.changed) == (["d"], ["c"], ["b"])
