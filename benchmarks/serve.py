"""The service beside direct calls: 32 clients ask and tell 20,000 answers in batches of 10; its memory; its map in a browser.

Bars: no answer lost or doubled, no error 5xx, throughput at least half of direct ``Study`` calls by as many processes,
the 99th percentile of a call below 20 times the median; what the service holds is flat over ``--requests`` (100,000);
the map of 1,000 x 1,000 is painted within a second and moved within 100 ms in the median (where Chromium is installed);
one of 100,000 rows is scrolled to its end, which is reported. ``--quick``: 8 clients, 2,000 answers, a tenth of the
requests, a map of 300 x 300. ``--only`` runs some sections; ``--schema N`` tries the schema with N requests instead.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import multiprocessing
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from _shared import Bars, show
from entrywise.checks import postgres
from entrywise.observations import Observations
from entrywise.study import Store, Study, tokens
from entrywise.study.remote import RemoteStudy

BATCH = 10
LOOKERS = 8  # who call at once, again and again
SECTIONS = ("throughput", "memory", "map", "rows")
# of the schema and its two modes: at least so many run as many examples as they are told
OPERATIONS = 32
MOVES = ["+", "ArrowRight", "ArrowDown", "-"] * 10
SCROLL = ["+"] * 12 + ["PageDown"] * 20 + ["End"] + ["PageUp"] * 20


def work(where: str, name: str, token: str | None, count: int, number: int, out: str) -> None:
    """Ask and tell until nothing is left or `count` answers were told; write what each call took."""
    study = Study.open(where, name) if token is None else Study.open(where, name, token=token)
    worker, told, took = f"w{number}", [], []
    broken = watched(study) if token else []
    while len(told) < count:
        start = time.perf_counter()
        asked = study.ask(BATCH, worker=worker)
        took.append(time.perf_counter() - start)
        if not asked:
            break
        start = time.perf_counter()
        new = study.tell([(q.id, float(q.index[0])) for q in asked], worker=worker)
        took.append(time.perf_counter() - start)
        assert new == len(asked)
        told += [q.id for q in asked]
    found = {"told": told, "took": took, "broken": len(broken)}
    Path(out, f"{number}.json").write_text(json.dumps(found))


def watched(study: RemoteStudy) -> list[int]:
    """Return a list that gets every code 5xx that comes back: the client itself tries again."""
    codes: list[int] = []
    say = study._lines.say

    def listening(*call):
        code, *rest = say(*call)
        if code >= 500:
            codes.append(code)
        return code, *rest

    study._lines.say = listening
    return codes


def crowd(where: str, name: str, token: str | None, clients: int, answers: int) -> dict[str, float]:
    """Let many processes work on a study; return throughput, what calls took, what was lost or doubled."""
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as out:
        each = answers // clients
        people = [
            context.Process(target=work, args=(where, name, token, each, k, out))
            for k in range(clients)
        ]
        start = time.perf_counter()
        for person in people:
            person.start()
        for person in people:
            person.join()
        seconds = time.perf_counter() - start
        failed = sum(person.exitcode != 0 for person in people)
        files = [json.loads(path.read_text()) for path in Path(out).glob("*.json")]
    told = [q for file in files for q in file["told"]]
    took = np.array([t for file in files for t in file["took"]])
    return {
        "answers": len(told),
        "doubled": len(told) - len(set(told)),
        "failed": failed,
        "5xx": sum(file["broken"] for file in files),
        "rate": len(told) / seconds,
        "median": float(np.median(took)),
        "late": float(np.quantile(took, 0.99)),
    }


@contextlib.contextmanager
def serving(database: str):
    """Run ``entrywise serve`` and give its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "entrywise",
        "serve",
        database,
        "--port",
        str(port),
        "--no-open",
    ]
    said = tempfile.NamedTemporaryFile("w+")  # noqa: SIM115  a pipe that nobody reads would fill up
    server = subprocess.Popen(command, stderr=said, text=True)
    try:
        link = ""
        while "link=" not in link:
            time.sleep(0.1)
            said.seek(0)
            link = said.readline()
        address = f"http://127.0.0.1:{port}"
        for _ in range(600):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{address}/static/entrywise.css")
                break
            time.sleep(0.1)
        yield address, link.split(": ", 1)[1].strip(), server.pid
    finally:
        server.terminate()
        server.wait(30)
        said.seek(0)
        print(*said.readlines()[1:], sep="", end="", file=sys.stderr)  # what went wrong there
        said.close()


