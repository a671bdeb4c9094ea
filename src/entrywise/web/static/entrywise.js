// The moving parts of the page: the map, the forms, the news. No library; every text is set as text.

const meta = (name) => document.querySelector(`meta[name="${name}"]`)?.content;
const $ = (selector) => document.querySelector(selector);
const study = meta("study");
const base = `/api/v1/studies/${study}`;
const SECOND = 1000;

function say(words, alarm = false) {
  const place = $("#said");
  place.textContent = words;
  place.className = alarm ? "alarm" : "";
}

// Call the service; wait where it says that it is still working something out.
async function call(path, { method = "GET", body, form, binary = false, patience = 120 } = {}) {
  const headers = { "x-entrywise-csrf": meta("csrf") ?? "" };
  if (body !== undefined) headers["content-type"] = "application/json";
  const data = form ?? (body === undefined ? undefined : JSON.stringify(body));
  for (let tries = 0; ; tries++) {
    const answer = await fetch(path, { method, headers, body: data });
    if (answer.status === 202 && tries < patience) {
      await new Promise((done) => setTimeout(done, SECOND * (answer.headers.get("retry-after") ?? 1)));
      continue;
    }
    if (binary && answer.ok) return answer;
    const found = await answer.json().catch(() => ({}));
    if (answer.ok) return found;
    if (answer.status === 409) return { ...found, unsure: true };
    const detail = found.message ?? found.detail ?? answer.statusText;
    throw new Error(typeof detail === "string" ? detail : JSON.stringify(detail));
  }
}

const post = (path, body) => call(path, { method: "POST", body });

// Do what a form or a button asks for; say what went wrong.
function on(element, event, work) {
  element?.addEventListener(event, async (happened) => {
    if (event === "submit") happened.preventDefault();
    try {
      await work(happened);
    } catch (error) {
      say(error.message, true);
    }
  });
}

