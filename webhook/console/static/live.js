// Forms with data-live show their result while the user types: the page is fetched, and its #result replaces the shown one.
// Without this script the forms work by their button. The fetched page is the server's HTML, in which everything is escaped.

const PAUSE = 350; // ms after the last key

for (const form of document.querySelectorAll("form[data-live]")) {
  let timer = 0;
  let running = null;

  const update = async () => {
    clearTimeout(timer);
    running?.abort();
    const mine = (running = new AbortController());
    const result = document.getElementById("result");
    result.setAttribute("aria-busy", "true");
    try {
      const answer = await fetch(...request(form, mine.signal));
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.getElementById("result");
      const mistaken = form.method === "get" && page.querySelector(".mistake:not(:empty)"); // then what is shown stays
      if (fresh && !mistaken) document.getElementById("result").replaceWith(fresh);
      for (const part of form.querySelectorAll("[data-fresh]")) renew(form, part, page.getElementById(part.id));
      dispatchEvent(new CustomEvent("result"));
    } catch (error) {
      if (error.name === "AbortError") return;
      showError("The console does not answer. Is it still running?");
    }
    document.getElementById("result").removeAttribute("aria-busy");
  };

  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(update, PAUSE);
  };

  form.addEventListener("input", (event) => event.target.hasAttribute("data-quiet") || soon());
  form.addEventListener("submit", (event) => {
    if (event.submitter?.hasAttribute("data-plain")) return;
    event.preventDefault();
    update();
  });
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) update();
  });
}

// A part of the form that the answer changes: a link, or the mistake in a field.
function renew(form, part, fresh) {
  if (!fresh) return;
  part.replaceWith(fresh);
  const field = form.querySelector(`[name="${fresh.dataset.field}"]`);
  if (!field) return;
  const mistaken = fresh.textContent.trim() !== "";
  field.setAttribute("aria-invalid", mistaken);
  if (mistaken) field.closest("details")?.setAttribute("open", "");
}

function request(form, signal) {
  const data = new FormData(form);
  if (form.method === "post") return [form.action, { method: "POST", body: data, signal }];
  const query = new URLSearchParams([...data].filter(([, value]) => value !== ""));
  const address = `${form.action.split("?")[0]}?${query}`;
  history.replaceState(null, "", address);
  return [address, { signal }];
}

function showError(text) {
  const result = document.getElementById("result");
  const note = document.createElement("p");
  note.className = "note bad";
  note.setAttribute("role", "alert");
  note.textContent = text;
  result.prepend(note);
}
