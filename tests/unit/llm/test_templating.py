import re
from importlib.resources import files

import pytest

from adaexplore.core.errors import BadInputError
from adaexplore.llm.templating import Templates, read_templates

OWN = files("adaexplore.propose.model") / "templates"
KNOWN = {"again.j2": ("reason",), "module.j2": ()}


def complaint(folder, known=KNOWN):
    with pytest.raises(BadInputError) as caught:
        Templates(OWN, read_templates(folder, known), known)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_missing_folder_is_refused(tmp_path):
    assert complaint(tmp_path / "gone") == f"{tmp_path}/gone: no such folder of prompt templates"


def test_an_unknown_template_gets_suggestions(tmp_path):
    (tmp_path / "agian.j2").touch()
    expected = f"{tmp_path}/agian.j2: no such prompt template; did you mean again.j2?"
    assert complaint(tmp_path) == expected


def test_a_dissimilar_name_gets_all_names(tmp_path):
    (tmp_path / "zzz").mkdir()
    assert complaint(tmp_path).endswith("known: again.j2, module.j2")


def test_hidden_files_are_ignored(tmp_path):
    (tmp_path / ".again.j2.swp").write_bytes(b"\xff")
    assert "why" in Templates(OWN, read_templates(tmp_path, KNOWN), KNOWN).render(
        "again.j2", {"reason": "why"}
    )


def test_a_binary_file_is_refused(tmp_path):
    (tmp_path / "again.j2").write_bytes(b"\xff\xfe")
    assert complaint(tmp_path).startswith(f"{tmp_path}/again.j2: cannot be read as text")


@pytest.mark.parametrize(
    ("body", "line", "what"),
    [
        ("\n\n{% if reason %}", 3, "end"),
        ("{{ reason }}\n{{ reason | nosuch }}", 2, "nosuch"),
        ("{{ reason", 1, "end of print statement"),
        ("{{ reason }}\n\n{{ raeson }}", 3, "no such variable: raeson; did you mean reason?"),
    ],
)
def test_an_invalid_template_is_refused_at_once(tmp_path, body, line, what):
    (tmp_path / "again.j2").write_text(body)
    told = complaint(tmp_path)
    assert told.startswith(f"{tmp_path}/again.j2, line {line}: ")
    assert what in told


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("{{ reason.nothing }}", 1),
        ("\n{{ reason | time }}", 2),
        ('\n\n{% include "gone" %}', 3),
        ("{{ 1 / (reason | length - 3) }}", 1),
    ],
)
def test_an_error_while_rendering_names_the_line(tmp_path, body, line):
    (tmp_path / "again.j2").write_text(body)
    templates = Templates(OWN, read_templates(tmp_path, KNOWN), KNOWN)
    with pytest.raises(BadInputError, match=rf"^{re.escape(str(tmp_path))}/again.j2, line {line}:"):
        templates.render("again.j2", {"reason": "why"})


def test_text_is_not_escaped(tmp_path):
    (tmp_path / "again.j2").write_text("{{ reason }}")
    told = Templates(OWN, read_templates(tmp_path, KNOWN), KNOWN).render(
        "again.j2", {"reason": "a < b && c"}
    )
    assert told == "a < b && c"


def test_a_stored_template_with_an_unknown_name_is_refused():
    with pytest.raises(
        BadInputError, match=r"mine/agin\.j2: no such prompt template; did you mean"
    ):
        Templates(OWN, {"mine/agin.j2": "why"}, KNOWN)
