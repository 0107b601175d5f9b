"""Language models: one client, whatever provider is behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adaexplore.core.lazy import lazy_names

if TYPE_CHECKING:
    from adaexplore.llm.code import ReplyError as ReplyError
    from adaexplore.llm.code import extract_code as extract_code
    from adaexplore.llm.templating import Templates as Templates
else:
    __all__, __getattr__ = lazy_names(__name__, __file__)