def memory(pid: int) -> float:
    """Return what a process holds, in MB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def seconds_of(pid: int) -> float:
    """Return the CPU seconds of a process so far."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def growth(address: str, token: str, name: str, requests: int, pid: int) -> tuple[float, float]:
    """Make requests of several kinds, again and again; return the MB held after a tenth of them, and what came after.

    Caches and the allocator fill up first, so what is held after a tenth is where flat begins. Of ten requests one asks,
    one tells, one looks where the study stands and seven read its labels.
    """
    where = urlsplit(address)
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}

    def call(line: http.client.HTTPConnection, what: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body)
        line.request("POST" if data else "GET", f"/api/v1/studies/{name}{what}", data, headers)
        answer = line.getresponse()
        found = json.loads(answer.read())
        assert answer.status == 200, (answer.status, found)
        return found

    def rounds(count: int) -> None:
        line = http.client.HTTPConnection(where.hostname or "", where.port, timeout=600)
        for _ in range(count):
            asked = call(line, "/ask", {"limit": 1})["id"]
            call(line, "/tell", {"id": asked, "value": [1.0] * len(asked)})
            call(line, "")
            for _ in range(7):
                call(line, "/labels")

    def together(count: int) -> float:
        with ThreadPoolExecutor(LOOKERS) as pool:
            list(pool.map(rounds, [count // (10 * LOOKERS)] * LOOKERS))
        return memory(pid)

    held = together(requests // 10)
    return held, together(requests) - held


def tried(examples: int) -> None:
    """Let schemathesis try the service."""
    here = Path(__file__).parents[1]
    each = -(-examples // OPERATIONS)
    env = {**os.environ, "ENTRYWISE_SCHEMA_EXAMPLES": str(each)}
    test = [sys.executable, "-m", "pytest", "-q", "-s", str(here / "tests" / "test_schema.py")]
    sys.exit(subprocess.run(test, env=env, cwd=here).returncode)


def painted(address: str, link: str, name: str, keys: list[str]) -> tuple[float, float]:
    """Return the seconds to the first picture of the map, and the median of what each key takes."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page()
        page.goto(link)
        page.goto(f"{address}/study/{name}")
        page.wait_for_selector("#waiting", state="detached", timeout=300_000)
        start = time.perf_counter()
        page.goto(f"{address}/study/{name}", wait_until="commit")
        page.wait_for_selector("#legend li", timeout=60_000)
        first = time.perf_counter() - start
        page.focus("#map")
        moves = page.evaluate(
            """async (keys) => {
                const map = document.querySelector("#map");
                const took = [];
                for (const key of keys) {
                    const before = map.dataset.painted, start = performance.now();
                    map.dispatchEvent(new KeyboardEvent("keydown", {key}));
                    while (map.dataset.painted === before) await new Promise(requestAnimationFrame);
                    took.push(performance.now() - start);
                }
                return took;
            }""",
            keys,
        )
        browser.close()
    return first, float(np.median(moves)) / 1000


def throughput(places: dict[str, str], quick: bool, bars: Bars) -> None:
    """Compare clients of the service with as many processes that open the database."""
    clients, answers = (8, 2_000) if quick else (32, 20_000)
    rows = []
    for kind, url in places.items():
        store = Store(url)
        for name in ("direct", "served"):
            params = {"n": answers, "rank": 1}
            Study.create(store, name, plan="adaptive-nystrom", params=params, seed=1)
        token, _ = tokens.create(store, "worker")
        store.database.close()
        direct = crowd(url, "direct", None, clients, answers)
        with serving(url) as (address, _, pid):
            before, busy = memory(pid), seconds_of(pid)
            served = crowd(address, "served", token, clients, answers)
            grown, busy = memory(pid) - before, seconds_of(pid) - busy
        kept = Study.open(url, "served").status()["answered"]
        for name, one in (("direct", direct), ("served", served)):
            rows.append((kind, name, *(round(x, 4) for x in one.values())))
        print(
            f"{kind}: the service took {busy:.1f} s of CPU and grew by {grown:.1f} MB", flush=True
        )
        bars.at_most(f"{kind}: answers lost", served["answers"] - kept, 0)
        bars.at_most(f"{kind}: answers doubled", served["doubled"], 0)
        bars.at_most(f"{kind}: errors 5xx", served["5xx"], 0)
        bars.at_most(f"{kind}: clients that failed", served["failed"], 0)
        bars.at_least(f"{kind}: throughput, of direct", served["rate"] / direct["rate"], 0.5)
        late = served["late"] / served["median"]
        bars.at_most(f"{kind}: 99th percentile, of the median", late, 20)
    columns = (
        "database",
        "way",
        "answers",
        "doubled",
        "failed",
        "5xx",
        "a second",
        "median s",
        "99 % s",
    )
    show("asking and telling", columns, rows)


def flat(places: dict[str, str], requests: int, bars: Bars) -> None:
    """Look again and again, and see what the service holds."""
    for kind, url in places.items():
        store = Store(url)
        params = {"n": requests, "rank": 1}  # more questions than will be asked
        Study.create(store, "flat", plan="adaptive-nystrom", params=params, seed=1)
        token, _ = tokens.create(store, "worker")
        store.database.close()
        with serving(url) as (address, _, pid):
            held, crept = growth(address, token, "flat", requests, pid)
        print(f"{kind}: {held:.1f} MB, and {crept:+.1f} over {requests} requests", flush=True)
        bars.at_most(f"{kind}: growth over {requests} requests, MB", crept, 0.05 * held)


def square(url: str, quick: bool, bars: Bars) -> None:
    """Paint and move the map of a square matrix."""
    side = 300 if quick else 1000
    rng = np.random.default_rng(0)
    at = rng.choice(side * side, side * side // 20, replace=False)
    i, j = at // side, at % side
    known = Observations.from_triplets(i, j, np.sin(i / 50) + j / side, (side, side))
    params = {"shape": [side, side], "rank": 3}
    plan = {"plan": "most-informative", "params": params, "budget": 2000}
    Study.create(url, "map", seed=1, known=known, **plan)
    with serving(url) as (address, link, _):
        first, move = painted(address, link, "map", MOVES)
    show("map", ("cells", "first paint s", "move s"), [(side * side, first, move)])
    bars.at_most("first paint of the map, s", first, 1.0)
    bars.at_most("a move of the map, s", move, 0.1)


def tall(url: str, *_: object) -> None:
    """Scroll through very many rows, down to the last; what it takes is reported."""
    m, n = 100_000, 20
    rows = np.arange(0, m, 7)
    known = Observations.from_triplets(rows, rows % n, np.sin(rows / 5000), (m, n))
    plan = {"plan": "two-phase", "params": {"shape": [m, n], "rank": 1}, "budget": 1000}
    Study.create(url, "tall", seed=1, known=known, **plan)
    with serving(url) as (address, link, _):
        first, move = painted(address, link, "tall", SCROLL)
    show("rows", ("rows", "first paint s", "move s"), [(m, first, move)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="8 clients, 2,000 answers")
    parser.add_argument("--only", choices=SECTIONS, action="append")
    parser.add_argument("--database", choices=("sqlite", "postgresql"), action="append")
    parser.add_argument("--requests", type=int, default=100_000, help="over which memory is flat")
    parser.add_argument("--schema", type=int, metavar="N", help="only try the schema, N times")
    options = parser.parse_args()
    if options.schema:
        tried(options.schema)
    only, databases = options.only or SECTIONS, options.database or ("sqlite", "postgresql")
    bars = Bars()
    with contextlib.ExitStack() as stack:
        file = str(Path(stack.enter_context(tempfile.TemporaryDirectory()), "lab.db"))
        places = {"sqlite": file} if "sqlite" in databases else {}
        if "postgresql" in databases and postgres.binaries() is not None:
            places["postgresql"] = stack.enter_context(postgres.server())
        if "throughput" in only:
            throughput(places, options.quick, bars)
        if "memory" in only:
            flat(places, options.requests // (10 if options.quick else 1), bars)
        for name, look in (("map", square), ("rows", tall)):
            if name in only and shutil.which("chromium"):
                look(file, options.quick, bars)
    bars.end()


if __name__ == "__main__":
    main()
