// The editor: Tab indents, unless Escape came before; a file and an example are put into it. All of it works without this, too.

const LARGEST = 256 * 1024; // bytes of a file; the server takes no more

const editor = document.getElementById("manifest");
const settings = document.querySelector('textarea[name="settings"]');
const file = document.querySelector('input[type="file"]');
const hint = document.getElementById("keys");
const examples = document.querySelector("form[data-examples]");

let filled = editor.value; // what was put there, so that nothing typed is lost
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
  // The old way is the one that Ctrl+Z takes back.
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

examples.elements.example.addEventListener("change", async (event) => {
  if (editor.value !== filled) return; // what one has typed goes only when one asks for it, by the button
  const name = event.target.value;
  const answer = await fetch(`${examples.action.split("?")[0]}?${new URLSearchParams({ example: name })}`);
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const manifest = page.getElementById("manifest");
  if (!manifest || event.target.value !== name) return;
  settings.value = page.querySelector('textarea[name="settings"]').value;
  if (settings.value) settings.closest("details").open = true;
  fill(manifest.value);
});
