"use strict";
// Asks every two seconds for this page again, and shows what has changed in it; ends with the run.

const ASKED_EVERY_MS = 2000;

// A chart moves unless somebody reads it, or has zoomed in; where there are other charts than before, the page is loaded anew.
function move(contents) {
  if (contents.length !== FIGURES.length) location.reload();
  for (const [index, figure] of FIGURES.entries()) {
    if (!figure.chart || figure.isZoomed || figure.plot.matches(":hover, :focus")) continue;
    figure.data = contents[index];
    figure.draw();
  }
}

function show(page) {
  for (const part of ["#state", "#report", "#rounds tbody", "#log"]) {
    const [own, other] = [document, page].map((each) => each.querySelector(part));
    if (own.innerHTML !== other.innerHTML) own.replaceChildren(...other.childNodes);
  }
  const log = document.getElementById("log");
  if (!log.matches(":hover, :focus")) log.scrollTop = log.scrollHeight;
}

async function ask() {
  try {
    const answer = await fetch(location.href, { cache: "no-store" });
    if (!answer.ok) throw new Error(answer.statusText);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    show(page);
    move([...page.querySelectorAll(".chart script")].map((each) => JSON.parse(each.textContent)));
  } catch (error) {
    document.getElementById("state").textContent = `no answer (${error.message}): has run.py serve ended?`;
  }
  if (!document.getElementById("over")) setTimeout(ask, ASKED_EVERY_MS);
}

show(document);
setTimeout(ask, ASKED_EVERY_MS);
