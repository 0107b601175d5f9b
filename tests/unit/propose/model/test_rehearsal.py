import pytest
from asked import CPU, H200, briefing

from adaexplore.core.errors import BadInputError
from adaexplore.core.problem import LANGUAGES
from adaexplore.propose.model.prompts import Prompts
from adaexplore.propose.model.published import PublishedPrompts
from adaexplore.propose.model.rehearsal import rehearse
from adaexplore.propose.model.variables import TEMPLATES

NOTES = {f"{language}.j2" for language in LANGUAGES}
NEVER = {"compiler.j2", "kernel.j2"}  # no compiler's source is filled in; macros


@pytest.mark.parametrize(
    ("language", "environment", "target"),
    [("triton", H200, None), ("cuda", H200, None), ("cpp", CPU, None), ("triton", CPU, "sm_90")],
)
def test_the_packages_own_templates_pass(language, environment, target):
    rehearse(Prompts(), briefing(language=language, environment=environment, target=target))


@pytest.mark.parametrize("name", sorted({*TEMPLATES} - NEVER - NOTES | {"triton.j2"}))
def test_finds_an_error_in_any_template(name):
    variable = "problem" if "problem" in _variables(name) else next(iter(TEMPLATES[name]), "")
    body = f"fine so far\n{{{{ {variable}.nosuch }}}}" if variable else "\n{{ 1 / 0 | time }}"
    kind = PublishedPrompts if name.startswith("published") else Prompts
    with pytest.raises(BadInputError, match=rf"^mine/{name}, line 2: "):
        rehearse(kind({f"mine/{name}": body}), briefing(rules=["a rule"]))


def _variables(name):
    follow_ups = ("again.j2", "cut_off.j2", "lint.j2")
    return {} if name in follow_ups else {"problem"}
