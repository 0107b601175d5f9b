"""The live pages over real HTTP: who may read, who may write, and what no address reaches."""

import re
import time
from contextlib import closing

import httpx
import pytest
from live_runs import MANUAL_CONFIG, add, at_work, campaign, make_run, passed, serving, step
from services import PROBLEM, running

from adaexplore.core.errors import BadInputError
from adaexplore.serve.accounts import revoke_token
from adaexplore.serve.client import problem_of
from adaexplore.serve.page.app import run_pages


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "runs"
    make_run(path / "night", step(1, 0, passed(1.2)))
    return path


@pytest.fixture
def pages(folder):
    with serving(folder) as address, closing(httpx.Client(base_url=address, timeout=30)) as client:
        yield client


def test_a_folder_or_a_port_that_cannot_be_used_is_one_clear_line(folder):
    with pytest.raises(BadInputError, match="nowhere is no folder"):
        run_pages([folder / "nowhere"], 8720, browser=False, say=print)
    with serving(folder) as address:
        port = int(address.rpartition(":")[2])
        with pytest.raises(BadInputError, match="name another"):
            run_pages([folder], port, browser=False, say=print)


def csrf_in(answer):
    return re.search(r'name="csrf" value="([0-9a-f]{64})"', answer.text)[1]


def first_run(pages):
    return re.search(r'href="(/runs/[0-9a-f]{16})"', pages.get("/").text)[1]


def test_only_loopback_names_are_answered(pages):
    """A name of an attacker that resolves to this address (DNS rebinding) gets nothing."""
    path = first_run(pages)
    for host in (
        "evil.example",
        "evil.example:8720",
        "127.0.0.1.evil.example",
        "localhost@evil",
        "",
    ):
        for one in ("/", path, "/events", "/compare"):
            answer = pages.get(one, headers={"Host": host})
            assert answer.status_code in (400, 421), (host, one)
            assert "softmax" not in answer.text
    port = pages.base_url.port
    assert pages.get("/", headers={"Host": f"localhost:{port}"}).status_code == 200


@pytest.mark.parametrize("action", ["stop", "continue", "ask", "tell"])
def test_forms_from_elsewhere_do_nothing(pages, action):
    path = first_run(pages)
    own = str(pages.base_url).rstrip("/")
    csrf = csrf_in(pages.get(path))
    for origin, field in (
        ("http://evil.example", csrf),
        ("null", csrf),
        (None, csrf),
        (own + ".evil.example", csrf),
        (own, "0" * 64),
        (own, ""),
    ):
        headers = {"Origin": origin} if origin else {}
        answer = pages.post(f"{path}/{action}", data={"csrf": field}, headers=headers)
        assert answer.status_code == 403, (origin, field)
    assert pages.get(f"{path}/{action}").status_code == 405


def test_pages_admit_no_foreign_script_and_no_frame(pages):
    for path in ("/", first_run(pages), "/compare", "/runs/none"):
        answer = pages.get(path)
        policy = answer.headers.get_list("content-security-policy")
        assert len(policy) == 1
        assert "default-src 'none'" in policy[0]
        assert re.search(r"script-src 'self'(;|$)", policy[0])
        assert "frame-ancestors 'none'" in policy[0]
        assert "<script>" not in answer.text
        assert "<style" not in answer.text
        assert not re.search(r"https?://", answer.text)


def test_no_address_reaches_another_file(pages, folder):
    (folder.parent / "secret.txt").write_text("the secret")
    for name in (
        "../secret.txt",
        "..%2fsecret.txt",
        "%2e%2e/secret.txt",
        "....//secret.txt",
        "%00",
    ):
        for start in ("/runs/", "/assets/", "/", "/compare?a=", "/searches?key="):
            answer = pages.get(start + name)
            assert "the secret" not in answer.text
            assert answer.status_code in (200, 404, 405, 422), (start, name)
    assert pages.get("/assets/report.html.j2").status_code == 404


