"""The client: over a restart of the service, on bad answers, and on the command line."""

import re
import sys
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from services import PROBLEM, RIGHT, running

from adaexplore.cli import main
from adaexplore.core.errors import BadInputError, InfrastructureError
from adaexplore.serve.client import Client, ServiceError, problem_of
from adaexplore.serve.jobs import Jobs
from adaexplore.serve.messages import JobInfo, JobResult
from adaexplore.serve.tables import open_folder


def test_events_go_on_over_a_restart_without_a_gap_or_a_repeat(tmp_path, free_port):
    numbers: list[int] = []
    with running(tmp_path, port=free_port) as service:
        token, jobs = service.token, Jobs(service.engine, tmp_path / "jobs")
        client = Client(service.url, token, patience_s=30.0)
        job = client.submit_evaluation(problem_of("p", PROBLEM), [RIGHT], {})
        jobs.take_next()
        first = threading.Event()

        def follow() -> None:
            for event in client.events(job.id):
                numbers.append(event.number)
                first.set()

        reader = threading.Thread(target=follow)
        reader.start()
        assert first.wait(10)
        for number in range(600):  # more than a page of events
            jobs.add_event(job.id, "working", str(number), "", {})
    with running(tmp_path, port=free_port) as service:
        jobs = Jobs(service.engine, tmp_path / "jobs")
        jobs.cancel(job.id)
        reader.join(timeout=20)
        last = jobs.events(job.id, after=600)[-1].number
    assert numbers == list(range(1, last + 1))
    client.close()


def test_a_name_of_a_file_that_leaves_the_folder_is_not_saved(tmp_path):
    job = JobInfo(
        id="x",
        kind="search",
        state="done",
        problem="p",
        candidates=1,
        created_at=0.0,
        files=["../out.py"],
    )
    client = Client("http://127.0.0.1:1", "token", patience_s=0.0)
    with pytest.raises(InfrastructureError, match="a file's name leaves the folder"):
        client.save_files(job, tmp_path / "in")
    assert not (tmp_path / "out.py").exists()


def test_a_service_that_is_not_there_is_named(tmp_path):
    client = Client("http://127.0.0.1:1", "token", patience_s=0.0)
    there = r"127\.0\.0\.1:1 cannot be reached: .+; see that `adaexplore serve` runs"
    with pytest.raises(InfrastructureError, match=there):
        client.jobs()


@pytest.mark.parametrize(
    ("url", "token", "message"),
    [
        ("127.0.0.1:8710", "ada_x", "write http://HOST:PORT or https://HOST"),
        ("ftp://127.0.0.1", "ada_x", "write http://HOST:PORT or https://HOST"),
        ("http://[::1", "ada_x", "write http://HOST:PORT or https://HOST"),
        ("http://", "ada_x", "write http://HOST:PORT or https://HOST"),
        ("http://127.0.0.1:99999", "ada_x", "write http://HOST:PORT or https://HOST"),
        ("http://127.0.0.1:1", "ada_sec\nret", "the token has characters that no token has"),
        ("http://127.0.0.1:1", "ada_secret\u200b", "the token has characters that no token has"),
    ],
)
def test_addresses_and_tokens_that_cannot_be_are_refused_at_once(url, token, message):
    with pytest.raises(BadInputError, match=re.escape(message)) as refused:
        Client(url, token)
    assert "ret" not in str(refused.value)


def test_an_order_that_no_service_takes_is_one_line():
    with Client("http://127.0.0.1:1", "ada_x", patience_s=0.0) as client:
        problem = problem_of("p", PROBLEM)
        for order, line in {
            partial(problem_of, "a b", ""): "problem a b: source: String should have at least 1",
            partial(problem_of, "p", "#" * 1_000_001): "problem p: source: String should have at m",
            partial(client.evaluate, problem, []): "evaluation: candidates: List should have at",
            partial(client.evaluate, problem, [""]): "evaluation: candidates: 0: String should",
            partial(client.submit_campaign, [problem] * 501, {}): "campaign: problems: List should",
        }.items():
            with pytest.raises(BadInputError) as refused:
                order()
            assert line in str(refused.value)
            assert "\n" not in str(refused.value)