function make(tag, text = "", attributes = {}) {
  const made = document.createElement(tag);
  made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

// A cell of a table: a number, a word, or somebody's label, which keeps its own direction.
const number = (text) => make("td", text, { class: "number" });
const word = (text) => make("td", text);
function label(text) {
  const made = make("td");
  made.append(make("bdi", text));
  return made;
}

// A value with the digits that are known: two of the width of its interval; as it is where there is none.
function known(low, high, ...values) {
  const width = high - low;
  if (!(width > 0)) return values.map(shown);
  const places = Math.min(Math.max(1 - Math.floor(Math.log10(width)), 0), 6);
  return values.map((x) => Number(x).toFixed(places));
}

const shown = (x) => (x === null || x === undefined ? "–" : Number(x).toPrecision(6).replace(/\.?0+$/, ""));
const date = (seconds) => (seconds ? new Date(SECOND * seconds).toISOString().slice(0, 16).replace("T", " ") : "–");

// ---------------------------------------------------------------------------------------------- the map

const STATES = ["open", "known", "bought", "out", "queued", "failed"];
const MARKS = { 3: [0, 190, 140], 4: [120, 205, 255], 5: [0, 0, 0] }; // colours that SCALE does not have
const SCALE = [[13, 8, 135], [126, 3, 168], [204, 71, 120], [248, 149, 64], [240, 249, 33]];
const SIDE = 512; // cells of a tile, across and down
const KEPT = 200; // tiles

function colour(part) {
  const at = Math.min(Math.max(part, 0), 1) * (SCALE.length - 1);
  const k = Math.min(Math.floor(at), SCALE.length - 2);
  return SCALE[k].map((low, c) => low + (at - k) * (SCALE[k + 1][c] - low));
}

class Map_ {
  constructor(canvas) {
    this.canvas = canvas;
    this.rows = Number(canvas.dataset.rows);
    this.cols = Number(canvas.dataset.cols);
    this.tiles = new Map();
    this.range = null;
    this.show = "value";
    this.sort = "";
    this.view = null;
    new ResizeObserver(() => this.whole()).observe(canvas);
  }

  // Put all of the matrix on the canvas.
  whole() {
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = this.canvas.clientWidth * ratio;
    this.canvas.height = this.canvas.clientHeight * ratio;
    const across = this.canvas.width / this.cols;
    const down = this.canvas.height / this.rows;
    this.view = { x: 0, y: 0, across, down };
    this.draw();
  }

  zoom(by, x = this.canvas.width / 2, y = this.canvas.height / 2) {
    const { view } = this;
    const least = { across: this.canvas.width / this.cols, down: this.canvas.height / this.rows };
    for (const [axis, size, at] of [["x", "across", x], ["y", "down", y]]) {
      const next = Math.min(Math.max(view[size] * by, Math.min(least[size], 1)), Math.max(80, least[size]));
      view[axis] += at / view[size] - at / next;
      view[size] = next;
    }
    this.bound();
  }

  move(x, y) {
    this.view.x += x;
    this.view.y += y;
    this.bound();
  }

  bound() {
    const { view, canvas } = this;
    view.x = Math.max(0, Math.min(view.x, this.cols - canvas.width / view.across));
    view.y = Math.max(0, Math.min(view.y, this.rows - canvas.height / view.down));
    view.x = Math.max(0, view.x);
    view.y = Math.max(0, view.y);
    this.draw();
  }

  at(x, y) {
    const col = Math.floor(this.view.x + x / this.view.across);
    const row = Math.floor(this.view.y + y / this.view.down);
    return row >= 0 && col >= 0 && row < this.rows && col < this.cols ? [row, col] : null;
  }

  draw() {
    if (this.wanted) return;
    this.wanted = requestAnimationFrame(() => {
      this.wanted = null;
      this.paint();
    });
  }

  paint() {
    const { canvas, view } = this;
    const pen = canvas.getContext("2d");
    pen.imageSmoothingEnabled = false;
    pen.clearRect(0, 0, canvas.width, canvas.height);
    // where cells are smaller than a pixel, each so-many-th is enough: of rows and of columns by themselves
    const [every, over] = [view.down, view.across].map((size) => 2 ** Math.max(0, Math.floor(Math.log2(1 / size))));
    const [tall, wide] = [SIDE * every, SIDE * over];
    const last = [view.y + canvas.height / view.down, view.x + canvas.width / view.across];
    for (let i = Math.floor(view.y / tall); i * tall < Math.min(last[0], this.rows); i++) {
      for (let j = Math.floor(view.x / wide); j * wide < Math.min(last[1], this.cols); j++) {
        const tile = this.tile([every, over], i, j);
        if (!tile) continue;
        const x = (j * wide - view.x) * view.across;
        const y = (i * tall - view.y) * view.down;
        pen.drawImage(tile.image, x, y, tile.cols * over * view.across, tile.rows * every * view.down);
        if (view.across >= 8 && view.down >= 8) this.dots(pen, tile, x, y);
      }
    }
    canvas.dataset.painted = String(Number(canvas.dataset.painted ?? 0) + 1);
  }

  // Mark what was measured where cells are large enough.
  dots(pen, tile, x, y) {
    const { across, down } = this.view;
    const size = Math.min(across, down) / 6;
    pen.fillStyle = "white";
    pen.strokeStyle = "black";
    for (let k = 0; k < tile.states.length; k++) {
      if (tile.states[k] !== 1 && tile.states[k] !== 2) continue;
      const px = x + ((k % tile.cols) + 0.5) * across;
      const py = y + (Math.floor(k / tile.cols) + 0.5) * down;
      if (px < 0 || py < 0 || px > this.canvas.width || py > this.canvas.height) continue;
      pen.beginPath();
      if (tile.states[k] === 1) pen.rect(px - size, py - size, 2 * size, 2 * size);
      else pen.arc(px, py, size, 0, 7);
      pen.fill();
      pen.stroke();
    }
  }

  tile(every, i, j) {
    const key = [this.show, this.sort, every, i, j].join();
    const found = this.tiles.get(key);
    if (found) return found.image ? found : null;
    this.tiles.set(key, {});
    if (this.tiles.size > KEPT) this.tiles.delete(this.tiles.keys().next().value);
    this.load(key, every, i, j).catch((error) => {
      this.tiles.delete(key);
      say(error.message, true);
    });
    return null;
  }

  async load(key, every, i, j) {
    const place = { row: i * SIDE * every[0], col: j * SIDE * every[1], rows: SIDE, cols: SIDE, show: this.show };
    [place.row_every, place.col_every] = every;
    if (this.sort) place.sort = "true";
    const answer = await call(`${base}/tile?${new URLSearchParams(place)}`, { binary: true });
    const rows = Number(answer.headers.get("x-rows"));
    const cols = Number(answer.headers.get("x-cols"));
    const data = await answer.arrayBuffer();
    const count = rows * cols;
    const states = new Uint8Array(data, 0, count);
    const values = new Float32Array(data.slice(count));
    this.range ??= ends(values);
    this.tiles.set(key, { rows, cols, states, image: this.picture(states, values, rows, cols) });
    legend(this);
    this.draw();
  }

  picture(states, values, rows, cols) {
    const made = new OffscreenCanvas(Math.max(cols, 1), Math.max(rows, 1));
    const pen = made.getContext("2d");
    const image = pen.createImageData(Math.max(cols, 1), Math.max(rows, 1));
    const [low, high] = this.range;
    const width = high - low || 1;
    for (let k = 0; k < states.length; k++) {
      let rgb = Number.isFinite(values[k]) ? colour((values[k] - low) / width) : [128, 128, 128];
      const told = states[k] === 1 || states[k] === 2;
      if (MARKS[states[k]]) rgb = MARKS[states[k]];
      else if (!told && this.show === "value") rgb = rgb.map((c) => 0.35 * c + 0.65 * 128);
      image.data.set([rgb[0], rgb[1], rgb[2], 255], 4 * k);
    }
    pen.putImageData(image, 0, 0);
    return made;
  }

  // Forget what was drawn: other colours, another order, or news.
  again() {
    this.tiles.clear();
    this.range = null;
    this.draw();
  }
}

const FAR = 3; // times the middle half of all values: what lies farther beyond it has the last colour
// The values of the first and the last colour: nearly all lie between them, and a wild row does not.
function ends(values) {
  const step = Math.max(1, Math.floor(values.length / 20000));
  const some = [];
  for (let k = 0; k < values.length; k += step) if (Number.isFinite(values[k])) some.push(values[k]);
  some.sort((a, b) => a - b);
  if (!some.length) return [0, 1];
  const at = (part, round) => some[round(part * (some.length - 1))];
  const [first, third] = [at(0.25, Math.floor), at(0.75, Math.ceil)];
  const reach = FAR * (third - first) || Infinity;
  return [Math.max(at(0.01, Math.floor), first - reach), Math.min(at(0.99, Math.ceil), third + reach)];
}

function legend(map) {
  const [low, high] = map.range;
  const list = $("#legend");
  const lines = [
    [SCALE[0], known(low, high, low)[0]],
    [SCALE[4], known(low, high, high)[0]],
    [[128, 128, 128], map.show === "value" ? "paler: completed, not measured" : "no interval"],
    [MARKS[3], "out with somebody"],
    [MARKS[4], "asked, free"],
    [MARKS[5], "failed"],
  ];
  list.replaceChildren(
    ...lines.map(([rgb, words]) => {
      const line = make("li");
      const patch = make("i");
      patch.style.backgroundColor = `rgb(${rgb.join()})`;
      line.append(patch, words);
      return line;
    }),
  );
}

async function about(map, place) {
  if (!place) return;
  const [row, col] = place;
  const query = new URLSearchParams({ row, col, ...(map.sort ? { sort: "true" } : {}) });
  const found = await call(`${base}/cell?${query}`);
  if (map.pointed !== place) return;
  const [value, low, high] = known(found.low, found.high, found.value, found.low, found.high);
  let words = `(${found.row}, ${found.col})`;
  if (found.value !== undefined) words += `: completed ${value}`;
  if (found.low !== null && found.low !== undefined) words += `, ${low} to ${high} at 90 %`;
  for (const told of found.said) {
    const what = told.failed ? "failed" : shown(told.value);
    words += `; ${told.what} ${what}${told.worker ? ` by ${told.worker}` : ""}, ${date(told.told_at)} UTC`;
  }
  if (!found.said.length) words += "; not measured";
  $("#tip").textContent = words;
}

function mapPage(canvas) {
  const map = new Map_(canvas);
  const ratio = () => window.devicePixelRatio || 1;
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [(event.clientX - box.left) * ratio(), (event.clientY - box.top) * ratio()];
  };
  let held = null;
  let timer = null;
  const point = (where) => {
    map.pointed = where;
    clearTimeout(timer);
    timer = setTimeout(() => about(map, where).catch(() => {}), 150);
  };
  canvas.addEventListener("pointerdown", (event) => {
    held = place(event);
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointerup", () => (held = null));
  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = place(event);
    if (held) {
      map.move((held[0] - x) / map.view.across, (held[1] - y) / map.view.down);
      held = [x, y];
    } else {
      point(map.at(x, y));
    }
  });
  canvas.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      map.zoom(event.deltaY < 0 ? 1.25 : 0.8, ...place(event));
    },
    { passive: false },
  );
  const step = () => [canvas.width / map.view.across / 5, canvas.height / map.view.down / 5];
  canvas.addEventListener("keydown", (event) => {
    const [x, y] = step();
    const keys = {
      ArrowLeft: () => map.move(-x, 0),
      ArrowRight: () => map.move(x, 0),
      ArrowUp: () => map.move(0, -y),
      ArrowDown: () => map.move(0, y),
      PageUp: () => map.move(0, -5 * y),
      PageDown: () => map.move(0, 5 * y),
      Home: () => map.move(0, -map.rows),
      End: () => map.move(0, map.rows),
      "+": () => map.zoom(1.5),
      "=": () => map.zoom(1.5),
      "-": () => map.zoom(1 / 1.5),
      Enter: () => point(map.at(canvas.width / 2, canvas.height / 2)),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
  on($("#closer"), "click", () => map.zoom(1.5));
  on($("#farther"), "click", () => map.zoom(1 / 1.5));
  on($("#whole"), "click", () => map.whole());
  on($("#show"), "change", (event) => {
    map.show = event.target.value;
    map.again();
  });
  on($("#sort"), "change", (event) => {
    map.sort = event.target.value;
    map.again();
  });
  return map;
}

// ------------------------------------------------------------------------------------------------ pages

// Do something whenever the study is no longer what the page shows.
function news(mark, work) {
  const stream = new EventSource(`${base}/events`);
  stream.addEventListener("news", (event) => {
    if (event.data !== mark) work();
    mark = event.data;
  });
  addEventListener("pagehide", () => stream.close());
}

async function studyPage() {
  const map = $("#map") ? mapPage($("#map")) : null;
  on($("#reload"), "click", () => location.reload());
  on($("#report"), "click", async (event) => {
    event.preventDefault();
    const answer = await call(event.target.href, { binary: true });
    const link = make("a", "", { href: URL.createObjectURL(await answer.blob()), download: "report.html" });
    link.click();
  });
  on($("#extend"), "submit", async (event) => {
    await post(`${base}/extend`, { budget: Number(new FormData(event.target).get("budget")) });
    location.reload();
  });
  news($("#sentence").dataset.mark, async () => {
    $("#news").hidden = false;
    const now = await call(base);
    $("#sentence").textContent = `${now.sentence}.`;
    map?.again();
  });
  if ($("#waiting")) {
    await call(`${base}/result`);
    location.reload();
  }
  while ($("#stale") && !(await call(`${base}/result`)).fresh) {
    await new Promise((done) => setTimeout(done, 3 * SECOND));
  }
  if ($("#stale")) $("#news").hidden = false;
}

function workPage() {
  const asking = $("#ask");
  const telling = $("#tell");
  const body = telling.querySelector("tbody");
  let until = null;
  let sure = false;
  asking.worker.value = localStorage.getItem("worker") ?? "";

  const fields = () => [...body.querySelectorAll("input")];
  const countdown = () => {
    if (!until) return;
    const left = Math.floor(until - Date.now() / SECOND);
    const minutes = `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}`;
    $("#left").textContent = left > 0 ? `Yours for ${minutes} more.` : "Your time is over; others may be asked. A late answer counts.";
  };
  setInterval(countdown, SECOND);

  on(asking, "submit", async () => {
    const worker = asking.worker.value.trim();
    localStorage.setItem("worker", worker);
    say("");
    const found = await post(`${base}/ask`, {
      worker,
      limit: Number(asking.limit.value),
      lease: 3600 * Number(asking.hours.value),
    });
    const lines = found.id.map((id, k) => {
      const line = make("tr");
      const input = make("input", "", {
        "data-id": id,
        "aria-label": `answer to ${id}: ${found.row[k]}, ${found.col[k]}`,
        autocomplete: "off",
        inputmode: "decimal",
      });
      const last = make("td");
      last.append(input);
      line.append(word(id), label(found.row[k]), label(found.col[k]), word(found.mode[k]), number(shown(found.price[k])), last);
      return line;
    });
    body.append(...lines);
    until = found.until ?? until;
    telling.hidden = !fields().length;
    $("#back").disabled = !fields().length;
    if (!found.id.length) say(`Nothing to ask: ${found.why}.`);
    else fields()[0].focus();
    countdown();
  });

  // Enter goes on; a pasted column fills the fields below.
  body.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    const all = fields();
    const next = all[all.indexOf(event.target) + 1];
    if (next) {
      event.preventDefault();
      next.focus();
    }
  });
  body.addEventListener("input", () => (sure = false));
  body.addEventListener("paste", (event) => {
    const lines = event.clipboardData.getData("text").replace(/\s+$/, "").split(/\r?\n/);
    if (lines.length < 2) return;
    event.preventDefault();
    const all = fields();
    const first = all.indexOf(event.target);
    lines.slice(0, all.length - first).forEach((text, k) => (all[first + k].value = text.split("\t").pop().trim()));
    all[Math.min(first + lines.length, all.length) - 1].focus();
    sure = false;
  });

  on(telling, "submit", async () => {
    const given = fields().filter((field) => field.value.trim());
    if (!given.length) return say("Write an answer first.");
    const answer = await post(`${base}/tell`, {
      id: given.map((field) => field.dataset.id),
      value: given.map((field) => field.value.trim()),
      worker: asking.worker.value.trim() || null,
      sure,
    });
    for (const field of given) field.closest("tr").classList.remove("odd");
    if (answer.unsure) {
      const odd = answer.odd.map((k) => given[k]);
      for (const field of odd) field.closest("tr").classList.add("odd");
      $("#really").textContent = `Really? ${odd.length === 1 ? "One answer lies" : `${odd.length} answers lie`} far from what was expected. Correct it, or tell again if it is right.`;
      $("#really").hidden = false;
      odd[0].focus();
      sure = true;
      return undefined;
    }
    $("#really").hidden = true;
    sure = false;
    for (const field of given) field.closest("tr").remove();
    say(`${answer.new} of ${answer.told} answers were new; they are kept.`);
    telling.hidden = !fields().length;
    $("#back").disabled = !fields().length;
    if (!fields().length) {
      until = null;
      $("#left").textContent = "";
      asking.querySelector("button").focus();
    }
    return undefined;
  });

  on($("#back"), "click", async () => {
    const found = await post(`${base}/release`, { worker: asking.worker.value.trim() });
    body.replaceChildren();
    telling.hidden = true;
    $("#back").disabled = true;
    until = null;
    $("#left").textContent = "";
    say(`${found.released} questions were given back.`);
  });

  on($("#upload"), "submit", async (event) => {
    const form = new FormData(event.target);
    form.set("sure", "false");
    let answer = await call(`${base}/upload`, { method: "POST", form });
    if (answer.unsure) {
      if (!confirm(`Really? ${answer.odd.length} of the answers lie far from what was expected.`)) return;
      form.set("sure", "true");
      answer = await call(`${base}/upload`, { method: "POST", form });
    }
    say(`${answer.new} of ${answer.told} answers were new; they are kept.`);
    event.target.reset();
  });
}

