"""The page in a real browser: the stories of a newcomer, two workers, an owner and a reader without a network."""

from __future__ import annotations

import os
import shutil
import threading
import time

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the page needs entrywise[web]")
sync_api = pytest.importorskip("playwright.sync_api", reason="the page is tested by playwright")
axe = pytest.importorskip(
    "axe_playwright_python.sync_playwright", reason="axe-core looks at the page"
)

import uvicorn  # noqa: E402

from entrywise import fragments  # noqa: E402
from entrywise.apply.leaderboard import Bought, scores  # noqa: E402
from entrywise.observations import Observations  # noqa: E402
from entrywise.study import Store, Study, tokens  # noqa: E402
from entrywise.web.app import create_app  # noqa: E402
from entrywise.web.report import written  # noqa: E402
from entrywise.web.story import all_cells, story  # noqa: E402

expect = sync_api.expect
CHROMIUM = shutil.which("chromium")
SLOW = 60_000  # milliseconds that a step of a story may take on a busy machine
ROWS = [f"model {k}" for k in range(7)] + ["<script>alert(1)</script>"]
COLS = [f"task {k}" for k in range(9)] + ["שלום 💊"]
TRUTH = np.add.outer(np.arange(8.0), np.sin(np.arange(10.0)))

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def browser():
    """Debian's Chromium, without a window."""
    if CHROMIUM is None:
        if os.environ.get("ENTRYWISE_REQUIRE_CHROMIUM") == "1":
            pytest.fail("ENTRYWISE_REQUIRE_CHROMIUM is set, but chromium is not installed")
        pytest.skip("chromium is not installed (on Debian: apt-get install chromium)")
    with sync_api.sync_playwright() as play:
        found = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


class Site:
    """A service on a port of this machine."""

    def __init__(self, store):
        self.store = store
        self.app = create_app(store)
        config = uvicorn.Config(self.app, port=0, log_level="error", lifespan="off")
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)
        port = self.server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self.foreign, self.errors = [], []

    def enter(self, browser, **options):
        """Return a page of a new browser context that came in by a one-time link."""
        context = browser.new_context(**options)
        page = context.new_page()
        page.set_default_timeout(SLOW)
        page.on("request", self._see)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("dialog", lambda dialog: self.errors.append(dialog.message))
        page.goto(f"{self.url}/enter?link={self.app.state.door.link()}")
        return page

    def _see(self, request):
        if not request.url.startswith((self.url, "data:", "blob:")):
            self.foreign.append(request.url)

    def close(self):
        self.server.should_exit = True
        self.thread.join(10)
        self.app.state.background.close()


@pytest.fixture
def site(tmp_path):
    store = Store(str(tmp_path / "lab.db"))
    found = Site(store)
    yield found
    found.close()
    assert not found.foreign
    assert not found.errors


def ask(page, worker, limit):
    """Ask for questions by the form; return the entries that are shown."""
    page.fill("#ask [name=worker]", worker)
    page.fill("#ask [name=limit]", str(limit))
    page.click("text=Give me questions")
    expect(
        page.locator("#tell tbody tr").or_(page.locator("#said:not(:empty)")).first
    ).to_be_visible(timeout=SLOW)
    found = []
    for line in page.locator("#tell tbody tr").all():
        texts = line.locator("td").all_inner_texts()
        found.append((texts[0], ROWS.index(texts[1]), COLS.index(texts[2])))
    return found


def type_in(page, entries):
    """Answer with the keyboard alone: each value, then Enter."""
    first = page.locator("#tell tbody input").first
    first.focus()
    for _, i, j in entries:
        page.keyboard.type(repr(float(TRUTH[i, j])))
        page.keyboard.press("Enter")


def paste(page, entries):
    """Paste a column into the first field, and tell."""
    text = "\r\n".join(repr(float(TRUTH[i, j])) for _, i, j in entries)
    page.locator("#tell tbody input").first.focus()
    page.evaluate(
        """text => {
            const data = new DataTransfer();
            data.setData("text", text);
            const happened = new ClipboardEvent("paste", {clipboardData: data, bubbles: true, cancelable: true});
            document.activeElement.dispatchEvent(happened);
        }""",
        text,
    )
    page.click("#send")


