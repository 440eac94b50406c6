// Shows what the server says. Text from elsewhere is only ever set as text, never read as markup.
"use strict";

const token = location.hash.slice(1);
const byId = (id) => document.getElementById(id);
const state = { run: "", live: false, allowed: false, follow: null, timer: 0, boxes: new Map() };
const SETTLE_MS = 500; // hands are slow: a click was meant for what stood there
const GOOD = new Set(["ok", "connected", "yes"]);
const WAITING = new Set(["running", "working", "asking", "idle", "made", "connecting", "needs_auth",
  "interrupted", "input_required", "pending_approval", "ended early"]);

function element(name, options = {}, ...children) {
  const made = document.createElement(name);
  const { text, ...rest } = options;
  if (text !== undefined) made.textContent = text;
  for (const [key, value] of Object.entries(rest)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// What a reader cannot see is written out.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]|[\u{e0000}-\u{e007f}]/gu;
function plain(value, most = 300) {
  const text = String(value ?? "").replace(UNSEEN,
    (char) => `<U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}>`);
  return text.length > most ? `${text.slice(0, most)} [cut]` : text;
}

function badge(word) {
  const kind = GOOD.has(word) ? "ok" : WAITING.has(word) ? "wait" : "bad";
  return element("span", { class: `badge ${kind}`, text: plain(word).replaceAll("_", " ") });
}

function table(heads, rows, numbers = new Set()) {
  if (!rows.length) return element("p", { class: "none", text: "none" });
  const kind = (at) => (numbers.has(at) ? "number" : "");
  const cell = (value, at) => {
    const made = element("td", { class: kind(at), "data-head": heads[at] });
    if (value !== "") made.append(value instanceof Node ? value : document.createTextNode(plain(value)));
    return made;
  };
  return element("table", {},
    element("thead", {}, element("tr", {},
      ...heads.map((name, at) => element("th", { class: kind(at), text: name })))),
    element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map(cell)))));
}

async function ask(path, options = {}) {
  const headers = { "X-Remit-Token": token };
  const answer = await fetch(path, { ...options, headers });
  if (answer.status === 401) throw new Error("the address lacks its token: open the one that `remit serve` printed");
  if (answer.headers.get("content-type")?.startsWith("application/json")) {
    const value = await answer.json();
    if (!answer.ok) throw new Error(`${value.code}: ${[value.message, value.why].filter(Boolean).join(": ")}${value.fix ? ` (${value.fix})` : ""}`);
    return value;
  }
  if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
  return answer.text();
}

const post = (path, body) => ask(path, { method: "POST", body: JSON.stringify(body) });
const address = (tail = "") => `/api/runs/${encodeURIComponent(state.run)}${tail}`;

function tell(text) {
  byId("notice").textContent = plain(text, 600);
  byId("notice").hidden = !text;
}

async function guarded(work) {
  try { await work(); } catch (error) {
    tell(error instanceof TypeError ? "`remit serve` has ended; nothing here is live any more" : error.message);
  }
}

async function showRuns() {
  const told = await ask("/api/runs");
  state.allowed = told.allow_approve;
  const wanted = state.run || told.runs[0]?.run || "";
  byId("runs").replaceChildren(...told.runs.map((run) =>
    element("option", { value: run.run, text: `${run.run} · ${plain(run.state, 40)}` })));
  if (!wanted) { tell("there is no run yet"); return; }
  byId("runs").value = wanted;
  if (state.run !== wanted) await choose(wanted);
}

async function choose(run) {
  state.run = run;
  state.boxes.clear();
  byId("asks").replaceChildren(); // an ask of another run may have the same number
  state.follow?.abort();
  tell("");
  await refresh();
  await showPictures();
  await showAudit();
  if (state.live) guarded(follow);
}

async function refresh() {
  const run = state.run;
  const told = await ask(address());
  if (state.run !== run) return;
  state.live = told.live;
  byId("run").textContent = state.run;
  byId("title").textContent = told.live ? "At work" : "Not at work";
  for (const id of ["reached", "explaining"]) byId(id).hidden = !told.live;
  if (!told.live) {
    tell("this session is not at work: what follows is on record, not live");
    byId("inbox").hidden = true;
    byId("figures").replaceChildren();
    if (!byId("agents").childElementCount) byId("agents").replaceChildren(element("p", { class: "none", text: "see the timeline" }));
    return;
  }
  showFigures(told);
  showAgents(told.agents);
  await showAsks(told.asks);
  byId("servers").replaceChildren(table(["server", "state", "tools", "problem"],
    told.servers.map((row) => [row.agent ? `${row.name} of ${row.agent}` : row.name, badge(row.state), row.tools, row.problem]), new Set([2])));
}

