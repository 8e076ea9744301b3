// Follows the log: fetches new decisions every second and adds them at the top of the list, as text, never as HTML.

const EVERY = 1000; // ms
const SLOWEST = 30000; // ms, while there is no answer
const MOST = 500; // rows
const HIDDEN = /[^\P{C}]|[^\P{Z} ]/gu; // characters that a page hides or obeys: control and bidi characters, odd spaces

const bar = document.querySelector("[data-tail]");
const button = bar.querySelector("[data-follow]");
const news = bar.querySelector("[data-news]");
let following = false;
let timer = 0;
let pause = EVERY;
let last = 0;
let waiting = []; // new decisions while the user reads, newest first
let missed = 0;
const known = new Map(); // the latest decisions by number, for rows with their repair
let added = 0;
let since = "";
let run = 0; // responses to earlier requests are dropped

function result() {
  return document.getElementById("result");
}

// The form may have replaced the list: start again from what it shows.
function begin() {
  bar.hidden = !("first" in result().dataset);
  last = Number(result().dataset.newest);
  waiting = [];
  missed = added = 0;
  since = new Date().toISOString().slice(11, 16);
  news.textContent = "";
  run += 1;
  clearTimeout(timer);
  if (following && !bar.hidden) soon(0);
}

function soon(delay) {
  clearTimeout(timer);
  timer = setTimeout(look, delay);
}

async function look() {
  if (!following || document.hidden) return;
  const mine = ++run;
  try {
    const address = result().dataset.api;
    const answer = await fetch(`${address}${address.includes("?") ? "&" : "?"}after=${last}&limit=${MOST}`);
    const found = await answer.json();
    if (mine !== run) return;
    if (!answer.ok) throw new Error(found.message);
    pause = EVERY;
    take(found);
  } catch (error) {
    if (mine !== run) return;
    pause = Math.min(pause * 2, SLOWEST);
    const gone = error instanceof TypeError || error instanceof SyntaxError;
    news.textContent = `${gone ? "The console does not answer" : error.message}; trying again in ${pause / 1000} s.`;
  }
  soon(pause);
}

function take(found) {
  if (found.newest < last && !found.log?.caughtUp) {
    news.textContent = "The console was restarted, and is reading the log.";
    return;
  }
  if (found.newest < last) {
    news.textContent = "The console was restarted: reload the page.";
    stop();
    return;
  }
  last = found.newest;
  missed += found.leftOut;
  waiting = [...found.entries, ...waiting];
  for (const entry of found.entries) known.set(entry.number, entry);
  for (const number of [...known.keys()].slice(0, Math.max(0, known.size - MOST))) known.delete(number);
  missed += Math.max(0, waiting.length - MOST);
  waiting.length = Math.min(waiting.length, MOST);
  show();
  if (found.log?.problem) news.textContent += ` ${found.log.problem}`;
}

// Rows do not move while the user reads them.
function reading() {
  const rows = document.querySelector("[data-rows]");
  return rows.contains(document.activeElement) || rows.getBoundingClientRect().top < 0;
}

function show() {
  const rows = document.querySelector("[data-rows]");
  if (!rows) return;
  if (waiting.length && reading()) {
    news.textContent = `${objects().length + missed} new, shown when you are back at the top of the list.`;
    return;
  }
  if (waiting.length) {
    const before = rows.rows.length;
    for (const entry of waiting) document.querySelector(`[data-rows] [data-number="${Number(entry.repair)}"]`)?.remove();
    rows.prepend(...objects().map(([entry, repair]) => row(entry, repair)));
    added += rows.rows.length - before + missed;
    document.querySelector("[data-none]")?.remove();
    while (rows.rows.length > MOST) rows.deleteRow(-1);
    waiting = [];
    missed = 0;
    dispatchEvent(new CustomEvent("rows"));
  }
  news.textContent = added ? `${added} new since ${since} UTC` : "Nothing new so far.";
}

// One row for each object: its validation, and the repair that came before it.
function objects() {
  const byNumber = new Map(waiting.map((entry) => [entry.number, entry]));
  const repairs = new Set(waiting.map((entry) => entry.repair));
  return waiting.filter((entry) => !repairs.has(entry.number)).map((entry) => [entry, entry.repair ?? null]
    .map((each) => (typeof each === "number" ? (byNumber.get(each) ?? known.get(each)) : each)));
}

function row(entry, repair) {
  const made = document.getElementById("row").content.firstElementChild.cloneNode(true);
  const [time, outcome, namespace, object, user, rules] = made.cells;
  const link = time.firstElementChild;
  made.dataset.number = entry.number;
  link.setAttribute("href", link.getAttribute("href").replace(/0$/, entry.id || String(Number(entry.number))));
  link.firstElementChild.setAttribute("datetime", entry.time);
  link.firstElementChild.textContent = `${entry.time.slice(0, 10)} ${entry.time.slice(11, 19)}`;
  const repaired = repair && repair.outcome !== "allowed";
  outcome.replaceChildren();
  if (entry.outcome !== "allowed" || !repaired) outcome.append(badge(entry.outcome), " ");
  if (repaired) outcome.append(badge(repair.outcome));
  namespace.textContent = shown(entry.namespace, 60);
  object.firstElementChild.textContent = `${shown(entry.kind, 40)}/`;
  object.lastElementChild.textContent = shown(entry.name, 80) || "(no name yet)";
  user.textContent = shown(entry.user, 60);
  const named = [...entry.rules, ...(repair?.rules ?? [])];
  for (const found of named.slice(0, 8)) rules.append(label("span", `level ${found.level}`, shown(found.rule, 40)), " ");
  if (named.length > 8) rules.append(label("small", "", "and more"), " ");
  if (entry.dryRun) rules.append(label("small", "", "dry run"));
  return made;
}

function label(tag, classes, text) {
  const made = document.createElement(tag);
  made.className = classes;
  made.textContent = text;
  return made;
}

function badge(word) {
  return label("span", `outcome ${word}`, word.replace("would-be-", "would be "));
}

// As in the server's rows.
function spell(letter) {
  const known = { "\n": "\\n", "\r": "\\r", "\t": "\\t" }[letter];
  const code = letter.codePointAt(0);
  const [mark, width] = code < 0x100 ? ["x", 2] : code < 0x10000 ? ["u", 4] : ["U", 8];
  return known ?? `\\${mark}${code.toString(16).padStart(width, "0")}`;
}

function shown(text, length) {
  const spelled = text.replace(HIDDEN, spell);
  return spelled.length > length ? `${spelled.slice(0, length - 1)}…` : spelled;
}

function stop() {
  following = false;
  button.setAttribute("aria-pressed", "false");
  clearTimeout(timer);
}

button.addEventListener("click", () => {
  if (following) {
    stop();
    return;
  }
  following = true;
  button.setAttribute("aria-pressed", "true");
  pause = EVERY;
  news.textContent = "Following…";
  soon(0);
});
document.addEventListener("visibilitychange", () => following && !document.hidden && soon(0));
addEventListener("scroll", () => waiting.length && show(), { passive: true });
document.addEventListener("focusin", () => waiting.length && show());
addEventListener("result", begin);
begin();
