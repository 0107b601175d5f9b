"""The commands of the evaluation cache: cache size and cache clear."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from adaexplore.store.failures import Mode
    from adaexplore.store.verdicts import SqlVerdicts

app = typer.Typer(
    rich_markup_mode=None, help="Verdicts that runs share (--evaluation-cache): size and clear."
)
PlaceArg = Annotated[
    str,
    typer.Argument(
        metavar="[PLACE]", help="on (your own), a file, or postgresql://USER@HOST/NAME."
    ),
]
_DAY_S = 86_400.0


@app.command()
def size(place: PlaceArg = "on") -> None:
    """Print the number of verdicts, their age, and the machines that they are from."""
    verdicts = _opened(place, "read")
    found = verdicts.size()
    verdicts.close()
    print(f"verdicts: {found.verdicts}")
    if found.oldest is not None and found.latest is not None:
        days = [(time.time() - at) / _DAY_S for at in (found.oldest, found.latest)]
        print(f"{days[1]:.1f} to {days[0]:.1f} days old")
    for machine, count in found.machines.items():
        print(f"{count:>8} of {machine}")


@app.command()
def clear(
    place: PlaceArg = "on",
    days: Annotated[float, typer.Option(min=0, max=1e6, help="Only those older than this.")] = 0.0,
) -> None:
    """Forget verdicts, all by default."""
    _opened(place, "read").close()  # the database of another program stays as it is
    verdicts = _opened(place, "write")
    print(f"verdicts forgotten: {verdicts.clear(days * _DAY_S)}")
    verdicts.close()


def _opened(place: str, mode: Mode) -> SqlVerdicts:
    from adaexplore.core.errors import BadInputError
    from adaexplore.core.settings.configure import make_config
    from adaexplore.run.verdicts.take_over import place_of_cache
    from adaexplore.store.verdicts import open_verdicts

    chosen = make_config({"evaluation_cache": place}).evaluation_cache
    if not chosen:
        raise BadInputError(f"{place!r} is no place of a cache; write on, a file or a URL")
    return open_verdicts(place_of_cache(chosen), mode)
