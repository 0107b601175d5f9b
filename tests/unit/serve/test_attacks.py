"""Attacks on the service over real HTTP, none of which may succeed."""

import json
import socket
import time
import uuid
from contextlib import suppress

import httpx
import pytest
from services import PROBLEM, RIGHT, running
from sqlalchemy import update

from adaexplore.serve import streams
from adaexplore.serve.accounts import revoke_token
from adaexplore.serve.client import ServiceError, problem_of
from adaexplore.serve.tables import jobs

ORDER = {"problem": {"name": "p", "source": PROBLEM}, "candidates": [RIGHT]}


@pytest.fixture(scope="module")
def job(service):
    """A job of alice."""
    return service.ask("POST", "/v1/evaluations", json=ORDER).json()["id"]


def wrong_tokens(token):
    kind, token_id, secret = token.split("_", 2)
    other = "A" if secret[0] != "A" else "B"
    return {
        "none": "x",
        "another secret": f"{kind}_{token_id}_{other}{secret[1:]}",
        "a prefix": token[:-1],
        "longer": token + "A",
        "another id": f"{kind}_{'0' * 16}_{secret}",
        "the hash": f"{kind}_{token_id}_{'0' * 43}",
        "SQL": "ada_' OR '1'='1_x",
        "a wildcard": f"{kind}_%_{secret}",
    }


def test_wrong_tokens_are_refused_alike(service, job):
    for name, token in wrong_tokens(service.token).items():
        headers = {"Authorization": f"Bearer {token}"}
        for path in (f"/v1/jobs/{job}", "/metrics"):
            answer = service.ask("GET", path, headers=headers)
            assert answer.status_code == 401, name
            assert job not in answer.text
    assert service.ask("GET", "/v1/jobs", headers={"Authorization": "Basic YTpi"}).is_error


def test_guesses_are_slowed_and_do_not_lock_out_who_has_a_token(tmp_path):
    with running(tmp_path) as service:
        codes = [service.ask("GET", "/v1/jobs", token="ada_guess").status_code for _ in range(32)]
        assert service.ask("GET", "/v1/jobs").status_code == 200
    assert codes == [401] * 30 + [429] * 2


@pytest.mark.parametrize(
    "path", ["", "/result", "/events", "/cancel", "/continue", "/files/best.py"]
)
def test_another_users_job_is_as_unknown_as_one_that_is_not_there(service, job, path):
    mallory = service.new_token("mallory")
    method = "POST" if path in ("/cancel", "/continue") else "GET"
    theirs = service.ask(method, f"/v1/jobs/{job}{path}", token=mallory)
    nothing = service.ask(method, f"/v1/jobs/{'0' * 24}{path}", token=mallory)
    assert (theirs.status_code, theirs.text) == (nothing.status_code, nothing.text)
    assert theirs.status_code == 404
    assert service.ask("GET", f"/v1/jobs/{job}").json()["state"] == "queued"


def test_lists_and_keys_of_requests_are_a_users_own(service, job):
    mallory = service.new_token("mallory")
    assert service.ask("GET", "/v1/jobs", token=mallory).json() == []
    key = {"Idempotency-Key": "same"}
    mine = service.ask("POST", "/v1/evaluations", json=ORDER, headers=key).json()
    theirs = service.ask("POST", "/v1/evaluations", mallory, json=ORDER, headers=key).json()
    assert mine["id"] != theirs["id"]


@pytest.mark.parametrize("scope", ["evaluate", "search", "campaign", "models", "metrics"])
def test_a_token_without_a_scope_is_refused(service, scope):
    scopes = tuple({"evaluate", "search", "campaign", "models", "metrics"} - {scope})
    token = service.new_token("limited", scopes=scopes)
    problem = {"problem": ORDER["problem"]}
    asked = {
        "evaluate": ("POST", "/v1/evaluations", ORDER),
        "search": ("POST", "/v1/searches", problem),
        "campaign": ("POST", "/v1/campaigns", {"problems": [ORDER["problem"]]}),
        "models": ("POST", "/v1/searches", {**problem, "options": {"model": ["openai:x"]}}),
        "metrics": ("GET", "/metrics", None),
    }
    method, path, body = asked[scope]
    answer = service.ask(method, path, token, json=body)
    assert (answer.status_code, answer.json()["detail"]) == (
        403,
        f"this token lacks the scope '{scope}'",
    )


