"""A package in the layout of a repository for Hugging Face's `kernels`."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
from pathlib import Path

from adaexplore.core.errors import BadInputError
from adaexplore.runtime.spec import Spec


def refuse_compiled(source: str) -> None:
    """Raise `BadInputError` for a kernel that is compiled from C++ when it is first used."""
    if "cpp_extension" in source:
        raise BadInputError(
            "--hub: the winner is compiled where it is used, which kernels of the Hub must not be; "
            "ship a winner in Triton, or build this one with kernel-builder"
        )


def write_hub(package: Path, spec: Spec, folder: Path, license_name: str) -> None:
    """Write the package in a folder as a repository of the Hub, to a new folder.

    Its Python files need no compiler, so there is one build for the kind of device.
    """
    hub_name = spec.name.replace("_", "-")
    build = folder / "build" / f"torch-{spec.device}"
    try:
        shutil.copytree(package / "src" / spec.name, build)
        shutil.copy(package / "verdicts.json", folder)
    except OSError as error:
        raise BadInputError(f"cannot write {folder}: {error.strerror}") from error
    readme = (package / "README.md").read_text(encoding="utf-8")
    identifier = _license_of_hub(license_name)
    header = (
        f"---\nlibrary_name: kernels\nlicense: {identifier}\n---\n"
        f'Load it by `kernel = kernels.get_kernel("OWNER/{hub_name}", version=1)` instead of an '
        "installation and an import.\n\n"
    )
    (folder / "README.md").write_text(header + readme, encoding="utf-8")
    metadata = {
        "id": spec.namespace,
        "name": hub_name,
        "version": 1,
        "license": identifier,
        "python-depends": [],
        "backend": _backend(spec),
        "digest": {"algorithm": "sha256", "files": _digests(build)},
    }
    (build / "metadata.json").write_text(json.dumps(metadata, indent=2) + "\n", encoding="utf-8")


def _backend(spec: Spec) -> dict[str, object]:
    return {"type": spec.device} | ({"archs": [spec.gpu]} if spec.gpu else {})


def _license_of_hub(name: str) -> str:
    return "other" if name.startswith("LicenseRef") else name.lower()


def _digests(folder: Path) -> dict[str, str]:
    return {
        str(file.relative_to(folder)): _digest(file)
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def _digest(file: Path) -> str:
    return base64.b64encode(hashlib.sha256(file.read_bytes()).digest()).decode()
