"""The service: its interface, its client, and everything that it must refuse."""

from __future__ import annotations

import asyncio
import socket
import sqlite3
import sys
import threading
import time

import httpx
import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the service needs entrywise[web]")

import uvicorn
from fastapi.testclient import TestClient

import entrywise as ew
from commands import entrywise
from databases import DATABASES, needs_postgres
from entrywise.checks import postgres
from entrywise.checks.plans import same_result
from entrywise.exceptions import ParameterError, StoreError, TellError
from entrywise.gallery import random_psd
from entrywise.oracles import MatrixOracle
from entrywise.study import Store, Study, tokens
from entrywise.web import guard
from entrywise.web.app import create_app

N = 6
A = random_psd(N, 2, np.random.default_rng(0))
API = "/api/v1/studies"
NASTY = "a/b <script>50%"


class Served:
    """A service over a store, with tokens of every role, spoken to without a network."""

    def __init__(self, store, **options):
        self.store = store
        self.app = create_app(store, **options)
        self.client = TestClient(self.app, base_url="http://localhost:8642")
        self.secrets = {role: tokens.create(store, role)[0] for role in tokens.ROLES}

    def call(self, method, path, role="owner", **options):
        headers = options.pop("headers", {})
        if role is not None:
            headers |= {"authorization": f"Bearer {self.secrets.get(role, role)}"}
        return self.client.request(method, path, headers=headers, **options)

    def ask(self, name, **body):
        """Ask until what is worked out is ready."""
        for _ in range(200):
            answer = self.call("POST", f"{API}/{name}/ask", "worker", json=body)
            if answer.status_code != 202:
                assert answer.status_code == 200, answer.text
                return answer.json()
            assert int(answer.headers["retry-after"]) > 0
            time.sleep(0.02)
        raise AssertionError("it was never ready")

    def ready(self, path, method="GET", **options):
        for _ in range(200):
            answer = self.call(method, path, "reader", **options)
            if answer.status_code != 202:
                return answer
            time.sleep(0.05)
        raise AssertionError("it was never ready")


@pytest.fixture(scope="module", params=DATABASES)
def either(request, tmp_path_factory):
    """A store in a file, then one in a PostgreSQL database of its own."""
    if request.param == "sqlite":
        yield Store(str(tmp_path_factory.mktemp("either") / "lab.db"))
        return
    needs_postgres()
    with postgres.server() as url:
        yield Store(url)


@pytest.mark.slow
def test_both_databases_are_served(either):
    Study.create(either, "k", plan="adaptive-nystrom", params={"n": N}, seed=1)
    served = Served(either)
    work_to_the_end(served)
    served.app.state.background.close()


@pytest.fixture
def served(tmp_path):
    store = Store(str(tmp_path / "lab.db"))
    Study.create(store, "k", plan="adaptive-nystrom", params={"n": N}, seed=1)
    Study.create(store, "other", plan="adaptive-nystrom", params={"n": N}, seed=1)
    found = Served(store)
    yield found
    found.app.state.background.close()


def answers(asked):
    return [float(A[i, j]) for i, j in asked["index"]]


@pytest.mark.slow
def test_a_study_is_worked_to_its_end_over_the_interface(served):
    work_to_the_end(served)


def work_to_the_end(served):
    while True:
        asked = served.ask("k", limit=4, worker="w")
        if not asked["id"]:
            break
        body = {"id": asked["id"], "value": answers(asked), "worker": "w"}
        told = served.call("POST", f"{API}/k/tell", "worker", json=body)
        assert told.json() == {"new": len(asked["id"]), "told": len(asked["id"])}
        again = served.call("POST", f"{API}/k/tell", "worker", json=body)
        assert again.json()["new"] == 0
    assert asked["why"] == "the study is finished"
    study = Study.open(served.store, "k")
    direct = ew.play(ew.active.adaptive_nystrom(N), MatrixOracle(A))
    same_result(study.result(), direct)
    entries = served.ready(f"{API}/k/entries", "POST", json={"row": [1], "col": [2]}).json()
    assert entries["value"] == [study.result().entry(1, 2)]
    said = served.ready(f"{API}/k/result").json()
    assert said["certificates"][0]["value"] == study.certificate.value
    assert served.call("GET", f"{API}/k", "reader").json()["answered"] == study.status()["answered"]
    lines = served.call("GET", f"{API}/k/log", "reader").json()
    assert [x["value"] for x in lines] == [x["value"] for x in study.log()]


