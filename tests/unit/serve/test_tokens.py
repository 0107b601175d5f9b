"""Tokens: made, hashed, rotated and revoked while the service runs."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import select

from adaexplore.cli import main
from adaexplore.core.errors import BadInputError
from adaexplore.serve.accounts import (
    Account,
    accounts,
    add_token,
    find_account,
    revoke_token,
    rotate_token,
)
from adaexplore.serve.tables import open_folder, tokens


def id_of(token: str) -> str:
    return token.split("_")[1]


def test_the_database_has_no_secret(service):
    token = service.new_token("carol")
    secret = token.split("_", 2)[2]
    files = [file for file in service.folder.iterdir() if file.is_file()]
    assert files
    assert not any(secret.encode() in file.read_bytes() for file in files)
    with service.engine.begin() as connection:
        assert secret not in str(connection.execute(select(tokens)).all())
    assert (service.folder.stat().st_mode & 0o777) == 0o700


def test_a_token_is_rotated_without_a_restart(service):
    old = service.new_token("dave", most_jobs=7)
    assert service.ask("GET", "/v1/jobs", old).status_code == 200
    new = rotate_token(service.engine, id_of(old), grace_s=60)
    assert {service.ask("GET", "/v1/jobs", token).status_code for token in (old, new)} == {200}
    again = rotate_token(service.engine, id_of(new), grace_s=0)
    assert service.ask("GET", "/v1/jobs", new).status_code == 401
    account = find_account(service.engine, again)
    assert (account.user, account.most_jobs, account.expires_at) == ("dave", 7, None)


def test_a_revoked_token_ends_at_once_and_alone(service):
    one, other = service.new_token("erin"), service.new_token("erin")
    revoke_token(service.engine, id_of(one))
    assert service.ask("GET", "/v1/jobs", one).status_code == 401
    assert service.ask("GET", "/v1/jobs", other).status_code == 200


def test_unusable_accounts_are_refused(service):
    for user in ("", "a b", "../x", "x" * 65, "a\n"):
        with pytest.raises(BadInputError, match="write letters, digits"):
            add_token(service.engine, Account(user, ()))
    with pytest.raises(BadInputError, match="scope 'root': there are evaluate, search"):
        add_token(service.engine, Account("frank", ("root",)))
    with pytest.raises(BadInputError, match="no such token"):
        revoke_token(service.engine, "0" * 16)


@pytest.fixture
def adaexplore(monkeypatch, capsys):
    """Make a function that runs the command line here; it returns output, errors and exit code."""

    def adaexplore(*words: str) -> tuple[str, str, int]:
        monkeypatch.setattr(sys, "argv", ["adaexplore", *words])
        with pytest.raises(SystemExit) as end:
            main()
        return *capsys.readouterr(), end.value.code

    return adaexplore


def test_the_command_line_makes_and_lists_tokens(tmp_path, adaexplore):
    where = ("--folder", str(tmp_path / "s"))
    token, _, _ = adaexplore("serve", "token", "add", "gina", "--scope", "evaluate", *where)
    listed, _, _ = adaexplore("serve", "token", "list", *where)
    assert id_of(token) in listed
    assert "gina" in listed
    assert token.strip().split("_", 2)[2] not in listed
    new, _, _ = adaexplore("serve", "token", "rotate", id_of(token), "--grace-h", "0", *where)
    engine = open_folder(tmp_path / "s")
    assert find_account(engine, token.strip()) is None
    assert find_account(engine, new.strip()).scopes == ("evaluate",)
    adaexplore("serve", "token", "revoke", id_of(new), *where)
    assert find_account(engine, new.strip()) is None
    assert len(accounts(engine)) == 2
    engine.dispose()


@pytest.mark.parametrize("words", [["list"], ["revoke", "x"], ["rotate", "x"]])
def test_a_folder_without_a_service_is_not_made(tmp_path, adaexplore, words):
    _, errors, code = adaexplore("serve", "token", *words, "--folder", str(tmp_path / "s"))
    assert (code, errors.count("\n")) == (2, 1)
    assert "adaexplore serve token add USER" in errors
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--host", "0.0.0.0"], "tokens would cross the network in the clear"),
        (["--tls-certificate", "c.pem"], "--tls-certificate and --tls-key go together"),
        (["--store", "postgresql://a:b@c/d"], "leave the password to PGPASSWORD"),
    ],
)
def test_a_service_that_would_be_open_is_not_started(tmp_path, adaexplore, options, message):
    _, errors, code = adaexplore("serve", "--folder", str(tmp_path / "s"), *options)
    assert message in errors
    assert code == 2


@pytest.mark.parametrize(
    "words",
    [
        ["--days", "nan"],  # a database keeps it as "never"
        ["--days", "-1"],
        ["--days", "inf"],
        ["--jobs", str(2**31)],
        ["--candidates", str(2**70)],
    ],
)
def test_a_token_with_an_amount_that_is_none_is_refused(tmp_path, adaexplore, words):
    words = ["serve", "token", "add", "hal", *words, "--folder", str(tmp_path / "s")]
    out, errors, code = adaexplore(*words)
    assert (out, code, errors.count("\n")) == ("", 2, 1)
    assert f"'{words[4]}'" in errors


@pytest.mark.parametrize(
    "words",
    [
        ["--keep-days", "-1"],  # would delete every job that has ended
        ["--warm-gb", "inf"],
        ["--timeout-s", "nan"],
        ["--memory-gb", "0"],
        ["--parallel", "0"],
    ],
)
def test_a_service_with_a_limit_that_is_none_is_not_started(tmp_path, adaexplore, words):
    _, errors, code = adaexplore("serve", "--folder", str(tmp_path / "s"), *words)
    assert (code, errors.count("\n")) == (2, 1)
    assert words[0].strip("-").replace("-", "_") in errors.replace("-", "_")
    assert list(tmp_path.iterdir()) == []


def test_several_that_open_a_new_folder_at_once_all_can(tmp_path):
    """Such as a service that starts, and the commands that make its first tokens."""

    def begin(folder):
        together.wait()
        open_folder(folder).dispose()

    together = threading.Barrier(4, timeout=20)
    with ThreadPoolExecutor(4) as threads:
        for number in range(60):
            list(threads.map(begin, [tmp_path / f"{number}"] * 4))
