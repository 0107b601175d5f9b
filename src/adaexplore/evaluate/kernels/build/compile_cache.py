"""Folders of compiled code that outlive a process, so that `torch.compile` compiles once."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

from adaexplore.core.files import can_make_folders
from adaexplore.sandbox.walls import landlock


def share_compiled(home: Path | None = None) -> Path | None:
    """Make this process use the user's own cache of compiled baselines; None where unsafe.

    The key of an entry holds the graph, the device and the versions of the compilers. The folder
    can be removed without harm. None too in a process that cannot write there, as a service's
    reference: `torch.compile` would raise an error in it, and the baseline would be lost.
    """
    folder = own_folder("compiled", home)
    if folder is None or not can_make_folders(folder):
        return None
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder / "inductor")
    os.environ["TRITON_CACHE_DIR"] = str(folder / "triton")
    return folder


def own_folder(name: str, home: Path | None = None) -> Path | None:
    """Return a folder of the user's cache that no candidate can write to; None where unsafe.

    The content of the folder is loaded and run. So the folder is used only where the operating
    system keeps candidates from the user's files (Landlock) and no other user may write to it.
    """
    if not landlock.version():
        return None
    home = home or Path(pwd.getpwuid(os.getuid()).pw_dir)  # HOME is a worker's own folder
    folder = home / ".cache" / "adaexplore" / name
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return None
    if folder.stat().st_uid != os.getuid() or folder.stat().st_mode & 0o022:
        return None
    return folder
