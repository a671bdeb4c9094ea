"""Photograph the page and the report of a made-up study for the manual, into docs/_static (needs Chromium).

python docs/screens.py
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import uvicorn
from PIL import Image
from playwright.sync_api import sync_playwright

from entrywise.study import Store, Study
from entrywise.web.app import create_app

STATIC = Path(__file__).parent / "_static"
SHAPE = (24, 80)
SPENT = 480


def study(store: Store) -> Study:
    """Return a study of 24 models that answer 80 tasks, a quarter of it bought; simulated, seed 0."""
    rng = np.random.default_rng(0)
    m, n = SHAPE
    skill = np.sort(rng.normal(0.0, 1.0, m))[::-1]
    wanted = rng.normal(0.0, 1.0, (n, 3))
    has = np.column_stack([skill, rng.normal(0.0, 0.6, (m, 2))])
    truth = (
        60 + 9 * skill[:, None] - 8 * wanted[:, 0] + 4 * has @ wanted.T + rng.normal(0, 3, (m, n))
    )
    made = Study.create(
        store,
        "models",
        plan="row-scores",
        params={"goal": "scores"},
        seed=1,
        budget=640,
        currency="EUR",
        rows=[f"model-{chr(97 + i)}" for i in range(m)],
        cols=[f"task {j + 1}" for j in range(n)],
    )
    while made.status()["spent"] < SPENT and (asked := made.ask(40, worker="anna")):
        made.tell([(q.id, round(float(truth[q.index]), 1)) for q in asked], worker="anna")
    return made


def keep(name: str, height: int) -> None:
    """Keep the top of a picture, in few colours."""
    path = STATIC / name
    whole = Image.open(path).convert("RGB")
    whole.crop((0, 0, whole.width, min(height, whole.height))).quantize(200).save(
        path, optimize=True
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        store = Store(str(Path(folder, "lab.db")))
        study(store)
        app = create_app(store)
        server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", lifespan="off"))
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        here = f"http://127.0.0.1:{port}"
        browser = play.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1100, "height": 900})
        page.set_default_timeout(120_000)
        page.goto(f"{here}/enter?link={app.state.door.link()}")
        page.goto(f"{here}/study/models")
        page.wait_for_selector(".chart.wide")
        page.wait_for_selector("#legend li")
        page.select_option("#sort", label="by score")
        box = page.locator("#map").bounding_box()
        page.mouse.move(box["x"] + box["width"] / 3, box["y"] + 40)
        page.wait_for_timeout(1500)
        page.screenshot(path=STATIC / "page-study.png", full_page=True)
        page.set_viewport_size({"width": 390, "height": 760})
        page.goto(f"{here}/study/models/work")
        page.fill("#ask [name=worker]", "ben")
        page.fill("#ask [name=limit]", "5")
        page.click("text=Give me questions")
        page.wait_for_selector("#tell tbody tr")
        page.screenshot(path=STATIC / "page-work.png", full_page=True)
        browser.close()
        server.should_exit = True
        thread.join(10)
        app.state.background.close()
    keep("page-study.png", 1610)
    keep("page-work.png", 1000)


if __name__ == "__main__":
    main()