def test_answers_are_kept_whole_or_not_at_all(served):
    asked = served.ask("k", limit=3)
    body = {"id": asked["id"], "value": [1.0, "one", 1.0]}
    assert served.call("POST", f"{API}/k/tell", "worker", json=body).status_code == 422
    assert served.call("GET", f"{API}/k").json()["answered"] == 0
    uneven = {"id": asked["id"], "value": [1.0]}
    assert served.call("POST", f"{API}/k/tell", "worker", json=uneven).status_code == 422


def test_reading_runs_no_plan_and_writes_nothing(served, monkeypatch):
    served.ready(f"{API}/k/result")

    def refuse(*_, **__):
        raise AssertionError("a page must not do that")

    link = served.app.state.door.link()
    monkeypatch.setattr("entrywise.study.steps.Steps.next", refuse)
    monkeypatch.setattr("entrywise.study.database.Database.write", refuse)
    assert served.client.get(f"/enter?link={link}").status_code == 200
    for path in ("/", "/study/k", "/study/k/work", "/study/k/log", f"{API}/k", f"{API}/k/log",
                 f"{API}/k/labels", f"{API}/k/tile", f"{API}/k/cell?row=0&col=1", API):  # fmt: skip
        assert served.client.get(path).status_code == 200, path


def test_pages_open_while_a_writer_holds_the_database(served, tmp_path):
    link = served.app.state.door.link()
    writer = sqlite3.connect(tmp_path / "lab.db", timeout=1)
    writer.execute("BEGIN IMMEDIATE")  # the only lock for writing that there is
    try:
        assert served.client.get(f"/enter?link={link}").status_code == 200
        for path in ("/", "/study/k", "/study/k/work", "/study/k/log", f"{API}/k", f"{API}/k/tile"):
            assert served.client.get(path).status_code == 200, path
    finally:
        writer.rollback()
        writer.close()


@pytest.mark.slow
def test_files_are_uploaded_and_an_odd_answer_is_asked_back(served):
    rows = "model\n" + "\n".join(f"m{k}" for k in range(5))
    cols = "task\n" + "\n".join(f"t{k}" for k in range(8))
    files = {"rows": ("r.csv", rows), "cols": ("c.csv", cols)}
    data = {"name": "board", "plan": "most-informative", "goal": "scores", "budget": "35"}
    made = served.call("POST", f"{API}/upload", data=data, files=files)
    assert made.status_code == 201, made.text
    value = np.add.outer(np.arange(5.0), np.sin(np.arange(8.0)))
    odd = None
    for _ in range(40):
        asked = served.ask("board", limit=5, worker="w")
        if not asked["id"]:
            break
        right = [float(value[i, j]) for i, j in asked["index"]]
        if odd is None and served.call("GET", f"{API}/board").json()["spent"] > 20:
            odd = {"id": asked["id"], "value": [1e6, *right[1:]], "sure": False}
            refused = served.call("POST", f"{API}/board/tell", "worker", json=odd)
            assert refused.status_code == 409
            assert refused.json()["odd"] == [0]
        lines = [f"{q},{x}" for q, x in zip(asked["id"], right, strict=True)]
        sheet = {"file": ("a.csv", "id,value\n" + "\n".join(lines))}
        told = served.call("POST", f"{API}/board/upload", "worker", files=sheet)
        assert told.json()["new"] == len(right)
    assert odd is not None
    board = served.ready(f"{API}/board/result").json()["board"]
    assert board["row"][0] == "m4"
    assert served.ready(f"{API}/board/report.html").text.startswith("<!doctype html>")
    data = served.call("GET", f"{API}/board/tile", "reader")
    assert (data.headers["x-rows"], data.headers["x-cols"]) == ("5", "8")
    states = np.frombuffer(data.content[:40], np.uint8)
    assert (states == 2).sum() == served.call("GET", f"{API}/board").json()["answered"]