def test_a_job_goes_on_only_for_a_token_with_its_scopes(service):
    user = f"user{time.monotonic_ns()}"
    asks = {"model": ["openai:x"]}
    with service.client(service.new_token(user)) as client:
        job = client.submit_search(problem_of("p", PROBLEM), asks)
        client.cancel(job.id)
        for scopes, lacking in ((("models",), "search"), (("search",), "models")):
            limited = service.new_token(user, scopes=scopes)
            answer = service.ask("POST", f"/v1/jobs/{job.id}/continue", limited)
            assert answer.status_code == 403
            assert answer.json()["detail"] == f"this token lacks the scope '{lacking}'"
        assert client.job(job.id).state == "cancelled"
        assert client.go_on(job.id).state == "queued"
        client.cancel(job.id)


NAMES = [
    "../../etc/passwd",
    "..",
    ".",
    "a/b",
    "a\\b",
    "",
    "/abs",
    "-rf",
    "a\n",
    "x" * 65,
    "a\0b",
    "ü",
]
NAMES += ["{{7*7}}", "${7*7}", "'; DROP TABLE serve_jobs;--", "<script>alert(1)</script>"]


@pytest.mark.parametrize("name", NAMES)
def test_names_that_lead_elsewhere_are_refused(service, name):
    order = {**ORDER, "problem": {"name": name, "source": PROBLEM}}
    answer = service.ask("POST", "/v1/evaluations", json=order)
    assert answer.status_code == 422
    assert "49" not in answer.text
    assert not list(service.folder.parent.glob("*passwd*"))
    assert service.ask("GET", "/v1/jobs").status_code == 200


@pytest.mark.parametrize(
    "name",
    ["../order.json", "..%2forder.json", "%2e%2e/%2e%2e/server.db", "/etc/passwd", "//etc/passwd"],
)
def test_files_outside_the_list_of_a_job_are_not_there(service, job, name):
    with service.engine.begin() as connection:
        done = {"state": "done", "files": ["best.py"]}
        connection.execute(update(jobs).where(jobs.c.id == job).values(done))
    try:
        answer = service.ask("GET", f"/v1/jobs/{job}/files/{name}")
        assert answer.status_code == 404
        assert "root" not in answer.text
    finally:
        with service.engine.begin() as connection:
            connection.exec_driver_sql("UPDATE serve_jobs SET state = 'queued', files = '[]'")


def test_a_link_in_a_jobs_folder_leads_nowhere(service, job):
    place = service.folder / "jobs" / job / "run"
    place.mkdir()
    (place / "best.py").symlink_to(service.folder / "server.db")
    with service.engine.begin() as connection:
        done = {"state": "done", "files": ["best.py"]}
        connection.execute(update(jobs).where(jobs.c.id == job).values(done))
    assert service.ask("GET", f"/v1/jobs/{job}/files/best.py").status_code == 404
    (place / "best.py").unlink()
    (place / "best.py").write_text("<script>alert(1)</script>")
    answer = service.ask("GET", f"/v1/jobs/{job}/files/best.py")
    assert answer.text == "<script>alert(1)</script>"
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in answer.headers["content-security-policy"]
    with service.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE serve_jobs SET state = 'queued', files = '[]'")


@pytest.mark.parametrize(
    "job_id", ["' OR '1'='1", "1; DROP TABLE serve_jobs", "%", "*", "../", "x" * 4000]
)
def test_ids_are_values_and_not_sql(service, job, job_id):
    answer = service.ask("GET", "/v1/jobs/" + job_id.replace("%", "%25").replace("/", "%2f"))
    assert answer.status_code == 404
    assert service.ask("GET", f"/v1/jobs/{job}").status_code == 200


PATHS = ("allow", "start_from", "prompts", "memory", "memory_update", "run", "record", "replay")


