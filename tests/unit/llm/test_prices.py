import pytest

from adaexplore.core.protocols.client import Message, Prompt
from adaexplore.llm.prices import list_price_usd, provider_of

PROMPT = Prompt((Message("user", "hello"),))


@pytest.mark.parametrize(
    "model",
    [
        "openai:gpt-5-mini",
        "openai-chat:gpt-5-mini",
        "azure:gpt-5-mini",
        "openrouter:openai/gpt-5",
        "anthropic:claude-haiku-4-5",
        "google:gemini-2.5-pro",
        "google-gla:gemini-2.5-pro",
    ],
)
def test_replies_cost_more_than_prompts(model):
    assert 0 < list_price_usd(model, 1000, 0) < list_price_usd(model, 0, 1000)


@pytest.mark.parametrize(
    "model", ["openai-compatible:gpt-5-mini", "ollama:qwen3", "openai:unheard-of", "nobody:x"]
)
def test_an_unknown_model_has_no_price(model):
    assert list_price_usd(model, 1000, 1000) is None


@pytest.mark.parametrize("model", ["openai:gpt-5-mini", "anthropic:claude-haiku-4-5"])
def test_the_cost_of_a_reply_includes_the_cache_discount(open_here, model):
    usage = open_here(model).ask(PROMPT).usage

    assert usage.cached_tokens == 40
    assert 0 < usage.cost_usd < list_price_usd(model, usage.input_tokens, usage.output_tokens)


def test_a_model_without_a_price_still_answers(open_here):
    assert open_here("openai-compatible:mine").ask(PROMPT).usage.cost_usd is None


@pytest.mark.parametrize(
    ("name", "provider"),
    [("gpt-4o", "openai"), ("claude-haiku-4-5", "anthropic"), ("unheard-of", None), ("", None)],
)
def test_a_bare_name_is_mapped_to_its_provider(name, provider):
    assert provider_of(name) == provider
