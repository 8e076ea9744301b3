// A link to the playground that carries the manifest and the settings in its fragment, which browsers never send to a server.

const KEY = "#review=";
const LARGEST = 1 << 20; // bytes, unpacked
const LONG = 8000; // characters that some programs cut off
const FIELDS = ["manifest", "namespace", "policy", "settings", "split"];

const form = document.querySelector("form[data-live]");
const button = document.querySelector("[data-share]");
const status = document.querySelector("[data-shared]");

// A file is sent under the name of the manifest, too, and comes after it.
const field = (name) => form.querySelector(`[name="${name}"]`);

async function through(bytes, stream, most = Infinity) {
  const chunks = [];
  let size = 0;
  for await (const chunk of new Blob([bytes]).stream().pipeThrough(stream)) {
    size += chunk.length;
    if (size > most) throw new RangeError("too large");
    chunks.push(chunk);
  }
  return new Uint8Array(await new Blob(chunks).arrayBuffer());
}

async function pack(values) {
  const bytes = await through(new TextEncoder().encode(JSON.stringify(values)), new CompressionStream("deflate-raw"));
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
  const found = await through(bytes, new DecompressionStream("deflate-raw"), LARGEST);
  return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(found));
}

async function share() {
  const values = {};
  for (const name of FIELDS) if (field(name).value) values[name] = field(name).value;
  const address = `${location.origin}${location.pathname}${KEY}${await pack(values)}`;
  history.replaceState(null, "", address);
  const long = address.length > LONG ? ` It has ${address.length} characters, which some programs cut off.` : "";
  try {
    await navigator.clipboard.writeText(address);
    status.textContent = `The link is copied. Only it holds the manifest; no server keeps it.${long}`;
  } catch {
    status.textContent = `Copy the address of this page: it holds the manifest.${long}`;
  }
}

// Fills the form from the address, and has it reviewed.
async function open() {
  if (!location.hash.startsWith(KEY)) return;
  try {
    const values = await unpack(location.hash.slice(KEY.length));
    if (typeof values?.manifest !== "string") throw new TypeError("no manifest");
    for (const name of FIELDS) field(name).value = typeof values[name] === "string" ? values[name] : "";
    const options = form.querySelector("details");
    options.open = FIELDS.slice(1).some((name) => field(name).value);
    field("manifest").dispatchEvent(new Event("input", { bubbles: true }));
    status.textContent = "Filled in from the link.";
  } catch {
    status.textContent = "The link is damaged or cut off: ask for it again.";
  }
}

// Once something is changed, the address no longer holds what the page shows.
form.addEventListener("input", (event) => {
  if (!event.isTrusted || !location.hash.startsWith(KEY)) return;
  history.replaceState(null, "", location.pathname);
  status.textContent = "";
});
button.hidden = false;
button.addEventListener("click", share);
addEventListener("hashchange", open);
open();
