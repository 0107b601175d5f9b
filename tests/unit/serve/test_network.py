"""A real `adaexplore serve` with TLS and behind a proxy, and clients that are not what they say."""

import json
import os
import re
import ssl
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from proxy import ADDRESS, proxying
from services import EVERYTHING, PROBLEM, RIGHT

from adaexplore.cli import main
from adaexplore.core.errors import BadInputError, InfrastructureError
from adaexplore.serve.accounts import add_token
from adaexplore.serve.client import Client, problem_of
from adaexplore.serve.tables import open_folder

MAIN = (sys.executable, "-P", "-m", "adaexplore")
LEFT_OUT = ("SSL_CERT_FILE", "SSL_CERT_DIR")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Certificates for 127.0.0.1 that sign themselves, `one.pem` and `two.pem`, and their keys."""
    folder = tmp_path_factory.mktemp("tls")
    for name in ("one", "two"):
        words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
        subject = ["-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1"]
        target = ["-keyout", folder / f"{name}.key", "-out", folder / f"{name}.pem"]
        subprocess.run(
            ["openssl", *words.split(), *subject, *target], check=True, capture_output=True
        )
    words = ["-in", folder / "one.key", "-aes256", "-passout", "pass:word"]
    locked = ["openssl", "pkey", *words, "-out", folder / "locked.key"]
    subprocess.run(locked, check=True, capture_output=True)
    return folder


@contextmanager
def serving(folder: Path, *words):
    """Start the command; yield the URL that it prints and a token of alice."""
    engine = open_folder(folder)
    token = add_token(engine, EVERYTHING)
    engine.dispose()
    command = [*MAIN, "serve", "--folder", folder, "--port", 0, "--jobs", 0, *words]
    with subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline()
        yield re.fullmatch(r"serving .* at (https?://127\.0\.0\.1:\d+)\n", line)[1], token
        process.terminate()


@pytest.fixture(scope="module")
def secure(files, tmp_path_factory):
    words = ["--tls-certificate", files / "one.pem", "--tls-key", files / "one.key"]
    with serving(tmp_path_factory.mktemp("secure"), *words) as given:
        yield given


@pytest.fixture
def trusted(files, monkeypatch):
    """Trust the first certificate."""
    monkeypatch.setenv("SSL_CERT_FILE", str(files / "one.pem"))


@pytest.fixture
def complaint(monkeypatch, capsys):
    """Make a function that runs a command with bad input and returns its one line."""

    def complaint(*words) -> str:
        monkeypatch.setattr(sys, "argv", ["adaexplore", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            main()
        said = capsys.readouterr()
        [line] = said.err.splitlines()
        assert (end.value.code, said.out) == (2, "")
        return line

    return complaint


def test_a_client_that_trusts_the_certificate_works(secure, trusted):
    url, token = secure
    with Client(url, token, patience_s=5.0) as client:
        assert client.health().queued == 0
        job = client.submit_search(problem_of("p", PROBLEM), {"steps": 3})
        assert client.jobs() == [job]
        assert client.cancel(job.id).state == "cancelled"
        assert [event.text for event in client.events(job.id)] == ["queued", "cancelled"]


def test_the_certificate_of_another_is_refused_at_once(secure, files, monkeypatch, file, complaint):
    url, token = secure
    for name in LEFT_OUT:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(BadInputError, match="its certificate is not trusted"):
        Client(url, token, patience_s=1e9).health()
    monkeypatch.setenv("SSL_CERT_FILE", str(files / "two.pem"))
    monkeypatch.setenv("ADAEXPLORE_TOKEN", token)
    problem, candidate = file("p.py", PROBLEM), file("c.py", RIGHT)
    line = complaint("evaluate", problem, candidate, "--server", url)
    assert f"{url}: its certificate is not trusted (self-signed certificate" in line
    assert "SSL_CERT_FILE" in line


def test_a_client_without_tls_gets_nothing(secure):
    url, token = secure
    with pytest.raises(InfrastructureError, match="cannot be reached"):
        Client(url.replace("https", "http"), token, patience_s=0.0).health()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--tls-certificate one.pem --tls-key two.key", "the key belongs to another certificate"),
        ("--tls-certificate one.pem --tls-key one.pem", "one of them is not in PEM form"),
        ("--tls-certificate one.pem --tls-key locked.key", "it has a passphrase"),
        ("--tls-certificate none.pem --tls-key one.key", "none.pem: No such file or directory"),
        ("--tls-certificate one.pem", "--tls-certificate and --tls-key go together"),
        ("--host 0.0.0.0", "tokens would cross the network in the clear"),
        ("--host 192.0.2.1 --proxy 127.0.0.1", "name another --host"),
        ("--proxy proxy.example.org", "write that of the proxy"),
        ("--proxy *", "write that of the proxy"),
        ("--proxy 10.0.0.1/24", "has host bits set"),
        ("--proxy ,", "write that of the proxy"),
    ],
)
def test_options_that_do_not_fit_are_refused_in_one_line(
    files, tmp_path, monkeypatch, complaint, words, message
):
    monkeypatch.chdir(files)
    folder = tmp_path / "serve"
    words = ["--trust-users", "--folder", folder, "--port", 0, *words.split()]
    assert message in complaint("serve", *words)


def test_a_port_that_is_taken_is_one_clear_line(secure, tmp_path, complaint):
    words = ["--trust-users", "--folder", tmp_path, "--port", secure[0].rpartition(":")[2]]
    assert complaint("serve", *words).endswith("Address already in use; name another --port")


@pytest.fixture(scope="module")
def behind(files, tmp_path_factory):
    """A service that believes a proxy: its folder, its URL, that of the proxy, and a token."""
    folder = tmp_path_factory.mktemp("behind")
    with (
        serving(folder, "--proxy", ADDRESS) as (url, token),
        proxying(url, files / "one.pem", files / "one.key") as front,
    ):
        yield folder, url, front, token


@pytest.fixture
def seen(behind):
    """Make a function that returns the addresses in the audit log since the last call."""
    file, read = behind[0] / "audit.jsonl", len((behind[0] / "audit.jsonl").read_text())

    def seen() -> set[str]:
        nonlocal read
        text = file.read_text()
        new, read = text[read:], len(text)
        return {json.loads(line)["address"] for line in new.splitlines()}

    return seen


def client_at(address: str, url: str, context) -> httpx.Client:
    transport = httpx.HTTPTransport(local_address=address, verify=context)
    return httpx.Client(base_url=url, transport=transport, timeout=20)


def test_a_job_through_the_proxy_is_the_clients(behind, trusted, seen):
    _, _, front, token = behind
    with Client(front, token, patience_s=5.0) as client:
        job = client.submit_evaluation(problem_of("p", PROBLEM), [RIGHT], {})
        client.cancel(job.id)
        assert [event.text for event in client.events(job.id)] == ["queued", "cancelled"]
    assert seen() == {"127.0.0.1"}


def test_only_the_proxy_is_believed(behind, files, seen):
    """The proxy appends the address it sees; what the client wrote before that counts nothing."""
    _, url, front, _ = behind
    forged = {"X-Forwarded-For": "203.0.113.7", "X-Forwarded-Proto": "https"}
    context = ssl.create_default_context(cafile=files / "one.pem")
    with client_at("127.0.0.3", front, context) as client:
        client.get("/v1/jobs", headers=forged)
        assert seen() == {"127.0.0.3"}
    with client_at("127.0.0.4", url, True) as client:
        client.get("/v1/jobs", headers=forged)
        client.get("/v1/jobs", headers={"Forwarded": "for=203.0.113.7", "X-Real-IP": "203.0.113.7"})
        assert seen() == {"127.0.0.4"}


def test_wrong_tokens_are_counted_for_each_client(behind, files, seen):
    _, url, front, _ = behind
    context = ssl.create_default_context(cafile=files / "one.pem")
    wrong = {"Authorization": "Bearer ada_guess"}
    with client_at("127.0.0.5", front, context) as client:
        codes = [client.get("/v1/jobs", headers=wrong).status_code for _ in range(32)]
    assert codes == [401] * 30 + [429] * 2
    with client_at("127.0.0.6", front, context) as client:
        assert client.get("/v1/jobs", headers=wrong).status_code == 401
    with client_at("127.0.0.7", url, True) as client:  # a new address for every guess
        forged = [wrong | {"X-Forwarded-For": f"203.0.113.{number}"} for number in range(32)]
        codes = [client.get("/v1/jobs", headers=each).status_code for each in forged]
    assert codes == [401] * 30 + [429] * 2


def test_a_login_through_the_proxy_has_a_cookie_for_tls_alone(behind, files):
    _, url, front, token = behind
    context = ssl.create_default_context(cafile=files / "one.pem")
    with client_at("127.0.0.1", front, context) as client:
        there = log_in(client, front, token)
        assert there.status_code == 303
        assert there.headers["location"] == "/"
        assert "Secure" in there.headers["set-cookie"]
    with client_at("127.0.0.1", url, True) as client:
        forged = {"X-Forwarded-Proto": "https"}
        assert "Secure" not in log_in(client, url, token, **forged).headers["set-cookie"]


def log_in(client: httpx.Client, origin: str, token: str, **headers: str) -> httpx.Response:
    page = client.get("/login").text
    csrf = re.search(r'name="csrf" value="([0-9a-f]{64})"', page)[1]
    fields = {"csrf": csrf, "token": token}
    return client.post("/login", data=fields, headers={"Origin": origin, **headers})


def test_a_service_in_a_folder_that_candidates_may_read_does_not_start(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    words = ("serve", "--folder", tmp_path / "s", "--port", "0")
    ended = subprocess.run([*MAIN, *words], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, len(ended.stderr.splitlines())) == (2, "", 1)
    assert f"lies in {tmp_path}, which Python imports from" in ended.stderr
    assert not (tmp_path / "s").exists()


def test_a_service_whose_evaluation_cache_cannot_be_opened_does_not_start(tmp_path):
    place = tmp_path / "folder"
    place.mkdir()
    words = ("serve", "--folder", tmp_path / "s", "--port", "0", "--trust-users")
    ended = subprocess.run(
        [*MAIN, *words, "--evaluation-cache", place], capture_output=True, text=True, timeout=60
    )
    line = f"adaexplore: the evaluation cache {place}: is a directory; name a file\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", line)
