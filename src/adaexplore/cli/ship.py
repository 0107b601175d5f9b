"""The command that makes a package of a run's winner: ship."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adaexplore.cli.options import RunArg

app = typer.Typer(rich_markup_mode=None)


@app.command()
def ship(
    run: RunArg,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="DIR", help="The package: a new folder.")
    ],
    name: Annotated[
        str,
        typer.Option(help="The name to import it by. Default: the problem's, and _kernel."),
    ] = "",
    license_name: Annotated[
        str,
        typer.Option(
            "--license", metavar="SPDX", help="The licence of your module, for pyproject.toml."
        ),
    ] = "LicenseRef-Proprietary",
) -> None:
    """Make an installable package of the winner, which needs torch and not adaexplore.

    `apply(model)` puts the kernel into a model, `undo(model)` takes it out. What the kernel was not
    verified for runs the original. The package has its tests, its benchmark and the verdict.
    """
    from adaexplore.ship.ship import ship

    shipped = ship(run, output, name=name, license_name=license_name)
    spec = shipped.spec
    print(
        f"{shipped.folder}: {spec.name}, a kernel for {spec.class_name}; "
        f"tried on {len(spec.workloads)} workloads and {len(spec.state)} changed weights, "
        f"error {shipped.error:.1e}"
    )
    print(f"pip install {shipped.folder}, then: import {spec.name}; {spec.name}.apply(model)")