@pytest.mark.parametrize(
    "name",
    [
        *PATHS,
        "store",
        "evaluation_cache",
        "evaluation_scope",
        "base_url",
        "device",
        "definition",
        "preset",
    ],
)
def test_options_that_name_paths_or_addresses_are_closed(service, name):
    options = {name: "/etc/passwd"}
    answer = service.ask("POST", "/v1/evaluations", json={**ORDER, "options": options})
    assert answer.status_code == 422
    assert f"'{name}' is no option of the service" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policy": "uct:allow=/etc"}, "'allow' is no option of the service"),
        ({"policy": "uct:base_url=http://169.254.169.254/"}, "'base_url' is no option"),
        ({"timeout_s": 1e6}, "timeout_s = 1e+06: at most 600 here"),
        ({"memory_gb": 100}, "memory_gb = 100: at most 16 here"),
        ({"parallel": 64}, "parallel = 64: at most 4 here"),
        ({"steps": -1}, "steps"),
        ({"steps": "9" * 5000}, "steps"),
        ({"seed": {"a": 1}}, "seed"),
    ],
)
def test_options_out_of_bounds_are_refused_in_one_line(service, options, message):
    answer = service.ask("POST", "/v1/evaluations", json={**ORDER, "options": options})
    assert answer.status_code == 422
    assert message in answer.json()["detail"]
    assert "\n" not in answer.json()["detail"]


@pytest.mark.parametrize(
    ("headers", "content"),
    [
        ({}, b"x" * 300_000),
        ({"Content-Length": "999999999999"}, b""),
        ({"Content-Length": "-5"}, b""),
    ],
    ids=["a long body", "a long promise", "a negative promise"],
)
def test_oversized_bodies_are_refused_before_they_are_read(service, headers, content):
    request = "".join(
        [
            "POST /v1/evaluations HTTP/1.1\r\nHost: x\r\n",
            f"Authorization: Bearer {service.token}\r\n",
            "".join(
                f"{n}: {v}\r\n" for n, v in ({"Content-Length": len(content)} | headers).items()
            ),
            "\r\n",
        ]
    )
    answer = raw(service, request.encode() + content)
    assert answer.split()[1] in (b"413", b"400")


def test_a_body_in_chunks_without_end_is_cut_off(service):
    head = b"POST /v1/evaluations HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"8000\r\n" + b"x" * 0x8000 + b"\r\n"
    assert raw(service, head + chunk * 20).split()[1] == b"413"


def raw(service, request: bytes, pause_s: float = 0.0) -> bytes:
    """Send bytes and return the answer, up to the end of the connection or its first part."""
    with socket.create_connection(("127.0.0.1", service.port), timeout=10) as connection:
        with suppress(BrokenPipeError, ConnectionResetError):  # refused as we still send
            connection.sendall(request)
        time.sleep(pause_s)
        try:
            return connection.recv(4096)
        except ConnectionResetError:
            return b""


@pytest.mark.parametrize("sent", [b"", b"GET /health HTTP/1.1\r\nHost: x\r\nX-Slow: "])
def test_a_client_that_does_not_finish_its_headers_is_hung_up_on(service, sent):
    began = time.monotonic()
    assert raw(service, sent) == b""
    assert time.monotonic() - began < 5


def test_slow_headers_of_a_second_request_are_hung_up_on_too(service):
    whole = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
    with socket.create_connection(("127.0.0.1", service.port), timeout=10) as connection:
        connection.sendall(whole)
        answer = b""
        while not answer.endswith(b"}"):
            answer += connection.recv(4096)
        assert b"200 OK" in answer
        connection.sendall(whole[:20])
        assert connection.recv(4096) == b""


def test_a_slow_body_is_refused_and_the_service_goes_on_meanwhile(service):
    head = b"POST /v1/evaluations HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{"
    slow = [socket.create_connection(("127.0.0.1", service.port), timeout=10) for _ in range(20)]
    for connection in slow:
        connection.sendall(head)
    assert service.ask("GET", "/health").status_code == 200
    for connection in slow:
        assert connection.recv(4096).split()[1] == b"408"
        connection.close()


def test_deep_json_is_refused(service):
    answer = service.ask("POST", "/v1/evaluations", content=b"[" * 50_000)
    assert answer.status_code == 422


