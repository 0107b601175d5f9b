"""The draw of the record."""

import tomllib

import draw_record

NAMES = {
    level: {n: f"{n}_A_name_of_level_{level}_that_is_long" for n in range(40)}
    for level in (1, 2, 3)
}
TEXTS = "row 2/7_cut\n| 9_A_name_of_level_2_that_i | 3.1x |"


def test_what_results_or_orders_name_is_never_drawn():
    used = draw_record.used_before(NAMES, TEXTS, {1: {4, 5}})
    assert used == {1: {4, 5}, 2: {7, 9, 26}, 3: {15, 20, 29, 30, 39}}
    for seed in range(20):
        drawn = draw_record.draw(NAMES, used, seed=seed)
        assert [len(set(numbers)) for numbers in drawn.values()] == [20, 20, 20]
        assert not any(set(numbers) & used[level] for level, numbers in drawn.items())


def test_a_seed_draws_the_same_and_another_draws_others():
    assert draw_record.draw(NAMES, {}, seed=1) == draw_record.draw(NAMES, {}, seed=1)
    assert draw_record.draw(NAMES, {}, seed=1) != draw_record.draw(NAMES, {}, seed=2)


def test_the_campaign_has_every_problem_once_in_its_class():
    drawn = draw_record.draw(NAMES, {})
    strict, other, *modules = tomllib.loads(draw_record.written(drawn))["problem"]
    assert (strict["precision"], other["precision"]) == ("fp32", "tf32")
    for level, first, rest in zip((1, 2, 3), strict["problems"], other["problems"], strict=True):
        of_level = [text.removeprefix(f"{level} ").split(",") for text in (first, rest)]
        assert [len(numbers) for numbers in of_level] == [7, 13]
        assert sorted(int(n) for numbers in of_level for n in numbers) == sorted(drawn[level])
    assert len(modules) == 10
    assert {module["precision"] for module in modules} == {"half"}
