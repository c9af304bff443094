"use strict";
// Asks every two seconds how far the run is, and shows it as text; ends with the run.

const ASKED_EVERY_MS = 2000;
const from = JSON.parse(document.getElementById("from").textContent);

function put(id, text) {
  const place = document.getElementById(id);
  if (place.textContent !== text) place.textContent = text;
}

function show(run) {
  put("state", run.goesOn ? "goes on" : "It is over: the report has its results.");
  if (!run.goesOn) put("report", "Report");
  const rows = run.rounds.map((round) => {
    const row = document.createElement("tr");
    for (const text of [round.case, round.round, round.stage, round.since_s === null ? "" : shownTime(Math.round(round.since_s))]) row.append(element("td", String(text)));
    return row;
  });
  document.getElementById("rounds").replaceChildren(...rows);
  const log = document.getElementById("log");
  const isAtEnd = log.scrollTop + log.clientHeight >= log.scrollHeight - 4;
  put("log", run.log.join("\n"));
  if (isAtEnd) log.scrollTop = log.scrollHeight;
}

// A chart moves unless somebody reads it, or has zoomed in; where there are other charts than before, the page is loaded anew.
function move(charts) {
  if (charts.length !== FIGURES.length) return location.reload();
  for (const [index, figure] of FIGURES.entries()) {
    if (!figure.chart || figure.isZoomed || figure.plot.matches(":hover, :focus")) continue;
    figure.data = charts[index];
    figure.draw();
  }
}

async function ask() {
  let goesOn = true;
  try {
    const answer = await fetch(from.address, { cache: "no-store" });
    if (!answer.ok) throw new Error(answer.statusText);
    const run = await answer.json();
    show(run);
    move(run.charts);
    goesOn = run.goesOn;
  } catch (error) {
    put("state", `no answer (${error.message}): has run.py serve ended?`);
  }
  if (goesOn) setTimeout(ask, ASKED_EVERY_MS);
}

show(from.now);
if (from.now.goesOn) setTimeout(ask, ASKED_EVERY_MS);