function logPage() {
  const table = $("#log");
  const body = table.querySelector("tbody");
  const page = 200;
  let first = 0;
  const more = async () => {
    const find = $("#filter").find.value;
    const lines = await call(`${base}/log?${new URLSearchParams({ first, limit: page, find })}`);
    for (const x of lines) {
      const line = make("tr");
      const value = x.failed ? "failed" : shown(x.value);
      line.append(word(x.id), label(x.row), label(x.col), number(value), word(x.what), label(x.worker ?? "–"), word(date(x.told_at)), label(x.reason ?? ""));
      const last = make("td");
      if (table.dataset.owner && (x.what === "told" || x.what === "known")) {
        const button = make("button", "Correct", { class: "second", "aria-label": `correct ${x.id}: ${x.row}, ${x.col}` });
        on(button, "click", () => correct(last, x));
        last.append(button);
      }
      line.append(last);
      body.append(line);
    }
    first += lines.length;
    $("#more").hidden = lines.length < page;
  };
  const again = async () => {
    first = 0;
    body.replaceChildren();
    await more();
  };
  const correct = (place, x) => {
    const form = make("form", "", { class: "row" });
    const input = make("input", "", { "aria-label": `right value of ${x.row}, ${x.col}`, required: "", value: x.value ?? "" });
    const reason = make("input", "", { "aria-label": `why ${x.id} is corrected`, placeholder: "why?", maxlength: "2000" });
    form.append(input, reason, make("button", "Keep"));
    on(form, "submit", async () => {
      await post(`${base}/amend`, { id: x.id, value: input.value.trim(), reason: reason.value.trim() || null });
      say(`${x.id} is corrected; the log keeps both values and the reason.`);
      await again();
    });
    place.replaceChildren(form);
    input.focus();
  };
  on($("#filter"), "submit", again);
  on($("#more"), "click", more);
  more().catch((error) => say(error.message, true));
}