def messages() -> dict[str, tuple[str, str]]:
    """Messages whose refusal would repeat what JSON or UTF-8 does not have."""
    problem, candidate = json.dumps(ORDER["problem"]), json.dumps(RIGHT)
    order = f'{{"problem": {problem}, "candidates": [{candidate}]'
    task = '{"reference_code": "x", "kernel_code": "y", "backend": "cpp"'
    orders = {
        "NaN": '{"problem": NaN, "candidates": []}',
        "infinity": '{"problem": {"name": 1e400, "source": "x"}, "candidates": ["x"]}',
        "half a character as a source": f'{{"problem": {problem}, "candidates": ["\\ud800"]}}',
        "half a character as a field": order + ', "\\ud800": 1}',
        "half a character in a policy": order + ', "options": {"policy": "\\ud800"}}',
        "half a character in an option": order + ', "options": {"language": "\\ud800"}}',
        "nested options": order + f', "options": {{"steps": {"[" * 500}{"]" * 500}}}}}',
        "a nested problem": f'{{"problem": {"[" * 900}{"]" * 900}, "candidates": []}}',
    }
    return {
        **{name: ("/v1/evaluations", text) for name, text in orders.items()},
        "NaN of OpenEnv": ("/openenv/adaexplore/task", '{"split": "eval", "index": NaN}'),
        "NaN of KernelGYM": ("/kernelgym/evaluate", task + ', "task_id": "t", "timeout": NaN}'),
        "half a name": ("/kernelgym/evaluate", task + ', "task_id": "\\ud800"}'),
    }


@pytest.mark.parametrize("name", messages())
def test_messages_that_no_answer_can_repeat_are_refused(service, fresh_user, name):
    path, text = messages()[name]
    headers = {"Content-Type": "application/json"}
    answer = service.ask("POST", path, fresh_user, content=text, headers=headers)
    assert answer.status_code == 422
    assert isinstance(answer.json()["detail"], str)
    assert "\n" not in answer.json()["detail"]


@pytest.mark.parametrize(
    ("path", "name", "value", "status"),
    [
        ("/v1/jobs", "Authorization", b"Basic \xff\xfe", 401),
        ("/v1/jobs", "Authorization", b"Bearer \xff\xfe", 401),
        ("/v1/jobs/JOB/events", "Last-Event-ID", b"9223372036854775808", 422),
        ("/v1/jobs/JOB/events", "Last-Event-ID", b"2147483648", 422),
        ("/login", "Origin", b"http://[::1", 403),
        ("/login", "Origin", b"\xff", 403),
    ],
)
def test_headers_that_no_client_sends_are_refused(service, job, path, name, value, status):
    headers = {"Authorization": f"Bearer {service.token}".encode(), name: value}
    method = "POST" if path == "/login" else "GET"
    answer = httpx.request(method, service.url + path.replace("JOB", job), headers=headers)
    assert answer.status_code == status


def test_a_stream_of_events_ends_with_its_token(service, monkeypatch):
    monkeypatch.setattr(streams, "ADMIT_S", 0.1)
    token = service.new_token("leaver")
    order = service.ask("POST", "/v1/evaluations", token, json=ORDER).json()["id"]
    url, headers = f"{service.url}/v1/jobs/{order}/events", {"Authorization": f"Bearer {token}"}
    with httpx.stream("GET", url, headers=headers, timeout=20) as stream:
        lines = stream.iter_lines()
        assert any(line == "event: state" for line in lines)
        revoke_token(service.engine, token.split("_")[1])
        for _ in lines:  # ends, though the job does not
            pass
    assert service.ask("GET", f"/v1/jobs/{order}", service.new_token("leaver")).json()["state"] == (
        "queued"
    )


def test_a_stream_of_a_job_that_has_ended_ends(service):
    token = service.new_token("comes-again")
    job = service.ask("POST", "/v1/evaluations", token, json=ORDER).json()["id"]
    url, headers = f"{service.url}/v1/jobs/{job}/events", {"Authorization": f"Bearer {token}"}
    service.ask("POST", f"/v1/jobs/{job}/cancel", token)
    with httpx.stream("GET", url, headers=headers, timeout=20) as stream:
        last = [line for line in stream.iter_lines() if line.startswith("id: ")][-1]
    again = headers | {"Last-Event-ID": last.removeprefix("id: ")}
    with httpx.stream("GET", url, headers=again, timeout=20) as stream:
        assert not any(line.startswith("id: ") for line in stream.iter_lines())


@pytest.mark.parametrize(
    ("options", "candidates", "steps"),
    [
        ({"budget": "100h"}, 40, 20),
        ({"budget": "100usd"}, 40, 20),
        ({"budget": "1000steps"}, 1000, None),
        ({"budget": "10steps", "steps": 30}, 10, 30),
        ({"steps": 30}, 60, 30),
        ({}, 40, 20),
        ({"budget": "100h", "tune": 7}, 54, 20),
    ],
)
def test_a_campaign_judges_no_more_than_it_counts(service, options, candidates, steps):
    token = service.new_token(f"user{time.monotonic_ns()}", most_candidates=10**6)
    problems = [{"name": name, "source": PROBLEM} for name in ("a", "b")]
    order = {"problems": problems, "options": options}
    made = service.ask("POST", "/v1/campaigns", token, json=order).json()
    assert made["candidates"] == candidates
    text = (service.folder / "jobs" / made["id"] / "order.json").read_text()
    assert json.loads(text)["config"].get("steps") == steps


