"""Rules about Triton that are true: each with a program that fails as it says, and a remedy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adaexplore.core.lazy import lazy_names

if TYPE_CHECKING:
    from adaexplore.memory.check import CheckedRule as CheckedRule
    from adaexplore.memory.check import Checker as Checker
    from adaexplore.memory.describe import describe_gain as describe_gain
    from adaexplore.memory.describe import describe_platform as describe_platform
    from adaexplore.memory.files import BUNDLED as BUNDLED
    from adaexplore.memory.files import beliefs as beliefs
    from adaexplore.memory.files import load_memory as load_memory
    from adaexplore.memory.files import memory_path as memory_path
    from adaexplore.memory.files import memory_to_json as memory_to_json
    from adaexplore.memory.files import save_memory as save_memory
    from adaexplore.memory.merge import merge_memories as merge_memories
    from adaexplore.memory.techniques import technique_demands as technique_demands
    from adaexplore.memory.unchecked.statements import Saying as Saying
    from adaexplore.memory.unchecked.statements import SayingMatch as SayingMatch
    from adaexplore.memory.unchecked.statements import SayingStatus as SayingStatus
    from adaexplore.memory.unchecked.statements import find_rules as find_rules
    from adaexplore.memory.unchecked.statements import is_checkable as is_checkable
    from adaexplore.memory.unchecked.statements import read_sayings as read_sayings
    from adaexplore.memory.unchecked.statements import status_of as status_of
    from adaexplore.memory.unchecked.statements import supported_rules as supported_rules
else:
    __all__, __getattr__ = lazy_names(__name__, __file__)