def test_links_out_of_the_folder_are_not_followed(pages, folder):
    outside = make_run(folder.parent / "outside", step(1, 0, passed(7.0)), name="secret")
    (folder / "link").symlink_to(outside)
    (folder / "linked").mkdir()
    (folder / "linked" / "run.db").symlink_to(outside / "run.db")
    time.sleep(1.1)
    assert "secret" not in pages.get("/").text


def test_a_manifest_that_names_runs_elsewhere_shows_none_of_them(folder):
    make_run(folder.parent / "outside", step(1, 0, passed(7.0)), name="secret")
    campaign(folder / "many", "relu", "../../outside")
    with serving(folder) as address:
        home = httpx.get(address).text
        [path] = re.findall(r'href="(/runs/\w+)">\s*<span class="card-head"><b>many', home)
        answer = httpx.get(address + path)
    assert answer.status_code == 422
    assert "lies outside" in answer.text
    assert "secret" not in answer.text


def test_damaged_records_are_told_and_hide_nothing_else(folder):
    (folder / "torn").mkdir()
    (folder / "torn" / "run.db").write_bytes(b"SQLite format 3\0" + b"x" * 400)
    (folder / "odd").mkdir()
    (folder / "odd" / "campaign.json").write_text('{"format": 1, "order": []}')
    with serving(folder) as address:
        home = httpx.get(address).text
        assert "1.20×" in home
        assert "damaged" in home
        for path in re.findall(r'href="(/runs/\w+)"', home):
            assert httpx.get(address + path, timeout=30).status_code in (200, 422)


def test_a_reply_is_kept_once_and_a_late_one_is_refused(folder):
    make_run(folder / "mine", config=MANUAL_CONFIG, name="mine")
    with serving(folder) as address, closing(httpx.Client(base_url=address)) as pages:
        path = re.search(
            r'href="(/runs/\w+)">\s*<span class="card-head"><b>mine', pages.get("/").text
        )[1]
        fields = {"csrf": csrf_in(pages.get(path))}
        headers = {"Origin": address}
        assert pages.post(f"{path}/ask", data=fields, headers=headers).status_code == 303
        reply = fields | {
            "ask": "1",
            "turn": "0",
            "reply": "```python\r\nclass ModelNew: ...\r\n```",
        }
        assert pages.post(f"{path}/tell", data=reply, headers=headers).status_code == 303
        late = pages.post(f"{path}/tell", data=reply | {"reply": "other"}, headers=headers)
        assert (late.status_code, "answered already" in late.text) == (409, True)
        for wrong in ({"ask": "99"}, {"ask": "-1"}, {"ask": "x"}, {"ask": "9" * 30}, {"turn": "7"}):
            assert (
                pages.post(f"{path}/tell", data=reply | wrong, headers=headers).status_code == 409
            )
        assert "1 to evaluate" in pages.get(path).text


def test_stop_and_continue_tell_what_came_of_them(pages, folder):
    path = first_run(pages)
    fields = {"csrf": csrf_in(pages.get(path))}
    headers = {"Origin": str(pages.base_url).rstrip("/")}
    assert pages.post(f"{path}/stop", data=fields, headers=headers).status_code == 409
    with at_work(folder / "night") as process:
        assert "running" in pages.get(path).text
        assert pages.post(f"{path}/continue", data=fields, headers=headers).status_code == 409
        assert pages.post(f"{path}/stop", data=fields, headers=headers).status_code == 303
        assert process.stdout.readline() == "stopped\n"


def test_events_say_that_there_is_news_and_nothing_else(pages, folder):
    path = first_run(pages)
    version = re.search(r'data-version="(\w+)"', pages.get(path).text)[1]
    with pages.stream("GET", f"{path}/events?version={version}") as stream:
        lines = stream.iter_lines()
        add(folder / "night", step(2, 1, passed(2.0)))
        assert next(line for line in lines if line.startswith("event")) == "event: changed"
        assert version not in next(line for line in lines if line.startswith("data"))