def test_streams_of_a_user_are_limited(service, job, eventually):
    headers = {"Authorization": f"Bearer {service.token}"}
    with httpx.Client(base_url=service.url, headers=headers, timeout=10) as client:
        streams = [
            client.send(client.build_request("GET", f"/v1/jobs/{job}/events"), stream=True)
            for _ in range(9)
        ]
        codes = sorted(stream.status_code for stream in streams)
        for stream in streams:
            stream.close()
        assert codes == [200] * 8 + [429]
        assert eventually(lambda: opens(client, job))


def opens(client: httpx.Client, job: str) -> bool:
    with client.stream("GET", f"/v1/jobs/{job}/events") as stream:
        return stream.status_code == 200


def test_bodies_of_many_clients_do_not_fill_the_memory(service):
    head = b"POST /v1/evaluations HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n"
    clients = [socket.create_connection(("127.0.0.1", service.port), timeout=10) for _ in range(12)]
    for client in clients:
        client.sendall(head + b"x" * 199_999)
    codes = sorted(client.recv(4096).split()[1] for client in clients)
    for client in clients:
        client.close()
    assert codes.count(b"503") >= 3
    assert set(codes) <= {b"503", b"408"}
    assert service.ask("POST", "/v1/evaluations", json=ORDER).status_code in (202, 429)


def test_requests_of_a_token_are_limited(service):
    token = service.new_token("eager", most_requests=5)
    codes = [service.ask("GET", "/v1/jobs", token).status_code for _ in range(7)]
    assert codes == [200] * 5 + [429] * 2


def test_the_audit_log_has_who_did_what_and_no_secret(service, job):
    service.ask("GET", f"/v1/jobs/{job}", headers={"Authorization": "Bearer ada_guess"})
    service.ask("GET", '/v1/jobs/a%0a{"forged":1}')
    text = (service.folder / "audit.jsonl").read_text()
    entries = [json.loads(line) for line in text.splitlines()]
    submitted = next(entry for entry in entries if entry["job"] == job)
    assert (submitted["user"], submitted["method"], submitted["path"], submitted["status"]) == (
        ("alice", "POST", "/v1/evaluations", 202)
    )
    assert any(entry["status"] in (401, 429) and entry["user"] is None for entry in entries)
    assert not any("forged" in entry for entry in entries)
    assert service.token.split("_", 2)[2] not in text
    assert "relu" not in text


def test_metrics_name_no_user_and_no_path_of_a_client(service):
    unknown = str(uuid.uuid4())
    service.ask("GET", f"/{unknown}")
    text = service.ask("GET", "/metrics").text
    assert 'adaexplore_jobs{kind="evaluation",state="queued"}' in text
    assert "alice" not in text
    assert unknown not in text


def test_the_document_of_the_api_has_every_route(service):
    document = service.ask("GET", "/openapi.json").json()
    assert {"/v1/evaluations", "/v1/searches", "/v1/campaigns"} <= document["paths"].keys()
    assert service.ask("GET", "/docs").status_code == 404


def test_a_refusal_reaches_the_client_in_one_line(service, fresh_user):
    with service.client(fresh_user) as client, pytest.raises(ServiceError) as refusal:
        client.submit_evaluation(problem_of("p", PROBLEM), [RIGHT], {"steps": 0})
    assert refusal.value.status == 422
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("share", [False, True])
def test_verdicts_and_references_stay_with_a_user_unless_all_share_them(tmp_path, share):
    place = str(tmp_path / "verdicts.db")
    with running(tmp_path, evaluation_cache=place, share_verdicts=share) as service:
        tokens = [service.new_token(user) for user in ("alice", "bob")]
        jobs = [service.ask("POST", "/v1/evaluations", t, json=ORDER).json()["id"] for t in tokens]
    orders = [json.loads((tmp_path / "jobs" / job / "order.json").read_text()) for job in jobs]
    assert {order["config"]["evaluation_cache"] for order in orders} == {place}
    assert (orders[0] == orders[1]) == share
