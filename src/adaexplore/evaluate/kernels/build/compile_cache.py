"""Folder of compiled baselines: `torch.compile` compiles each only once."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

from adaexplore.sandbox.walls import landlock


def share_compiled(home: Path | None = None) -> Path | None:
    """Has this process use the user's own cache, which outlives it; None where that is not safe.

    What lies there is loaded and run, so it must be out of candidates' reach: where the kernel
    keeps them from the files of the user (Landlock), and nowhere else. Entries are found by the
    graph, the device and the versions of all that made them; removing the folder is harmless.
    """
    if not landlock.version():
        return None
    home = home or Path(pwd.getpwuid(os.getuid()).pw_dir)  # HOME is a worker's own folder
    folder = home / ".cache" / "adaexplore" / "compiled"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return None
    if folder.stat().st_uid != os.getuid() or folder.stat().st_mode & 0o022:
        return None
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder / "inductor")
    os.environ["TRITON_CACHE_DIR"] = str(folder / "triton")
    return folder