function showFigures(told) {
  const sum = (name) => told.agents.reduce((all, row) => all + (row[name] ?? 0), 0);
  const figures = [["agents", told.agents.length], ["at work", told.agents.filter((row) => row.alive).length],
    ["calls", told.cost.calls], ["denied", sum("denied")], ["refused", sum("refused")],
    ["tokens", told.cost.tokens.toLocaleString("en")], ["cost", `$ ${told.cost.usd.toFixed(4)}`],
    ["asked now", told.asks.length]];
  byId("figures").replaceChildren(...figures.map(([name, value]) =>
    element("div", {}, element("dt", { text: name }), element("dd", { text: String(value) }))));
}

function showAgents(rows) {
  const known = new Set(rows.map((row) => row.agent));
  const heads = ["agent", "state", "calls", "denied", "refused", "tokens", "USD", "seconds", "now"];
  if (state.allowed) heads.push("stop");
  const shown = rows.map((row) => {
    const parent = row.agent.slice(0, Math.max(0, row.agent.lastIndexOf("/")));
    const depth = row.agent.split("/").length - 1;
    const name = parent && known.has(parent) ? `${"\u2003".repeat(depth - 1)}└ ${row.agent.slice(parent.length + 1)}` : row.agent;
    const cells = [element("span", { class: "branch", text: plain(name) }), badge(row.state), row.calls ?? 0,
      row.denied ?? 0, row.refused ?? 0, (row.tokens ?? 0).toLocaleString("en"), (row.usd ?? 0).toFixed(4),
      (row.seconds ?? 0).toFixed(1), (row.current ?? []).join(", ")];
    if (state.allowed) cells.push(row.alive ? killer(row.agent) : "");
    return cells;
  });
  byId("agents").replaceChildren(table(heads, shown, new Set([2, 3, 4, 5, 6, 7])));
}

function killer(agent) {
  const button = element("button", { text: "stop", type: "button" });
  button.addEventListener("click", () => guarded(async () => {
    if (!confirm(`Take back the authority of ${plain(agent)} and of all below it?`)) return;
    await post(address("/kill"), { agent });
    await refresh();
  }));
  return button;
}

// A box stays as long as its ask is open: what is typed or read in it is not taken from under a hand.
async function showAsks(asks) {
  const open = new Set(asks.map((row) => row.ask));
  const run = state.run;
  let changed = false;
  for (const number of state.boxes.keys()) {
    if (!open.has(number)) changed = state.boxes.delete(number);
  }
  for (const row of asks) {
    if (!state.boxes.has(row.ask)) {
      const box = await askBox(row);
      if (state.run !== run) return;
      changed = true;
      state.boxes.set(row.ask, box);
    }
    state.boxes.get(row.ask).querySelector(".left").textContent =
      `ask ${row.ask} · ${row.rule ? `rule ${plain(row.rule)} · ` : ""}${Math.round(row.left)} s left`;
  }
  byId("inbox").hidden = !asks.length;
  if (!changed) return;
  const focused = document.activeElement;
  byId("asks").replaceChildren(...asks.map((row) => state.boxes.get(row.ask)));
  byId("asks").inert = true;
  clearTimeout(state.settling);
  state.settling = setTimeout(() => {
    byId("asks").inert = false;
    if (focused?.isConnected && document.activeElement === document.body) focused.focus();
  }, SETTLE_MS);
}

async function askBox(row) {
  const wants = row.tool ? `${row.server}/${row.tool}` : row.server ? `${row.server} asks` : "an answer";
  const box = element("div", { class: "ask" },
    element("p", {}, element("strong", { text: plain(row.agent).replaceAll("/", " > ") }), " wants ",
      element("code", { text: plain(wants) })),
    element("p", { class: "soft left" }));
  if (state.allowed) await addAnswers(box, row);
  else box.append(element("p", { class: "soft", text: `remit approvals show ${row.ask} --run ${state.run}` }));
  return box;
}

async function addAnswers(box, row) {
  const all = await ask(address(`/asks/${row.ask}`));
  const ways = [["Allow once", () => answer(row.ask, { how: "once" })]];
  if (row.kind === "approval") {
    ways.push(["Allow for this session", () => answer(row.ask, { how: "session" })]);
    if (all.always) ways.push(["Allow always…", () => showPermit(box, row)]);
  }
  if (!["approval", "sampling", "gate"].includes(row.kind)) ways.length = 0;
  ways.push(["Deny", () => answer(row.ask, { how: "deny" })]);
  box.append(folded(all.shown.content), acts(ways));
}

