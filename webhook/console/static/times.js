// Shows times in UTC, as the server writes them, or in the browser's own time zone: the user's choice, which the browser keeps.

const button = document.querySelector("[data-time-switch]");
let local = remembered() === "local";

function remembered() {
  try {
    return localStorage.getItem("time");
  } catch {
    return null; // storage can be switched off
  }
}

const two = (number) => String(number).padStart(2, "0");
const date = (at) => `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
const minutes = (at) => `${two(at.getHours())}:${two(at.getMinutes())}`;

// A time is written as exactly as the server wrote it.
function clock(element) {
  element.dataset.utc ??= element.textContent;
  const at = new Date(element.dateTime);
  const exact = element.dataset.utc.length > 16 ? `:${two(at.getSeconds())}` : "";
  element.textContent = local && !isNaN(at) ? `${date(at)} ${minutes(at)}${exact}` : element.dataset.utc;
}

// A label of an axis is a date, a time of day, or both.
function tick(element) {
  element.dataset.utc ??= element.textContent;
  const at = new Date(element.dataset.tick);
  const parts = [];
  if (element.dataset.utc.includes("-")) parts.push(date(at));
  if (element.dataset.utc.includes(":") || minutes(at) !== "00:00") parts.push(minutes(at));
  element.textContent = local && !isNaN(at) ? parts.join(" ") : element.dataset.utc;
}

function zone() {
  return new Intl.DateTimeFormat().resolvedOptions().timeZone || "local";
}

function show() {
  document.querySelectorAll("time[data-clock]").forEach(clock);
  document.querySelectorAll("[data-tick]").forEach(tick);
  for (const each of document.querySelectorAll("[data-zone]")) each.textContent = local ? zone() : "UTC";
  button.textContent = `Time: ${local ? "local" : "UTC"}`;
}

button.addEventListener("click", () => {
  local = !local;
  show();
  try {
    localStorage.setItem("time", local ? "local" : "UTC");
  } catch {
    // the choice is lost with the page
  }
});
addEventListener("result", () => local && show()); // a part of the page is new
addEventListener("rows", () => local && show());
button.hidden = false;
show();
