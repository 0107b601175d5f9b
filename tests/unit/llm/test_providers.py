import pytest

from adaexplore.errors import BadInputError
from adaexplore.llm.options import ClientOptions
from adaexplore.llm.providers import KEY_VARIABLES, known_models, open_client
from llm_server import KEY


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch):
    for variable in (*KEY_VARIABLES.values(), "GEMINI_API_KEY", "ADAEXPLORE_BASE_URL"):
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
def test_what_is_missing_in_the_environment_is_named(name, variable):
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
def test_a_name_that_means_nothing_gets_near_ones(name, meant):
    with pytest.raises(BadInputError) as caught:
        open_client(name)

    assert meant in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("url", ["localhost:8000/v1", "ftp://host/v1", "http:///v1", "nonsense"])
def test_a_base_url_that_is_none_is_refused(url):
    with pytest.raises(BadInputError, match="http://localhost:8000/v1"):
        open_client("openai-compatible:mine", options=ClientOptions(base_url=url))


def test_a_base_url_for_another_provider_is_refused():
    with pytest.raises(BadInputError, match="OPENAI_BASE_URL"):
        open_client("openai:gpt-5-mini", options=ClientOptions(base_url="http://localhost:1/v1"))


@pytest.mark.parametrize("key", ["", " ", f"{KEY}\n", f"{KEY} ", "sk-„quoted“"])
def test_a_key_that_no_header_can_hold_is_refused_unseen(monkeypatch, key):
    monkeypatch.setenv("OPENAI_API_KEY", key)

    with pytest.raises(BadInputError, match="OPENAI_API_KEY") as caught:
        open_client("openai:gpt-5-mini")

    assert KEY not in str(caught.value)


def test_known_models_can_be_asked_by_name():
    assert "anthropic:claude-haiku-4-5" in known_models()
    assert all(":" in name for name in known_models())