def test_what_money_buys_is_said_before_it_is_spent(served):
    rows = "model\n" + "\n".join(f"m{k}" for k in range(4))
    cols = "task\n" + "\n".join(f"t{k}" for k in range(10))
    files = {"rows": ("r.csv", rows), "cols": ("c.csv", cols)}
    before = len(served.call("GET", API).json())

    def told(budget, **more):
        data = {"budget": str(budget), "currency": "EUR"}
        found = served.call("POST", "/api/v1/forecast", data=data, files=files | more)
        assert found.status_code == 200, found.text
        return " ".join(found.json()["words"])

    assert "40 cells. All of them would cost 40 EUR." in told(20)
    assert "20 EUR buys about 20 of them (50 %)." in told(20)
    # from 5 of 10 cells at random: 1.645 sqrt((1 - .5) / 5) = .52 deviations
    assert "5.0 cells a row" in told(20)
    assert "± 0.52 times" in told(20)
    assert "buys them all" in told(40)
    assert "Fewer than 28 cells tell little" in told(20)
    lines = [f"m{i},t{j},{1 + 3 * (i == 0)}" for i in range(4) for j in range(10)]
    quotes = {"prices": ("p.csv", "row,col,price\n" + "\n".join(lines))}
    assert "cost 70 EUR" in told(35, **quotes)
    assert "buys about 20 of them (50 %), at most 31 if they are the cheapest" in told(35, **quotes)
    seen = [f"m0,t{j},{(-1) ** j}" for j in range(4)]  # their deviation is sqrt(4 / 3)
    known = {"known": ("k.csv", "row,col,value\n" + "\n".join(seen))}
    words = told(16, **known)
    assert "40 cells, 4 of them known" in words
    assert "± 0.6" in words
    empty = {"known": ("k.csv", "row,col,value\n")}
    data = {"budget": "3"}
    refused = served.call("POST", "/api/v1/forecast", data=data, files=files | empty)
    assert refused.status_code == 422
    assert served.call("POST", "/api/v1/forecast", "worker", data=data).status_code == 403
    assert len(served.call("GET", API).json()) == before


def test_a_tall_matrix_is_a_few_tiles(served):
    m, n = 5000, 7
    rows = np.arange(0, m, 3)
    known = ew.Observations.from_triplets(rows, rows % n, rows / m, (m, n))
    plan = {"plan": "two-phase", "params": {"shape": [m, n], "rank": 1}}
    Study.create(served.store, "tall", seed=1, budget=100, known=known, **plan)

    def tile(**place):
        found = served.call("GET", f"{API}/tall/tile", "reader", params=place)
        shape = (int(found.headers["x-rows"]), int(found.headers["x-cols"]))
        size = shape[0] * shape[1]
        states = np.frombuffer(found.content[:size], np.uint8).reshape(shape)
        return states, np.frombuffer(found.content[size:], "<f4").reshape(shape)

    there = np.zeros((m, n), bool)
    there[rows, rows % n] = True
    states, values = tile(row=1000, rows=500, cols=7)
    np.testing.assert_array_equal(states == 1, there[1000:1500])
    at = np.argwhere(states == 1)[0]
    assert values[tuple(at)] == pytest.approx((1000 + at[0]) / m, rel=1e-6)
    states, _ = tile(rows=512, cols=512, row_every=16)
    assert states.shape == (313, 7)
    coarse = np.pad(there, ((0, 8), (0, 0))).reshape(313, 16, 7).any(axis=1)
    np.testing.assert_array_equal(states >= 1, coarse | (states > 1))  # more than known: asked
    assert (states == 1).mean() > 0.5
    states, _ = tile(rows=512, cols=512, row_every=16, col_every=2)
    assert states.shape == (313, 4)


