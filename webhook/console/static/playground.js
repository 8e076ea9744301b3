// The editor: Tab indents, unless Escape was pressed before; files and examples are loaded into it. The page works without it.

const LARGEST = 256 * 1024; // bytes of a file; the server's limit

const editor = document.getElementById("manifest");
const settings = document.querySelector('textarea[name="settings"]');
const file = document.querySelector('input[type="file"]');
const hint = document.getElementById("keys");
const examples = document.querySelector("form[data-examples]");

let filled = editor.value; // the loaded text, to notice what the user typed
let leaving = false;

hint.textContent = hint.dataset.without;

editor.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    leaving = true;
    return;
  }
  if (event.key === "Tab" && !event.shiftKey && !event.ctrlKey && !event.altKey && !event.metaKey && !leaving) {
    event.preventDefault();
    insert("  ");
  }
  if (event.key !== "Shift") leaving = false;
});
editor.addEventListener("blur", () => (leaving = false));

function insert(text) {
  // Only this deprecated command can be undone with Ctrl+Z.
  if (document.execCommand?.("insertText", false, text)) return;
  editor.setRangeText(text, editor.selectionStart, editor.selectionEnd, "end");
  changed();
}

function changed() {
  editor.dispatchEvent(new Event("input", { bubbles: true }));
}

function fill(text) {
  editor.value = filled = text;
  editor.scrollTop = 0;
  changed();
}

file.addEventListener("change", async () => {
  const [chosen] = file.files;
  if (!chosen) return;
  if (chosen.size > LARGEST) {
    file.setCustomValidity("This file is larger than 256 KiB; vgpu-webhook review FILE takes up to 10 MiB.");
    file.reportValidity();
  } else {
    fill(await chosen.text());
  }
  file.value = "";
});
file.addEventListener("click", () => file.setCustomValidity(""));

// The list shows the name of an example only while the editor holds it.
editor.addEventListener("input", () => {
  if (editor.value === filled) return;
  const list = examples.elements.example;
  if (list.options[0].value !== "") list.add(new Option("your own manifest", ""), 0);
  list.value = "";
});

examples.elements.example.addEventListener("change", async (event) => {
  const name = event.target.value;
  if (!name || editor.value !== filled) return; // the button replaces what the user typed
  const answer = await fetch(`${examples.action.split("?")[0]}?${new URLSearchParams({ example: name })}`);
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const manifest = page.getElementById("manifest");
  if (!manifest || event.target.value !== name) return;
  settings.value = page.querySelector('textarea[name="settings"]').value;
  if (settings.value) settings.closest("details").open = true;
  fill(manifest.value);
});

// --- line numbers, and marks at the lines with findings -------------------------------------------------------------

const gutter = document.querySelector("[data-gutter]");
const MOST_LINES = 20000; // numbered; a manifest of 256 KiB has fewer, unless most of them are empty
let numbered = 0;

gutter.hidden = false;

function number() {
  const lines = Math.min(editor.value.split("\n").length, MOST_LINES);
  if (lines !== numbered) mark(lines);
  gutter.scrollTop = editor.scrollTop;
}

// The numbers are one text, interrupted by an element for each line with findings.
function mark(lines) {
  const found = new Map();
  for (const link of document.querySelectorAll("#result [data-line]")) {
    const line = Number(link.dataset.line);
    const marked = found.get(line) ?? { level: link.dataset.level, texts: [] };
    if (link.dataset.level === "deny") marked.level = "deny";
    marked.texts.push(link.parentElement.textContent.trim());
    found.set(line, marked);
  }
  const parts = [];
  let text = "";
  for (let line = 1; line <= lines; line++) {
    const marked = found.get(line);
    if (!marked) {
      text += `${line}\n`;
      continue;
    }
    const element = document.createElement("span");
    element.className = marked.level;
    element.textContent = line;
    element.title = marked.texts.join("\n");
    parts.push(text, element);
    text = "\n";
  }
  gutter.replaceChildren(...parts, text);
  gutter.scrollTop = editor.scrollTop;
  numbered = lines;
}

function select(line) {
  const lines = editor.value.split("\n");
  const start = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
  editor.focus();
  editor.setSelectionRange(start, start + (lines[line - 1]?.length ?? 0));
  editor.scrollTop = (line - 4) * parseFloat(getComputedStyle(editor).lineHeight);
  editor.scrollLeft = 0;
}

editor.addEventListener("input", number);
editor.addEventListener("scroll", () => (gutter.scrollTop = editor.scrollTop), { passive: true });
gutter.addEventListener("click", (event) => {
  const line = event.target.closest("span")?.textContent;
  if (line) document.querySelector(`#result [data-line="${line}"]`)?.parentElement.scrollIntoView({ block: "center" });
});
document.addEventListener("click", (event) => {
  const link = event.target.closest("#result [data-line]");
  if (!link) return;
  event.preventDefault();
  select(Number(link.dataset.line));
});
addEventListener("result", () => mark(Math.min(editor.value.split("\n").length, MOST_LINES)));
number();
