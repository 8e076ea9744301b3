// Shows the page anew when what pods hold has changed. Nodes that are open stay open, and the focus stays where it is.

const EVERY = 3000; // ms
const SLOWEST = 60000; // ms, while there is no answer

let pause = EVERY;

function result() {
  return document.getElementById("result");
}

async function look() {
  if (!document.hidden) {
    try {
      const answer = await fetch(result().dataset.api);
      const found = await answer.json();
      pause = EVERY;
      if (answer.ok && String(found.version) !== result().dataset.version) await renew();
    } catch {
      pause = Math.min(pause * 2, SLOWEST);
    }
  }
  setTimeout(look, pause);
}

async function renew() {
  const before = result();
  const answer = await fetch(location.href);
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("result");
  if (!answer.ok || !fresh || before !== result()) return; // a filter has changed meanwhile
  for (const each of before.querySelectorAll("details[open]")) fresh.querySelector(`#${CSS.escape(each.id)}`)?.setAttribute("open", "");
  const focused = before.contains(document.activeElement) ? document.activeElement.closest("details")?.id : null;
  before.replaceWith(fresh);
  if (focused) document.getElementById(focused)?.querySelector("summary").focus({ preventScroll: true });
}

setTimeout(look, pause);
