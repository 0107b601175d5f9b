import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from fake_client import FakeClient
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.core.errors import BadInputError
from adaexplore.core.protocols.client import (
    BudgetSpentError,
    Message,
    ModelOutageError,
    Prompt,
    Reply,
    Usage,
)
from adaexplore.core.settings.limits import BudgetLimits, parse_budget
from adaexplore.llm.budget import Budget, BudgetedClient
from adaexplore.llm.prices import list_price_usd

PROMPT = Prompt((Message("user", "x" * 300),))  # about 100 tokens
MODEL = "openai:gpt-5-mini"


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("2usd", BudgetLimits(usd=2)),
        ("0.25 usd", BudgetLimits(usd=0.25)),
        ("800tok", BudgetLimits(tokens=800)),
        ("500ktok", BudgetLimits(tokens=500_000)),
        ("1.5Mtok", BudgetLimits(tokens=1_500_000)),
        ("100steps", BudgetLimits(steps=100)),
        ("1step", BudgetLimits(steps=1)),
        ("90s", BudgetLimits(seconds=90)),
        ("30min", BudgetLimits(seconds=1800)),
        ("1.5h", BudgetLimits(seconds=5400)),
        ("2usd, 100steps,2h", BudgetLimits(usd=2, steps=100, seconds=7200)),
    ],
)
def test_budgets_are_parsed(text, limits):
    assert parse_budget(text) == limits


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2",
        "usd",
        "2eur",
        "-2usd",
        "0usd",
        "1.5steps",
        "0.0001tok",
        "2usd,",
        "2usd,3usd",
        "1e9usd",
        "nan usd",
        "30min,1h",
        "٣usd",
        "9" * 400 + "usd",
    ],
)
def test_an_invalid_budget_is_refused_with_examples(text):
    with pytest.raises(BadInputError, match="2usd, 500ktok"):
        parse_budget(text)


@given(st.text(max_size=30))
def test_any_text_parses_or_is_refused(text):
    try:
        limits = parse_budget(text)
    except BadInputError:
        return
    assert limits != BudgetLimits()


def used(tokens, cost_usd=None):
    return Usage(tokens, 0, cost_usd=cost_usd)


def test_the_usage_of_calls_adds_up():
    budget = Budget(limit_usd=1.0, spent=Usage(5, 5, 1, 0.5))

    with budget.call(used(9, 0.1)) as usage:
        usage.append(Usage(100, 20, 10, 0.25))

    assert budget.spent == Usage(105, 25, 11, 0.75)


def test_a_call_that_may_exceed_the_limit_is_refused():
    budget = Budget(limit_tokens=1000, spent=used(900))

    with budget.call(used(100)):
        pass
    with pytest.raises(BudgetSpentError, match="900 of 1000 tokens"), budget.call(used(101)):
        pass


def test_a_refusal_in_money_names_the_amounts():
    budget = Budget(limit_usd=2.0, spent=used(0, 1.99))

    with (
        pytest.raises(BudgetSpentError, match=r"1\.99 of 2 usd.*may take 0\.02"),
        budget.call(used(0, 0.02)),
    ):
        pass


def test_a_failed_call_releases_its_reservation():
    budget = Budget(limit_tokens=1000)

    for _ in range(3):
        with pytest.raises(ModelOutageError), budget.call(used(1000)):
            raise ModelOutageError("down")

    assert budget.spent == Usage()


def test_a_call_waits_for_the_reservations_of_others():
    budget = Budget(limit_tokens=1000)
    began, ended = [], threading.Event()

    def second():
        with budget.call(used(600)) as usage:
            began.append(budget.spent.input_tokens)
            usage.append(used(600))

    with ThreadPoolExecutor(1) as threads:
        with budget.call(used(600)) as usage:
            waiting = threads.submit(second)
            ended.wait(0.05)
            assert began == []
            usage.append(used(300))
        waiting.result(timeout=30)

    assert began == [300]
    assert budget.spent.input_tokens == 900


def test_all_calls_that_wait_are_refused_once_the_budget_is_used_up(eventually):
    budget, started, refused = Budget(limit_tokens=1000), [], []

    def waiting():
        started.append(True)
        try:
            with budget.call(used(600)):
                pass
        except BudgetSpentError:
            refused.append(True)

    threads = [threading.Thread(target=waiting, daemon=True) for _ in range(3)]
    with budget.call(used(600)) as usage:
        for thread in threads:
            thread.start()
        assert eventually(lambda: len(started) == 3)
        time.sleep(0.05)  # they wait right after
        usage.append(used(900))
    for thread in threads:
        thread.join(5.0)
    assert len(refused) == 3


