import pytest

from adaexplore.core.errors import BadInputError
from adaexplore.llm.credentials import KEY_VARIABLES, Key, key_of
from adaexplore.llm.options import ClientOptions
from adaexplore.llm.providers import known_models, open_client
from llm_server import KEY


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch):
    keys = [variable for variables in KEY_VARIABLES.values() for variable in variables]
    for variable in (*keys, "GITHUB_API_KEY", "ADAEXPLORE_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    for provider in ("OPENAI", "ANTHROPIC"):
        monkeypatch.delenv(f"{provider}_BASE_URL", raising=False)


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("openai:gpt-5-mini", "OPENAI_API_KEY"),
        ("openai-chat:gpt-5-mini", "OPENAI_API_KEY"),
        ("anthropic:claude-haiku-4-5", "ANTHROPIC_API_KEY"),
        ("google:gemini-2.5-pro", "GOOGLE_API_KEY"),
        ("google-gla:gemini-2.5-pro", "GOOGLE_API_KEY"),
        ("azure:mine", "AZURE_OPENAI_ENDPOINT"),
        ("openrouter:openai/gpt-5", "OPENROUTER_API_KEY"),
        ("ollama:qwen3", "OLLAMA_BASE_URL"),
        ("openai-compatible:mine", "ADAEXPLORE_BASE_URL"),
    ],
)
def test_a_missing_variable_is_named(name, variable):
    with pytest.raises(BadInputError, match=variable) as caught:
        open_client(name)

    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("gpt-4o", "openai:gpt-4o"),
        ("claude-haiku-4-5", "anthropic:claude-haiku-4-5"),
        (":gpt-4o", "openai:gpt-4o"),
        ("opnai:gpt-4o", "openai:gpt-4o"),
        ("antropic:claude-haiku-4-5", "anthropic:claude-haiku-4-5"),
        ("anthropic", "anthropic:MODEL"),
        ("openai:", "openai:MODEL"),
        ("", "PROVIDER:MODEL"),
        ("xyzzy:plugh", "openai-compatible"),
    ],
)
def test_an_unknown_name_gets_suggestions(name, meant):
    with pytest.raises(BadInputError) as caught:
        open_client(name)

    assert meant in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("url", ["localhost:8000/v1", "ftp://host/v1", "http:///v1", "nonsense"])
def test_an_invalid_base_url_is_refused(url):
    with pytest.raises(BadInputError, match="http://localhost:8000/v1"):
        open_client("openai-compatible:mine", options=ClientOptions(base_url=url))


def test_a_base_url_for_another_provider_is_refused():
    with pytest.raises(BadInputError, match="OPENAI_BASE_URL"):
        open_client("openai:gpt-5-mini", options=ClientOptions(base_url="http://localhost:1/v1"))


@pytest.mark.parametrize("key", ["", " ", f"{KEY}\n", f"{KEY} ", "sk-„quoted“"])
def test_a_malformed_key_is_refused_without_being_shown(monkeypatch, key):
    monkeypatch.setenv("OPENAI_API_KEY", key)

    with pytest.raises(BadInputError, match="OPENAI_API_KEY") as caught:
        open_client("openai:gpt-5-mini")

    assert KEY not in str(caught.value)


def test_known_models_can_be_asked_by_name():
    assert "anthropic:claude-haiku-4-5" in known_models()
    assert all(":" in name for name in known_models())


def test_missing_credentials_are_named(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")  # or it looks for a machine of Google's around here
    with pytest.raises(BadInputError) as caught:
        open_client("google-vertex:gemini-2.5-pro")

    said = str(caught.value)
    assert said.startswith("google-vertex:gemini-2.5-pro: set GOOGLE_APPLICATION_CREDENTIALS in ")
    assert "\n" not in said

    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "no such file.json"))
    with pytest.raises(BadInputError, match="mend GOOGLE_APPLICATION_CREDENTIALS") as caught:
        open_client("google-vertex:gemini-2.5-pro")
    assert "no such file.json" in str(caught.value)


def test_warnings_of_the_providers_libraries_are_silenced(monkeypatch, recwarn):
    monkeypatch.setenv("GITHUB_API_KEY", KEY)
    open_client("github:gpt-5-mini").close()
    assert not recwarn.list


@pytest.mark.parametrize(
    ("given", "variable"),
    [
        ({}, "GOOGLE_API_KEY"),
        ({"GEMINI_API_KEY": KEY}, "GEMINI_API_KEY"),
        ({"GOOGLE_API_KEY": "", "GEMINI_API_KEY": KEY}, "GEMINI_API_KEY"),
        ({"GOOGLE_API_KEY": KEY, "GEMINI_API_KEY": KEY}, "GOOGLE_API_KEY"),
    ],
)
def test_the_variable_that_is_used_is_known(monkeypatch, given, variable):
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert key_of("google") == Key(variable, given=bool(given))


@pytest.mark.parametrize(
    ("name", "options", "refused"),
    [
        ("openai:gpt-5-mini", {"temperature": 0.6}, "temperature=0.6"),
        ("openai:gpt-5.1", {"temperature": 0.0, "reasoning": "low"}, "temperature=0"),
        ("anthropic:claude-opus-4-7", {"temperature": 0.6}, "temperature=0.6"),
        ("openai:gpt-4.1", {"reasoning": "low"}, "reasoning=low"),
    ],
)
def test_an_option_that_a_model_would_ignore_is_refused(monkeypatch, name, options, refused):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    with pytest.raises(BadInputError, match=f"{name}: {refused}.*leave it out"):
        open_client(name, options=ClientOptions(**options))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("openai:gpt-5.1", {"temperature": 0.6}),
        ("openai:gpt-4.1", {"temperature": 0.6}),
        ("anthropic:claude-haiku-4-5", {"temperature": 0.6, "reasoning": "low"}),
    ],
)
def test_an_option_that_a_model_takes_is_accepted(monkeypatch, name, options):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    open_client(name, options=ClientOptions(**options)).close()
