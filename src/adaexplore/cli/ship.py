"""The commands of packages made of winners: ship, check."""

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
    hub: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Also write a repository for Hugging Face's kernels: a new folder."
        ),
    ] = None,
) -> None:
    """Make an installable package of the winner, which needs torch and not adaexplore.

    `apply(model)` puts the kernel into a model, `undo(model)` takes it out. What the kernel was not
    verified for runs the original. The package has its tests, its benchmark and the verdict.
    """
    from rich.console import Console

    from adaexplore.cli.terminal.printing import stages
    from adaexplore.core.text.units import plural
    from adaexplore.store.directory import require_run

    if not run.exists():
        require_run(run)
    with stages(Console(stderr=True)) as listen:
        listen("importing torch")
        from adaexplore.ship.ship import ship

        listen("running the original and trying the kernel on every workload; may take a minute")
        shipped = ship(run, output, name=name, license_name=license_name, hub=hub)
    spec = shipped.spec
    print(
        f"{shipped.folder}: {spec.name}, a kernel for {spec.class_name}; "
        f"tried on {plural(len(spec.workloads), 'workload')} and "
        f"{plural(len(spec.state), 'changed weight')}, "
        f"error {shipped.trial.error:.1e}, "
        f"{shipped.trial.speedup:.2f}x over the faster of eager and torch.compile"
    )
    print(f"pip install {shipped.folder}, then: import {spec.name}; {spec.name}.apply(model)")


@app.command()
def check(
    package: Annotated[
        Path, typer.Argument(metavar="PACKAGE", help="The folder of a package of adaexplore ship.")
    ],
    tolerance: Annotated[
        float,
        typer.Option(min=0, max=1, help="The part of the shipped speedup that may be lost."),
    ] = 0.1,
    limit: Annotated[
        float,
        typer.Option(
            "--limit-s", min=1, help="Seconds after which a package without a result has failed."
        ),
    ] = 1800.0,
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the results for CI, as JUnit XML.")
    ] = None,
) -> None:
    """Verify and time a package again, with the torch, the Triton and the device of today.

    Exit code 1 if an output is wrong, a speedup is lost, or the kernel does not run.
    """
    from adaexplore.core.errors import BadInputError
    from adaexplore.core.files import require_writable

    if not package.is_dir():
        raise BadInputError(f"{package}: no such folder; give a package of adaexplore ship")
    if junit:
        require_writable(junit)
    from adaexplore.ship.check import check
    from adaexplore.ship.junit import write_junit

    checked = check(package, tolerance=tolerance, limit_s=limit)
    if junit:
        write_junit(checked, junit)
    print(checked)
    raise typer.Exit(0 if checked.is_good else 1)