def test_an_owner_corrects_and_extends(served):
    asked = served.ask("k", limit=1)
    served.call("POST", f"{API}/k/tell", "worker", json={"id": asked["id"], "value": [99.0]})
    body = {"id": asked["id"][0], "value": answers(asked)[0], "reason": "misread"}
    assert served.call("POST", f"{API}/k/amend", "worker", json=body).status_code == 403
    assert served.call("POST", f"{API}/k/amend", "owner", json=body).status_code == 200
    log = served.call("GET", f"{API}/k/log").json()
    assert [x["reason"] for x in log if x["reason"]] == ["misread"]
    what = [x["what"] for x in log if x["value"] is not None]
    said = [
        word for word in what if word != "memory"
    ]  # the plan, begun again, may have asked for it already
    assert sorted(said) == ["amended", "told"]


# attacks


def test_nobody_comes_in_without_a_token(served):
    for method, path in [
        *[("GET", p) for p in (API, f"{API}/k", f"{API}/k/log", "/api/v1/tokens")],
        *[("POST", p) for p in (API, f"{API}/k/ask", f"{API}/k/tell", "/api/v1/tokens")],
    ]:
        for role in (None, "ew_wrong", ""):
            answer = served.call(method, path, role, json={})
            assert answer.status_code == 401, (path, role)
    assert "answered" not in served.call("GET", "/study/k", None).text


@pytest.mark.slow
def test_roles_studies_expiry_and_revocation_hold(served):
    mine = tokens.create(served.store, "worker", study="k")[0]
    assert served.call("GET", f"{API}/k", mine).status_code == 200
    assert served.call("GET", f"{API}/other", mine).status_code == 403
    assert [s["name"] for s in served.call("GET", API, mine).json()] == ["k"]
    assert served.call("POST", f"{API}/k/ask", "reader", json={}).status_code == 403
    assert served.call("POST", API, "worker", json={"name": "x", "plan": "y"}).status_code == 403
    own = tokens.create(served.store, "owner", study="k")[0]
    assert served.call("GET", "/api/v1/tokens", own).status_code == 403
    assert served.call("POST", "/api/v1/tokens", own, json={"role": "owner"}).status_code == 403
    brief, made = tokens.create(served.store, "reader", days=1)
    now = served.store.now()
    served.store.clock = lambda: now + 2 * 86400
    assert served.call("GET", f"{API}/k", brief).status_code == 401
    served.store.clock = None
    assert served.call("GET", f"{API}/k", brief).status_code == 200
    tokens.revoke(served.store, made.id)
    assert served.call("GET", f"{API}/k", brief).status_code == 401


def test_tokens_are_kept_as_hashes(served, tmp_path):
    made = served.call("POST", "/api/v1/tokens", json={"role": "worker", "title": "anna"})
    secret = made.json()["token"]
    served.store.database.close()
    kept = b"".join(p.read_bytes() for p in tmp_path.iterdir())
    assert secret.encode() not in kept
    assert secret not in served.call("GET", "/api/v1/tokens").text


def test_a_link_works_once_and_its_cookie_is_safe(served):
    link = served.app.state.door.link()
    first = served.client.get(f"/enter?link={link}", follow_redirects=False)
    cookie = first.headers["set-cookie"].lower()
    assert first.status_code == 303
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    served.client.cookies.clear()
    assert served.client.get(f"/enter?link={link}").status_code == 401
    assert served.client.get("/").status_code == 401
    assert served.client.get("/enter?link=guessed").status_code == 401