class Team:
    """A service with a search of alice."""

    def __init__(self, service) -> None:
        self.service = service
        order = {"problem": {"name": "softmax", "source": PROBLEM}}
        self.job = service.ask("POST", "/v1/searches", json=order).json()["id"]
        make_run(service.folder / "jobs" / self.job / "run", step(1, 0, passed(1.2)))

    def browser(self, token=None):
        client = httpx.Client(base_url=self.service.url, timeout=20)
        if token:
            answer = self.login(client, token)
            assert answer.status_code == 303
        return client

    def login(self, client, token):
        fields = {"csrf": csrf_in(client.get("/login")), "token": token}
        return client.post("/login", data=fields, headers={"Origin": self.service.url})


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    with running(tmp_path_factory.mktemp("serve")) as service:
        yield Team(service)


def test_a_user_logs_in_and_sees_the_own_searches(team):
    client = team.browser(team.service.token)
    [cookie] = client.cookies.jar
    assert cookie.name == "ada_session"
    rest = {name.lower(): value for name, value in cookie._rest.items()}
    assert "httponly" in rest
    assert rest["samesite"].lower() == "strict"
    home = client.get("/").text
    assert "1.20×" in home
    page = client.get(re.search(r'href="(/runs/\w+)"', home)[1])
    assert page.status_code == 200
    assert str(team.service.folder) not in home + page.text
    assert "New prompt" not in page.text


def test_nobody_sees_anothers_search(team):
    path = re.search(r'href="(/runs/\w+)"', team.browser(team.service.token).get("/").text)[1]
    mallory = team.browser(team.service.new_token("mallory"))
    assert "softmax" not in mallory.get("/").text
    assert "softmax" not in mallory.get("/compare").text
    headers = {"Origin": team.service.url}
    for address in (path, f"{path}/events"):
        assert mallory.get(address).status_code == 404
    stop = {"csrf": csrf_in(mallory.get("/"))}
    assert mallory.post(f"{path}/stop", data=stop, headers=headers).status_code == 404
    key = path.rpartition("/")[2]
    assert "1.20×" not in mallory.get(f"/compare?a={key}&b={key}").text
    assert mallory.get(f"/searches?key={key}").status_code == 422
    assert team.service.client().job(team.job).state == "queued"


def test_without_a_login_there_is_only_the_login(team):
    path = re.search(r'href="(/runs/\w+)"', team.browser(team.service.token).get("/").text)[1]
    stranger = team.browser()
    for address in ("/", path, f"{path}/events", "/events", "/compare", "/searches"):
        answer = stranger.get(address)
        assert (answer.status_code, answer.headers["location"]) == (303, "/login")
    assert team.login(stranger, "ada_wrong").status_code == 401
    assert not stranger.cookies
    elsewhere = stranger.post("/login", data={"token": team.service.token, "csrf": ""})
    assert elsewhere.status_code == 403


def test_a_revoked_token_and_a_logout_end_the_login(team):
    token = team.service.new_token("alice")
    client, other = team.browser(token), team.browser(token)
    headers = {"Origin": team.service.url}
    client.post("/logout", data={"csrf": csrf_in(client.get("/"))}, headers=headers)
    assert client.get("/").status_code == 303
    assert other.get("/").status_code == 200
    revoke_token(team.service.engine, token.split("_")[1])
    assert other.get("/").status_code == 303


def test_a_job_is_stopped_and_continued(team):
    job = team.service.client().submit_search(problem_of("relu", PROBLEM), {})
    client = team.browser(team.service.token)
    home = client.get("/").text
    path = re.search(r'href="(/runs/\w+)">\s*<span class="card-head"><b>relu', home)[1]
    fields, headers = {"csrf": csrf_in(client.get(path))}, {"Origin": team.service.url}
    for action, status, state in (
        ("continue", 409, "queued"),
        ("ask", 404, "queued"),
        ("stop", 303, "cancelled"),
        ("continue", 303, "queued"),
    ):
        answer = client.post(f"{path}/{action}", data=fields, headers=headers)
        assert (answer.status_code, team.service.client().job(job.id).state) == (status, state)
