"use strict";
// The page's own doings: draw charts that come into view, light and dark, widths, print.

function drawVisible() {
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      seen.unobserve(entry.target);
      FIGURES.find((figure) => figure.root === entry.target).draw();
    }
  }, { rootMargin: "400px" });
  for (const figure of FIGURES) seen.observe(figure.root);
}

function redraw() {
  for (const figure of FIGURES) if (figure.chart) figure.draw();
}

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  const button = document.getElementById("theme");
  button.textContent = name === "dark" ? "Light" : "Dark";
  button.setAttribute("aria-pressed", String(name === "dark"));
  redraw();
}

const THEME = "flagperf-theme";
let storage = {};
try {
  storage = localStorage;
} catch {
  // a page of a file may have none: a choice holds for this page only
}

function toggleTheme() {
  storage[THEME] = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  setTheme(storage[THEME]);
}

const PAPER = { width: 335, height: 150 }; // two side by side on A4 less its margins, in CSS pixels
let themeOnScreen = null;
let opened = []; // paper has no way to unfold what is folded

function toPaper() {
  themeOnScreen = document.documentElement.dataset.theme;
  opened = [...document.querySelectorAll("details:not(.behind):not([open])")].filter((each) => !each.closest(".card"));
  for (const each of opened) each.open = true;
  setTheme("light");
  for (const figure of FIGURES) {
    if (!figure.chart) figure.draw();
    figure.chart.setSize(PAPER);
  }
}

function fromPaper() {
  for (const each of opened) each.open = false;
  setTheme(themeOnScreen);
}

const prefersDark = matchMedia("(prefers-color-scheme: dark)");
setTheme(storage[THEME] || (prefersDark.matches ? "dark" : "light"));
prefersDark.addEventListener("change", (event) => storage[THEME] || setTheme(event.matches ? "dark" : "light"));
document.getElementById("theme").addEventListener("click", toggleTheme);
addEventListener("beforeprint", toPaper);
addEventListener("afterprint", fromPaper);
let resized;
addEventListener("resize", () => {
  clearTimeout(resized);
  resized = setTimeout(() => {
    for (const figure of FIGURES) if (figure.chart && figure.chart.width !== figure.plot.clientWidth) figure.chart.setSize({ width: Math.max(figure.plot.clientWidth, 200), height: HEIGHT });
  }, 100);
});
drawVisible();