def send(page, entries, folder):
    """Upload a file of answers."""
    sheet = folder / "answers.csv"
    lines = [f"{q},{float(TRUTH[i, j])!r}" for q, i, j in entries]
    sheet.write_text("id,value\n" + "\n".join(lines))
    page.set_input_files("#upload [name=file]", sheet)
    page.click("#upload button")


def settle(page, address):
    """Open a study, again until all that it shows is the latest: a telling rests for five times what the last one took."""
    for _ in range(300):
        try:
            page.goto(address)
        except sync_api.Error:  # the page loads itself again meanwhile
            continue
        if not page.locator("#stale, #waiting").count():
            return
        time.sleep(1)
    raise AssertionError("the page never had the latest")


def test_a_study_from_two_files_to_its_report(site, browser, tmp_path):
    # a newcomer makes a study from two files
    (tmp_path / "rows.csv").write_text("model\n" + "\n".join(ROWS), encoding="utf-8")
    (tmp_path / "cols.csv").write_text("task\n" + "\n".join(COLS), encoding="utf-8")
    owner = site.enter(browser)
    owner.click("text=New study >> nth=0")
    owner.fill("[name=name]", "models/<b>x</b> 50%")
    owner.set_input_files("[name=rows]", tmp_path / "rows.csv")
    owner.set_input_files("[name=cols]", tmp_path / "cols.csv")
    owner.select_option("[name=want]", label="Know every cell as well as the money allows")
    owner.fill("[name=budget]", "48")
    owner.press("[name=budget]", "Tab")
    expect(owner.locator("#forecast")).to_contain_text("80 cells", timeout=SLOW)
    expect(owner.locator("#forecast")).to_contain_text("buys about 48 of them (60 %)")
    owner.click("text=Begin")
    expect(owner.locator("h1")).to_have_text("models/<b>x</b> 50%", timeout=SLOW)
    name = "models/<b>x</b> 50%"
    study = Study.open(site.store, name)

    # two workers answer by form, paste and upload
    here = owner.url
    anna, ben = site.enter(browser), site.enter(browser)
    for page in (anna, ben):
        page.goto(f"{here}/work")
    done = 0
    ways = [type_in, paste, send]
    while done < 32:
        for worker, page in (("anna", anna), ("ben", ben)):
            entries = ask(page, worker, 5)
            assert entries, page.locator("#said").inner_text()
            way = ways[(done // 5) % 3]
            way(page, entries, tmp_path) if way is send else way(page, entries)
            expect(page.locator("#said")).to_contain_text("they are kept", timeout=SLOW)
            if way is send:
                page.reload()
            done += len(entries)
    assert study.status()["answered"] == done

    # one is killed, and another takes over once the lease is over
    held = ask(ben, "ben", 4)
    ben.context.close()
    assert study.status()["leased"] == len(held)
    now = site.store.now()
    site.store.clock = lambda: now + 2 * 3600
    again = ask(anna, "anna", 4)
    assert {q for q, _, _ in again} & {q for q, _, _ in held}

    # a slip of the pen is asked back
    slip = anna.locator("#tell tbody input").first
    slip.fill("1e6")
    anna.click("#send")
    expect(anna.locator("#really")).to_be_visible(timeout=SLOW)
    assert study.status()["answered"] == done
    anna.click("#send")
    expect(anna.locator("#said")).to_contain_text("1 of 1", timeout=SLOW)
    wrong = again[0]

    # the owner corrects it
    owner.goto(f"{here}/log")
    owner.click(f'[aria-label^="correct {wrong[0]}:"]')
    right = repr(float(TRUTH[wrong[1], wrong[2]]))
    owner.fill("#log form input >> nth=0", right)
    owner.fill("#log form input >> nth=1", "a slip of the pen")
    owner.click("#log form button")
    expect(owner.locator("#said")).to_contain_text("is corrected", timeout=SLOW)
    lines = [x for x in study.log() if x["id"] == wrong[0] and x["value"] is not None]
    assert [x["value"] for x in lines] == [1e6, float(right)]
    assert [x["reason"] for x in lines] == [None, "a slip of the pen"]
    expect(owner.locator("#log")).to_contain_text("a slip of the pen", timeout=SLOW)

    # the numbers of the page are those of the command line
    settle(owner, here)
    expect(owner.locator("#sentence")).to_have_text(study.status()["sentence"] + ".")
    bought = Bought.from_log((8, 10), study.log(), study.labels.index)
    board = scores(study.result(), bought, 0.9, study.prices)
    best = int(board.order[0])
    texts = owner.locator("table tbody tr").first.locator("td").all_inner_texts()
    assert texts[0] == ROWS[best]
    numbers = fragments.figures(*(float(x[best]) for x in (board.mean, board.low, board.high)))
    assert texts[1:4] == list(numbers)  # as `leaderboard report` prints

    # the report is saved, and opens without a network
    with owner.expect_download() as caught:
        owner.click("#report")
    caught.value.save_as(tmp_path / "report.html")
    offline = browser.new_context(offline=True)
    page = offline.new_page()
    page.on("request", lambda r: site.errors.append(r.url) if r.url.startswith("http") else None)
    page.goto(f"file://{tmp_path}/report.html")
    expect(page.locator("h1")).to_have_text(name)
    expect(page.locator("#answer")).to_contain_text(numbers[0])
    assert page.evaluate("document.scripts.length") == 0


@pytest.fixture
def half(site):
    """A study with some answers."""
    study = Study.create(
        site.store,
        "half",
        plan="most-informative",
        params={"goal": "scores", "rank": 2},
        seed=0,
        budget=60,
        rows=ROWS,
        cols=COLS,
    )
    while study.status()["spent"] < 40:
        study.tell([(q.id, float(TRUTH[q.index])) for q in study.ask(8, worker="w")])
    return study


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_every_page_fits_and_can_be_read(site, half, browser, width, scheme):
    page = site.enter(browser, viewport={"width": width, "height": 800}, color_scheme=scheme)
    for path in ("/", "/study/half", "/study/half/work", "/study/half/log", "/new", "/tokens"):
        page.goto(site.url + path)
        if path == "/study/half":  # until its story is told the page waits, and loads itself again
            expect(page.locator("text=Leaderboard").first).to_be_visible(timeout=SLOW)
        if path == "/study/half/log":
            expect(page.locator("#log tbody tr").first).to_be_visible(timeout=SLOW)
        expect(page.locator("h1")).to_have_count(1, timeout=SLOW)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        assert charts(page) == (path == "/study/half"), path
        assert not sideways(page), path
        for field in page.locator("input, select, textarea").all():
            labelled = field.evaluate("x => x.labels.length > 0 || x.ariaLabel !== null")
            assert labelled, (path, field.evaluate("x => x.outerHTML"))
        ink, ground = page.evaluate(
            "() => ['color', 'backgroundColor'].map(k => getComputedStyle(document.body)[k])"
        )
        assert contrast(ink, ground) > 7
        assert not serious(page), path


def charts(page):
    """Tell whether a page shows pictures; each is shown once, whole, in the size that fits."""
    found = page.locator(".chart").all()
    seen = [chart.bounding_box() for chart in found if chart.is_visible()]
    assert 2 * len(seen) == len(found)
    width = page.viewport_size["width"]
    for box in seen:
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        assert box["width"] > 0.6 * width
    cut = "x => x.scrollWidth > x.clientWidth + 1 && x.querySelector('svg') !== null"
    assert not any(place.evaluate(cut) for place in page.locator(".scroll").all())
    return bool(seen)


def sideways(page):
    """Return the tables of a page that must be scrolled to be read."""
    wide = "all => all.filter(x => x.scrollWidth > x.clientWidth + 1).map(x => x.innerText)"
    return page.eval_on_selector_all(".scroll", wide)


def serious(page):
    """Return what axe-core calls serious or critical on a page."""
    found = axe.Axe().run(page).response["violations"]
    return [
        (one["id"], one["impact"], [node["html"] for node in one["nodes"]])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_report_can_be_read_by_everybody(half, browser, tmp_path, width, scheme):
    told = story(half)
    path = tmp_path / "report.html"
    path.write_text(written(told, all_cells(half, told)), encoding="utf-8")
    assert path.stat().st_size < 3e6
    size = {"width": width, "height": 800}
    page = browser.new_context(viewport=size, color_scheme=scheme, offline=True).new_page()
    page.goto(f"file://{path}")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert charts(page)
    page.eval_on_selector_all("details", "all => all.forEach(one => one.open = true)")
    assert not sideways(page)
    assert not serious(page)


def contrast(one, other):
    """Return the contrast of two colours, as WCAG 2 defines it."""

    def light(colour):
        parts = np.array([int(x) for x in colour[4:-1].split(",")]) / 255
        linear = np.where(parts <= 0.03928, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return linear @ (0.2126, 0.7152, 0.0722)

    high, low = sorted((light(one), light(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_the_map_is_moved_by_keys_and_tells_about_a_cell(site, half, browser):
    page = site.enter(browser)
    page.goto(f"{site.url}/study/half")
    expect(page.locator("text=Leaderboard")).to_be_visible(timeout=SLOW)
    canvas = page.locator("#map")
    expect(page.locator("#legend li").first).to_be_visible(timeout=SLOW)
    canvas.focus()
    for key in ("+", "+", "ArrowRight", "ArrowDown", "-"):
        page.keyboard.press(key)
    page.click("#whole")
    box = canvas.bounding_box()
    i, j = 7, 9
    canvas.hover(position={"x": (j + 0.5) * box["width"] / 10, "y": (i + 0.5) * box["height"] / 8})
    expect(page.locator("#tip")).to_contain_text(ROWS[i], timeout=SLOW)
    expect(page.locator("#tip")).to_contain_text(COLS[j])


def test_a_hundred_thousand_rows_scroll(site, browser):
    m, n = 100_000, 20
    rows = np.arange(0, m, 7)
    known = Observations.from_triplets(rows, rows % n, np.sin(rows / 5000), (m, n))
    plan = {"plan": "two-phase", "params": {"shape": [m, n], "rank": 1}}
    Study.create(site.store, "tall", seed=1, budget=1000, known=known, **plan)
    page = site.enter(browser)
    tiles = []

    def count(request):
        if request.is_navigation_request():
            tiles.clear()
        elif "/tile?" in request.url:
            tiles.append(request.url)

    settle(page, f"{site.url}/study/tall")  # until its story is told the page loads itself again
    page.on("request", count)
    settle(page, f"{site.url}/study/tall")
    expect(page.locator("#legend li").first).to_be_visible(timeout=SLOW)
    assert 1 <= len(tiles) <= 4, "all of it is a few tiles"
    page.focus("#map")
    for _ in range(30):
        page.keyboard.press("+")
    page.keyboard.press("End")
    for _ in range(5):
        page.keyboard.press("PageUp")
    page.keyboard.press("Enter")
    expect(page.locator("#tip")).to_contain_text("(99", timeout=SLOW)  # rows 99,000 and more
    assert len(tiles) < 100


def test_news_comes_by_itself(site, half, browser):
    page = site.enter(browser)
    page.goto(f"{site.url}/study/half")
    expect(page.locator("text=Leaderboard")).to_be_visible(timeout=SLOW)
    time.sleep(1.5)
    question = half.ask(1, worker="elsewhere")[0]
    half.tell([(question.id, float(TRUTH[question.index]))])
    answered = half.status()["answered"]
    expect(page.locator("#sentence")).to_contain_text(f"{answered} answered", timeout=SLOW)


def test_a_worker_sees_only_what_a_worker_may(site, half, browser):
    Study.create(site.store, "secret", plan="adaptive-nystrom", params={"n": 3}, seed=1)
    token, _ = tokens.create(site.store, "worker", study="half", title="anna")
    page = browser.new_context().new_page()
    page.goto(site.url)
    page.fill("[name=token]", token)
    page.click("main button")
    expect(page.locator("table")).to_contain_text("half")
    assert "secret" not in page.content()
    for path, code in (
        ("/study/secret", 403),
        ("/new", 403),
        ("/tokens", 403),
        ("/study/half/work", 200),
    ):
        assert page.goto(site.url + path).status == code
    page.goto(f"{site.url}/study/half/log")
    expect(page.locator("#log tbody tr").first).to_be_visible(timeout=SLOW)
    assert page.locator("#log button").count() == 0
    expect(page.locator("#more")).to_be_hidden()