def test_a_cookie_is_marked_secure_behind_tls(tmp_path):
    store = Store(str(tmp_path / "lab.db"))
    app = create_app(store, secure=True)
    client = TestClient(app, base_url="https://localhost")
    answer = client.get(f"/enter?link={app.state.door.link()}", follow_redirects=False)
    assert "secure" in answer.headers["set-cookie"].lower()


def test_a_session_needs_the_csrf_header_to_change_anything(served):
    served.client.get(f"/enter?link={served.app.state.door.link()}")
    body = {"limit": 1}
    assert served.client.post(f"{API}/k/ask", json=body).status_code == 403
    wrong = {guard.CSRF: "guessed"}
    assert served.client.post(f"{API}/k/ask", json=body, headers=wrong).status_code == 403
    page = served.client.get("/").text
    csrf = page.split('name="csrf" content="')[1].split('"')[0]
    right = {guard.CSRF: csrf}
    assert served.client.post(f"{API}/k/ask", json=body, headers=right).status_code == 200
    elsewhere = {"origin": "https://evil.example"}
    data = {"token": served.secrets["owner"]}
    assert served.client.post("/enter", data=data, headers=elsewhere).status_code == 403


def test_a_session_ends_with_its_token(served):
    secret, made = tokens.create(served.store, "reader")
    here = {"origin": "http://localhost:8642"}
    served.client.post("/enter", data={"token": secret}, headers=here)
    assert served.client.get("/").status_code == 200
    tokens.revoke(served.store, made.id)
    assert served.client.get("/").status_code == 401


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "", "127.0.0.1.nip.io"])
def test_another_host_is_refused(served, host):
    assert served.call("GET", f"{API}/k", headers={"host": host}).status_code == 421


@pytest.mark.parametrize(
    "path",
    ["/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static//etc/passwd",
     f"{API}/..%252f..%252fetc%252fpasswd", "/study/..%252f..%252fetc"],
)  # fmt: skip
def test_no_file_outside_is_read(served, path):
    served.client.get(f"/enter?link={served.app.state.door.link()}")
    assert served.call("GET", path).status_code == 404


def test_bodies_are_bounded(tmp_path):
    served = Served(Store(str(tmp_path / "lab.db")), largest=1000)
    big = b"x" * 2000
    assert served.call("POST", API, content=big).status_code == 413

    def parts():
        yield from (b"x" * 400 for _ in range(5))

    assert served.call("POST", API, content=parts()).status_code == 413
    claimed = {"content-length": str(2**30)}
    assert served.call("POST", API, content=b"{}", headers=claimed).status_code == 413


@pytest.mark.slow
def test_a_slow_body_is_given_up(tmp_path):
    served = Served(Store(str(tmp_path / "lab.db")), patience=0.2)
    sent = []

    async def receive():
        await asyncio.sleep(0.05)
        return {"type": "http.request", "body": b" ", "more_body": True}

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http", "method": "POST", "path": API, "raw_path": API.encode(), "query_string": b"",
        "headers": [(b"host", b"localhost"), (b"content-type", b"application/json"),
                    (b"authorization", f"Bearer {served.secrets['owner']}".encode())],
        "scheme": "http", "server": ("localhost", 80), "client": ("127.0.0.1", 1), "root_path": "",
        "http_version": "1.1", "asgi": {"version": "3.0"},
    }  # fmt: skip
    asyncio.run(asyncio.wait_for(served.app(scope, receive, send), 10))
    assert sent[0]["status"] == 408


def test_code_cannot_be_named(served):
    body = {"name": "x", "plan": "os:system", "params": {}}
    assert served.call("POST", API, json=body).status_code == 422
    files = {"rows": ("r.csv", "r\na")}
    data = {"name": "x", "plan": "study_plans:anything"}
    assert served.call("POST", f"{API}/upload", data=data, files=files).status_code == 422


