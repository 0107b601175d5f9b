from types import SimpleNamespace

from stored_runs import sample_run

from adaexplore.store.rows import run_record, run_values


def test_a_run_from_before_there_was_a_choice_of_policy_goes_on_by_uct():
    values = run_values(sample_run())
    assert run_record(SimpleNamespace(_mapping=values), {}).settings.policy == "auto"
    del values["settings"]["policy"]
    assert run_record(SimpleNamespace(_mapping=values), {}).settings.policy == "uct"
