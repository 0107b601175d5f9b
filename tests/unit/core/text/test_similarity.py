import pytest

from adaexplore.core.text.similarity import first_difference, nearest


def test_the_nearest_shares_most_lines():
    texts = {"a": "one\ntwo\nthree", "b": "one\n2\n3", "c": "1\n2\n3"}
    assert nearest(texts, "one\ntwo\n3") == ("a", pytest.approx(2 / 3))
    assert nearest(texts, "0\n2\n3")[0] == "b"
    with pytest.raises(ValueError, match="empty"):
        nearest({}, "one")


def test_the_first_difference_is_quoted():
    assert first_difference("a\nb\nc", "a\nx\ny", "now") == "line 2: recorded 'b', now 'x'"
    assert first_difference("a", "a\nb", "asked") == "line 2: recorded '(the end)', asked 'b'"
    assert first_difference("a", "a", "asked") == "nothing"


def test_a_long_line_is_cut_around_the_difference():
    long = "x" * 300
    text = first_difference(f"{long}1{long}", f"{long}2{long}", "now")
    assert "x1x" in text
    assert "x2x" in text
    assert len(text) < 220