@pytest.mark.parametrize(
    ("limits", "call"),
    [
        ({"limit_usd": 0.5}, Usage(10, 10, cost_usd=0.5)),
        ({"limit_tokens": 20}, Usage(10, 10, cost_usd=0.5)),
    ],
)
def test_a_call_may_use_the_budget_up_to_its_limit_and_no_further(limits, call):
    budget = Budget(**limits)
    with budget.call(call) as usage:
        usage.append(call)
    more = Usage(1, 0, cost_usd=0.001)
    with pytest.raises(BudgetSpentError), budget.call(more):
        pass


@given(st.lists(st.integers(1, 400), min_size=1, max_size=40))
def test_concurrent_calls_never_exceed_the_limit(sizes):
    budget = Budget(limit_tokens=1000)

    def call(size):
        try:
            with budget.call(used(size)) as usage:
                usage.append(used(size))
        except BudgetSpentError:
            return False
        return True

    with ThreadPoolExecutor(4) as threads:
        allowed = list(threads.map(call, sizes))

    spent = sum(size for size, went in zip(sizes, allowed, strict=True) if went)
    assert budget.spent.input_tokens == spent <= 1000
    if not all(allowed):
        refused = [size for size, went in zip(sizes, allowed, strict=True) if not went]
        assert spent + max(refused) > 1000


def test_a_budgeted_client_spends_the_cost_of_its_replies():
    budget = Budget(limit_usd=1.0)
    client = BudgetedClient(FakeClient("a", "b"), budget)

    client.ask(PROMPT)
    client.ask(PROMPT)

    assert budget.spent == Usage(200, 40, 0, 0.02)


def test_a_call_that_may_exceed_the_budget_never_begins():
    inner = FakeClient("a", "b", "c")
    client = BudgetedClient(inner, Budget(limit_tokens=4500))  # a first reply is taken for 4000
    long = Prompt((Message("user", "x" * 9000),))

    with pytest.raises(BudgetSpentError):
        client.ask(long)
    client.ask(PROMPT)
    client.ask(long)

    assert inner.asked == [PROMPT, long]


def test_the_expected_length_is_the_mean_of_the_replies_so_far():
    budget = Budget()
    for tokens in (100, 300):
        with budget.call(Usage()) as usage:
            usage.append(Usage(7, tokens))

    assert budget.expected_reply_tokens == 200


def test_replies_without_counts_are_estimated():
    budget = Budget(limit_usd=1.0)
    reply = Reply("y" * 900, MODEL)

    BudgetedClient(FakeClient(reply), budget).ask(PROMPT)

    assert (budget.spent.input_tokens, budget.spent.output_tokens) == (86, 257)  # as in a report
    assert budget.spent.cost_usd == list_price_usd(MODEL, 86, 257)


def test_replies_without_a_cost_count_at_the_list_price():
    budget = Budget(limit_usd=1.0)

    BudgetedClient(FakeClient(Reply("y", MODEL, usage=Usage(1000, 1000))), budget).ask(PROMPT)

    assert budget.spent.cost_usd == list_price_usd(MODEL, 1000, 1000)


@pytest.mark.parametrize("model", ["openai-compatible:gpt-5-mini", "vllm:x", "openai:unheard-of"])
def test_money_cannot_limit_a_model_without_a_price(model):
    inner = FakeClient("a", model=model)

    with pytest.raises(BadInputError, match=f"no price is known for {model}"):
        BudgetedClient(inner, Budget(limit_usd=1.0))

    assert inner.asked == []


def test_tokens_can_limit_a_model_without_a_price():
    budget = Budget(limit_tokens=100_000)
    reply = Reply("y", "vllm:x", usage=Usage(10, 10))

    BudgetedClient(FakeClient(reply, model="vllm:x"), budget).ask(PROMPT)

    assert budget.spent == Usage(10, 10, 0, None)


def test_closing_closes_the_client():
    inner = FakeClient()

    BudgetedClient(inner, Budget()).close()

    assert inner.closed
