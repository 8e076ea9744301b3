// The choice between light and dark is kept in the browser; without one, the system's holds. Loaded before anything is drawn.
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
  button.hidden = false;
  button.addEventListener("click", () => {
    const dark = root.dataset.theme
      ? root.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    try {
      localStorage.setItem("theme", root.dataset.theme);
    } catch {
      // it holds for this page, then
    }
  });
});
