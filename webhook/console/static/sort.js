// Tables with data-sortable: a click on a head sorts the rows by its column, the next one the other way round. A cell may name
// another text to sort by. Without this script the rows stay as the server orders them.

const { compare } = new Intl.Collator("en", { numeric: true });

function equip() {
  for (const head of document.querySelectorAll("table[data-sortable] thead th:not(:has(button))")) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => sort(head));
    head.append(button);
  }
}

function sort(head) {
  const descending = head.getAttribute("aria-sort") === "ascending";
  for (const each of head.parentElement.cells) each.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", descending ? "descending" : "ascending");
  const body = head.closest("table").tBodies[0];
  const rows = [...body.rows].map((row) => [key(row.cells[head.cellIndex]), row]);
  rows.sort(([one], [other]) => (descending ? compare(other, one) : compare(one, other)));
  body.append(...rows.map(([, row]) => row));
}

function key(cell) {
  return cell.dataset.key ?? cell.textContent.trim().replaceAll(",", "");
}

equip();
addEventListener("result", equip);
