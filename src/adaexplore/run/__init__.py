"""The application: processes, searches, campaigns and studies, without printing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adaexplore.core.lazy import lazy_names

if TYPE_CHECKING:
    from adaexplore.run.api import judge as judge
    from adaexplore.run.asks.ask_files import take_replies as take_replies
    from adaexplore.run.asks.ask_files import write_prompts as write_prompts
    from adaexplore.run.asks.ledger import Ledger as Ledger
    from adaexplore.run.bench.order import place_task as place_task
    from adaexplore.run.campaign.file import campaign_order as campaign_order
    from adaexplore.run.campaign.recorded import recorded as recorded
    from adaexplore.run.campaign.turns import Campaign as Campaign
    from adaexplore.run.campaign.turns import Progress as Progress
    from adaexplore.run.campaign.turns import Rules as Rules
    from adaexplore.run.cluster.remote import RayDevice as RayDevice
    from adaexplore.run.learning.adaptation import attempt_config as attempt_config
    from adaexplore.run.learning.machine import Machine as Machine
    from adaexplore.run.learning.machine import default_parallel as default_parallel
    from adaexplore.run.learning.rule_checks import check_rules as check_rules
    from adaexplore.run.outcome.deliver import delivery_of_judged as delivery_of_judged
    from adaexplore.run.outcome.results import summary_of as summary_of
    from adaexplore.run.processes import PRELOAD as PRELOAD
    from adaexplore.run.processes import PRELOAD_OFFLINE as PRELOAD_OFFLINE
    from adaexplore.run.processes import start_server as start_server
    from adaexplore.run.proposers import Plan as Plan
    from adaexplore.run.proposers import make_plan as make_plan
    from adaexplore.run.proposers import model_proposers as model_proposers
    from adaexplore.run.proposers import open_clients as open_clients
    from adaexplore.run.proposers import with_memory as with_memory
    from adaexplore.run.recall import recalling as recalling
    from adaexplore.run.records import record_of as record_of
    from adaexplore.run.records import settled as settled
    from adaexplore.run.search import Search as Search
    from adaexplore.run.session import INTERRUPTED as INTERRUPTED
    from adaexplore.run.session import Session as Session
    from adaexplore.run.session import open_session as open_session
    from adaexplore.run.session import session_on as session_on
    from adaexplore.run.workers import map_parallel as map_parallel
else:
    __all__, __getattr__ = lazy_names(__name__, __file__)
