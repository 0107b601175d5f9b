"""A PostgreSQL server of its own: a cluster in a temporary folder, reached by a Unix socket.

It runs as an unprivileged user, since PostgreSQL refuses root.
"""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

_USERS = ("postgres", "nobody")
_OPTIONS = ("-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=40")


def binaries() -> Path | None:
    """The folder of the server's programs, None where it is not installed."""
    found = shutil.which("initdb")
    places = [Path(found).resolve().parent] if found else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if (place / "postgres").is_file()), None)


class PostgresServer:
    def __init__(self, programs: Path) -> None:
        self._programs = programs
        self._folder = Path(tempfile.mkdtemp(prefix="pg-"))
        self._user: dict[str, int] = {}
        if os.getuid() == 0:
            account = next(pwd.getpwnam(name) for name in _USERS if _exists(name))
            self._user = {"user": account.pw_uid, "group": account.pw_gid}
            os.chown(self._folder, account.pw_uid, account.pw_gid)
        self._data = self._folder / "data"
        self._call("initdb", "-D", str(self._data), "-U", "test", "-A", "trust", "--no-sync")
        self.start()
        self._psql("CREATE DATABASE runs", "postgres")

    @property
    def url(self) -> str:
        return f"postgresql://test@/runs?host={self._folder}"

    def start(self) -> None:
        deadline = time.monotonic() + 30.0
        self._spawn()
        while not self._is_ready():
            assert time.monotonic() < deadline, (self._folder / "log").read_text()
            time.sleep(0.05)
            if self._process.poll() is not None:  # what a kill left still holds its memory
                self._spawn()

    def _spawn(self) -> None:
        arguments = ["-D", str(self._data), "-k", str(self._folder), *_OPTIONS]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", *arguments],
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd=self._folder,
                **self._user,
            )

    def kill(self) -> None:
        """End every process of the server at once, as a power cut would."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def new_database(self, name: str) -> str:
        """The URL of an empty database."""
        self._psql(f"CREATE DATABASE {name}", "postgres")
        return self.url.replace("/runs?", f"/{name}?")

    def close(self) -> None:
        self.kill()
        shutil.rmtree(self._folder)

    def _is_ready(self) -> bool:
        try:
            self._call("pg_isready", "-h", str(self._folder), "-q")
        except subprocess.CalledProcessError:
            return False
        return True

    def _psql(self, statement: str, database: str) -> None:
        self._call("psql", "-h", str(self._folder), "-U", "test", "-qc", statement, database)

    def _call(self, program: str, *arguments: str) -> None:
        command = [self._programs / program, *arguments]
        subprocess.run(command, check=True, capture_output=True, cwd=self._folder, **self._user)


def _exists(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True
