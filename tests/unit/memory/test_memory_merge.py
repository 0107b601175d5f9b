import dataclasses

from test_memory_files import RULE

from adaexplore.core.rule import Platform, Signature
from adaexplore.memory.files import save_memory
from adaexplore.memory.merge import merge_memories
from adaexplore.memory.update import update

OTHER = Signature("runtime_error", "ValueError", "other", "another cause")
A, B = Platform("3.6.0", "sm_90"), Platform("3.9.0", "sm_90")
BASE = dataclasses.replace(RULE, holds=(A,), gone=(), tasks=("t1",), support=2, topics=("x",))


def with_(**changes):
    return dataclasses.replace(BASE, **changes)


class TestMerged:
    def test_places_tasks_and_topics_of_both_are_kept(self):
        [rule] = merge_memories([BASE], [with_(holds=(B,), tasks=("t2", "t3"), topics=("y",))])
        assert rule.holds == (A, B)
        assert rule.tasks == ("t1", "t2", "t3")
        assert rule.topics == ("x", "y")
        assert rule.support == 3

    def test_what_was_seen_gone_later_is_gone(self):
        [rule] = merge_memories([BASE], [with_(holds=(), gone=(A,))])
        assert (rule.holds, rule.gone) == ((), (A,))

    def test_what_came_back_holds(self):
        [rule] = merge_memories([with_(holds=(), gone=(A,))], [BASE])
        assert (rule.holds, rule.gone) == ((A,), ())

    def test_the_same_rule_under_another_name_is_one(self):
        other = with_(name="power", statement="blocks have  no `**`: Multiply.")
        assert [rule.name for rule in merge_memories([BASE], [other])] == [BASE.name]

    def test_another_statement_is_another_rule(self):
        other = with_(name="power", statement="Something else.")
        assert len(merge_memories([BASE], [other])) == 2

    def test_merging_twice_changes_nothing(self):
        other = with_(holds=(B,), tasks=("t2",))
        once = merge_memories([BASE], [other])
        assert merge_memories(once, [other]) == once

    def test_lift_is_the_last_that_was_measured(self):
        [rule] = merge_memories([with_(lift=0.1, lift_tries=7)], [with_(lift=None, lift_tries=0)])
        assert (rule.lift, rule.lift_tries) == (0.1, 7)


class TestOtherPrograms:
    """A rule that `memory check` has rewritten for another version of Triton."""

    AFTER = with_(name=f"{BASE.name}-3-9-0", witness="other", remedy="other", holds=(B,))

    def test_two_versions_in_one_memory_stay_two(self):
        assert merge_memories([BASE, self.AFTER]) == [BASE, self.AFTER]
        assert merge_memories([BASE, self.AFTER], [BASE, self.AFTER]) == [BASE, self.AFTER]

    def test_two_versions_in_two_memories_stay_two(self):
        assert merge_memories([BASE], [self.AFTER]) == [BASE, self.AFTER]
        assert merge_memories([self.AFTER], [BASE]) == [self.AFTER, BASE]

    def test_an_update_leaves_them_alone(self, tmp_path):
        save_memory(tmp_path / "memory.toml", [BASE, self.AFTER])
        other = with_(name="another", statement="Something else.", signature=OTHER)
        found = update(tmp_path / "memory.toml", [other])
        assert {rule.name: rule.holds for rule in found} == {
            BASE.name: (A,),
            self.AFTER.name: (B,),
            "another": (A,),
        }

    def test_no_place_is_told_of_programs_that_were_not_seen_there(self):
        [rule] = merge_memories([BASE], [with_(remedy="better", holds=(B,))])
        assert (rule.remedy, rule.holds) == ("better", (B,))

    def test_programs_that_hold_in_more_places_stay(self):
        wide = with_(holds=(A, B), tasks=("t1",))
        [rule] = merge_memories([wide], [with_(remedy="other", holds=(B,), tasks=("t2",))])
        assert (rule.remedy, rule.holds, rule.tasks) == (BASE.remedy, (A, B), ("t1", "t2"))