def test_an_address_with_another_path_is_named(service):
    with (
        Client(f"{service.url}/elsewhere", service.token) as client,
        pytest.raises(ServiceError, match="/elsewhere/v1/jobs: Not Found; check the address of"),
    ):
        client.jobs()


def test_certificates_that_are_not_there_are_named(monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere.pem")
    with pytest.raises(BadInputError, match=r"SSL_CERT_FILE .*: No such file"):
        Client("https://127.0.0.1:1", "ada_x")


class Page(BaseHTTPRequestHandler):
    """Another service: a page at every address."""

    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<p>Hello")

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.do_GET()


def test_another_service_at_the_address_is_one_clear_line():
    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever).start()
        with Client(f"http://127.0.0.1:{server.server_port}", "ada_x") as client:
            submit = partial(client.submit_search, problem_of("p", PROBLEM), {})
            for ask in (client.health, client.jobs, partial(client.cancel, "x"), submit):
                with pytest.raises(InfrastructureError, match="does not answer as `adaexplore"):
                    ask()
        server.shutdown()


def test_files_and_results_come_once_a_job_has_ended(service, fresh_user):
    jobs = Jobs(service.engine, service.folder / "jobs")
    with service.client(fresh_user) as client:
        job = client.submit_search(problem_of("my problem", PROBLEM), {"steps": 3})
        assert (job.problem, job.candidates, job.state) == ("my_problem", 3, "queued")
        with pytest.raises(ServiceError, match="the job is queued; it has a result once it has"):
            client.result(job.id)
        place = service.folder / "jobs" / job.id / "run" / "sub"
        place.mkdir(parents=True)
        (place / "best.py").write_text("fast")
        jobs.end(job.id, "done", files=["sub/best.py"], result=JobResult(headline="2x"))
        assert client.result(job.id).headline == "2x"
        assert client.file(job.id, "sub/best.py") == b"fast"
        client.save_files(client.job(job.id), place / "saved")
        assert (place / "saved" / "sub" / "best.py").read_text() == "fast"


def test_a_job_that_fails_raises_its_error(service, fresh_user):
    jobs = Jobs(service.engine, service.folder / "jobs")
    with service.client(fresh_user) as client:
        job = client.submit_search(problem_of("p", PROBLEM), {})
        jobs.end(job.id, "failed", "p.py: defines no Model", files=[], result=JobResult())
        with pytest.raises(BadInputError, match=r"p\.py: defines no Model"):
            client.wait(job.id)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["evaluate", "p.py", "c.py"], "put the service's token into ADAEXPLORE_TOKEN"),
        (["explore", "empty.py"], "problem empty: source: String should have at least 1 character"),
        (["explore", "nowhere.py"], "nowhere.py: cannot read the problem: No such file"),
        (["explore", "p.txt"], "--server takes problems in KernelBench form"),
        (["explore", "p.py", "--device", "cpu"], "'device' is no option of the service"),
        (["campaign", "p.py", "--start-from", "c.py"], "'start_from' is no option of the service"),
        (["evaluate", "p.py", "c.py", "--sol", "x"], "cannot be handed over; leave out"),
    ],
)
def test_commands_refuse_in_one_line(
    service, fresh_user, tmp_path, monkeypatch, capsys, words, message
):
    monkeypatch.chdir(tmp_path)
    for name in ("p.py", "p.txt"):
        (tmp_path / name).write_text(PROBLEM)
    (tmp_path / "c.py").write_text(RIGHT)
    (tmp_path / "empty.py").touch()
    monkeypatch.setenv("ADAEXPLORE_TOKEN", "" if "token" in message else fresh_user)
    monkeypatch.setattr(sys, "argv", ["adaexplore", *words, "--server", service.url])
    with pytest.raises(SystemExit) as end:
        main()
    [line] = capsys.readouterr().err.splitlines()
    assert message in line
    assert end.value.code == 2
    assert not (tmp_path / "runs").exists()


def test_a_database_of_a_newer_release_is_refused(tmp_path):
    engine = open_folder(tmp_path)
    with engine.begin() as connection:
        connection.exec_driver_sql("PRAGMA user_version = 9")
    engine.dispose()
    with pytest.raises(BadInputError, match="is in format 9, this adaexplore reads up to 1"):
        open_folder(tmp_path)