def test_every_answer_has_safe_headers(served):
    for path in ("/", "/static/entrywise.js", f"{API}/k", "/nowhere"):
        headers = served.call("GET", path, None).headers
        policy = headers["content-security-policy"]
        assert "unsafe" not in policy
        assert "default-src 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"


def test_pages_have_no_inline_code(served):
    served.client.get(f"/enter?link={served.app.state.door.link()}")
    for path in ("/", "/study/k", "/study/k/work", "/study/k/log", "/new", "/tokens"):
        page = served.client.get(path).text
        assert " style=" not in page
        assert "<style" not in page
        assert " onclick" not in page
        assert page.count("<script") == 1


def test_a_message_names_no_other_study(served):
    mine = tokens.create(served.store, "worker", study="k")[0]
    answer = served.call("GET", f"{API}/missing")
    assert answer.status_code == 404
    assert "other" not in answer.text
    assert "other" not in served.call("GET", f"{API}/missing", mine).text


def test_an_answer_is_sent_at_once(tmp_path, monkeypatch):
    seen = []

    def run(server, sockets):
        seen.extend(s.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) for s in sockets)
        sockets[0].close()

    monkeypatch.setattr(uvicorn.Server, "run", run)
    Store(str(tmp_path / "lab.db")).database.close()
    before = sys.getswitchinterval()
    done = entrywise("serve", tmp_path / "lab.db", "--port", 0, "--no-open")
    sys.setswitchinterval(before)
    assert (done.returncode, len(seen)) == (0, 1), done.stderr
    assert seen[0]


# the client


@pytest.fixture
def address(served):
    """The service on a port of this machine."""
    config = uvicorn.Config(served.app, port=0, log_level="error", lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join(10)


def test_the_client_is_a_study(served, address):
    study = ew.Study.open(address, "k", token=served.secrets["owner"])
    assert not study.finished
    first = study.ask(N, worker="w")
    study.tell([(q, float(A[q.index])) for q in first], worker="w")
    told = {q.index for q in first}
    assert study.result().cost == len(told)  # never older than what was told before
    while asked := study.ask(5, worker="w"):
        assert study.tell([(q, float(A[q.index])) for q in asked], worker="w") == len(asked)
    assert study.finished
    same_result(study.result(), Study.open(served.store, "k").result())
    assert next(study.log())["id"] == "0.0"
    with pytest.raises(TellError):
        study.tell([("0.0", 12345.0)])
    with pytest.raises(StoreError, match="token"):
        ew.Study.open(address, "k", token="ew_wrong")
    with pytest.raises(ParameterError, match="https"):
        ew.Study.open("http://far.example", "k", token="ew_x")


def test_a_name_may_hold_anything(served, address):
    body = {"name": NASTY, "plan": "adaptive-nystrom", "params": {"n": 3}, "seed": 1}
    assert served.call("POST", API, json=body).status_code == 201
    assert NASTY in [s["name"] for s in served.call("GET", API).json()]
    study = ew.Study.open(address, NASTY, token=served.secrets["owner"])
    assert study.status()["name"] == NASTY
    name = "a%252Fb%2520%253Cscript%253E50%2525"
    with httpx.Client(base_url=address, follow_redirects=True) as client:
        client.get(f"/enter?link={served.app.state.door.link()}")
        for path in ("/", f"/study/{name}", f"/study/{name}/work"):
            page = client.get(path).text
            assert "<script>50" not in page
            assert "&lt;script&gt;50" in page


@pytest.mark.slow
def test_the_service_sends_news(served, address):
    headers = {"authorization": f"Bearer {served.secrets['reader']}"}
    with httpx.stream("GET", f"{address}{API}/k/events", headers=headers, timeout=20) as stream:
        lines = stream.iter_lines()
        assert next(lines) == "event: news"
        served.ask("k", limit=1)
        assert any(line == "event: news" for line in lines)