function newPage() {
  const form = $("#new");
  let asked = 0;
  on(form, "change", async () => {
    if (!form.rows.files.length || !form.cols.files.length || !(Number(form.budget.value) > 0)) return;
    const data = new FormData(form);
    for (const name of ["name", "want"]) data.delete(name);
    for (const name of ["prices", "known"]) if (!form[name].files.length) data.delete(name);
    const mine = ++asked;
    let words;
    try {
      ({ words } = await call("/api/v1/forecast", { method: "POST", form: data }));
    } catch (error) {
      words = [error.message];
    }
    if (mine === asked) $("#forecast").replaceChildren(...words.map((each) => make("p", each)));
  });
  on(form, "submit", async () => {
    const data = new FormData(form);
    const [plan, goal] = data.get("want").split("|");
    data.delete("want");
    data.set("plan", plan);
    if (goal) data.set("goal", goal);
    for (const name of ["prices", "known"]) if (!form[name].files.length) data.delete(name);
    const made = await call("/api/v1/studies/upload", { method: "POST", form: data });
    location.href = `/study/${encodeURIComponent(encodeURIComponent(made.name))}`;
  });
}

function tokensPage() {
  const body = $("#tokens tbody");
  const titles = [...$("#tokens").querySelectorAll("th")].map((each) => each.textContent);
  const list = async () => {
    const found = await call("/api/v1/tokens");
    body.replaceChildren(
      ...found.map((token) => {
        const line = make("tr");
        const over = token.revoked_at ? "revoked" : token.expires_at * SECOND < Date.now() ? "expired" : "valid";
        line.append(word(token.id), label(token.title), word(token.role), label(token.study ?? "all"), word(date(token.expires_at)), word(over));
        for (const [k, cell] of [...line.cells].entries()) cell.dataset.title = titles[k];
        const last = make("td");
        if (over === "valid") {
          const button = make("button", "Revoke", { class: "second", "aria-label": `revoke ${token.title}` });
          on(button, "click", async () => {
            await call(`/api/v1/tokens/${token.id}`, { method: "DELETE" });
            await list();
          });
          last.append(button);
        }
        line.append(last);
        return line;
      }),
    );
  };
  on($("#token"), "submit", async (event) => {
    const given = Object.fromEntries(new FormData(event.target));
    const made = await post("/api/v1/tokens", { ...given, study: given.study || null, days: Number(given.days) });
    $("#secret").textContent = `Keep it, it is not shown again: ${made.token}`;
    await list();
  });
  list().catch((error) => say(error.message, true));
}

const PAGES = { study: studyPage, work: workPage, log: logPage, new: newPage, tokens: tokensPage };
PAGES[document.body.dataset.page]?.();
