// Sets the theme before the page is drawn: the user's choice, which the browser keeps, or else the system's.
"use strict";

const root = document.documentElement;

function remembered() {
  try {
    return localStorage.getItem("theme");
  } catch {
    return null; // storage can be switched off
  }
}

const chosen = remembered();
if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;

addEventListener("DOMContentLoaded", () => {
  const button = document.querySelector("[data-theme-switch]");
  if (!button) return;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const current = () => root.dataset.theme ?? (system.matches ? "dark" : "light");
  const show = () => (button.textContent = `Theme: ${current()}`);
  show();
  system.addEventListener("change", show);
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = current() === "dark" ? "light" : "dark";
    show();
    try {
      localStorage.setItem("theme", root.dataset.theme);
    } catch {
      // the choice is lost with the page
    }
  });
});