// A line that is too long goes on further in, so that no piece of it passes for a line.
function folded(text) {
  return element("pre", { class: "folded" },
    ...text.split("\n").map((line) => element("div", { text: line || " " })));
}

function acts(ways) {
  return element("div", { class: "acts" }, ...ways.map(([label, act]) => {
    const button = element("button", { text: label, type: "button" });
    button.addEventListener("click", () => guarded(act));
    return button;
  }));
}

async function answer(number, body) {
  tell("");
  await post(address(`/asks/${number}`), body);
  await refresh();
}

// What is confirmed is what is sent, letter for letter; the session refuses it if it would keep another.
async function showPermit(box, row) {
  const all = await ask(address(`/asks/${row.ask}`));
  box.querySelector(".permit")?.remove();
  if (!all.always) throw new Error("this call can no longer be put into a rule");
  const shown = element("div", { class: "permit", role: "group", "aria-label": "permit to be kept" },
    element("p", {}, "Exactly this call would be let through from now on, in this project. The permit goes to ",
      element("code", { text: plain(all.always_place, 1000) }), "; ",
      element("code", { text: "remit policy always revoke" }), " takes it back."),
    folded(all.shown.always),
    acts([["Keep this permit, and allow", () => answer(row.ask, { how: "always", rule: all.always })],
      ["Back", () => { shown.remove(); box.querySelector(".acts button")?.focus(); }]]));
  box.append(shown);
  shown.querySelector("button:last-child").focus();
}

// Pictures are the server's own drawing, escaped there; parsed apart, so that nothing of them runs.
function draw(id, text) {
  const parsed = new DOMParser().parseFromString(text, "text/html");
  byId(id).replaceChildren(...parsed.body.childNodes);
}

async function showPictures() {
  draw("timeline", await ask(address("/timeline")));
  const plan = await ask(address("/plan"));
  byId("planned").hidden = !plan;
  draw("plan", plan);
}

async function showAudit() {
  const wanted = new URLSearchParams(new FormData(byId("filters")));
  const told = await ask(address(`/audit?${wanted}`));
  const kinds = byId("filters").elements.kind;
  if (kinds.length === 1) kinds.append(...told.kinds.map((kind) => element("option", { value: kind, text: kind.replaceAll("_", " ") })));
  const rows = told.records.reverse().map((row) => [row.at, row.seq, row.kind.replaceAll("_", " "),
    element("span", { class: "fields", text: plain(row.fields, 400) })]);
  byId("audit").replaceChildren(table(["at", "number", "kind", "what"], rows, new Set([1])));
  if (told.more) byId("audit").append(element("p", { class: "none", text: `the newest ${told.records.length} of ${told.count}; remit audit query has all of them` }));
}

// An EventSource sends no header, and the token must stand in no address: the stream is read by hand.
async function follow() {
  const control = state.follow = new AbortController();
  try {
    const answer = await fetch(address("/events"), { headers: { "X-Remit-Token": token }, signal: control.signal });
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let part = await reader.read(); !part.done; part = await reader.read()) later();
  } catch (error) {
    if (control.signal.aborted) return;
    throw error;
  }
  if (state.follow === control) {
    await refresh();
    await showPictures();
    await showAudit();
    await showRuns();
  }
}

function later() {
  if (state.timer) return;
  state.timer = setTimeout(() => { state.timer = 0; guarded(async () => { await refresh(); await showPictures(); await showAudit(); }); }, 400);
}

byId("runs").addEventListener("change", (event) => guarded(() => choose(event.target.value)));
byId("filters").addEventListener("submit", (event) => { event.preventDefault(); guarded(showAudit); });
byId("explain").addEventListener("submit", (event) => {
  event.preventDefault();
  guarded(async () => {
    const form = new FormData(event.target);
    const given = form.get("arguments");
    const told = await post(address("/explain"), {
      role: form.get("role"), call: form.get("call"), arguments: given ? JSON.parse(given) : {},
    });
    byId("explained").textContent = plain(told.text, Infinity);
    byId("explained").hidden = false;
  });
});
// Clocks go on between events.
setInterval(() => { if (state.live) guarded(refresh); }, 5000);
guarded(showRuns);
