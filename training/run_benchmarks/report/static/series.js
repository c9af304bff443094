"use strict";
// What is reckoned of a chart's data: numbers and times as text, rows of its table, CSV.

function shownNumber(value) {
  if (value === null || value === undefined) return "-";
  const size = Math.abs(value);
  if (size >= 1e7 || (size < 1e-3 && size > 0)) return value.toExponential(3);
  return value.toLocaleString("en-US", { maximumSignificantDigits: 5 });
}

// Seconds as h:mm:ss, with tenths where there is not a minute.
function shownTime(seconds) {
  const sign = seconds < 0 ? "-" : "";
  let rest = Math.abs(seconds);
  if (rest < 60) return `${sign}${+rest.toFixed(1)} s`;
  rest = Math.round(rest);
  const two = (number) => String(number).padStart(2, "0");
  return `${sign}${Math.floor(rest / 3600)}:${two(Math.floor(rest / 60) % 60)}:${two(rest % 60)}`;
}

function shownPlace(axis, value) {
  if (axis.unit === "s") return shownTime(value);
  return shownNumber(value) + (axis.unit ? ` ${axis.unit}` : "");
}

function placesOf(axis) {
  if (axis.values) return axis.values;
  return Array.from({ length: axis.count }, (_, index) => axis.start + index * axis.step);
}

function nameOfLine(line) {
  return line.group && line.group !== line.label ? `${line.group} ${line.label}` : line.label;
}

// Rows of cells, the headings first: a scatter's points, else a row a place of the axis.
function* rowsOf(chart) {
  const axis = chart.axes[0];
  const places = placesOf(axis);
  if (chart.scatter) {
    yield ["set", "point", axis.label, chart.title];
    for (const line of chart.lines)
      for (let index = 0; index < places.length; index++)
        if (line.values[index] !== null) yield [nameOfLine(line), line.names[index] || "", places[index], line.values[index]];
    return;
  }
  const all = chart.axes.map(placesOf);
  yield [...chart.axes.map((each) => (each.unit ? `${each.label} ${each.unit}` : each.label)), ...chart.lines.map(nameOfLine)];
  for (let index = 0; index < places.length; index++)
    yield [...all.map((values) => values[index]), ...chart.lines.map((line) => line.values[index])];
}

// RFC 4180; a text that a spreadsheet would take for a formula gets an apostrophe.
function csvCell(cell) {
  if (cell === null || cell === undefined) return "";
  let text = String(cell);
  if (typeof cell === "string" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function csvOf(chart) {
  const lines = [];
  for (const row of rowsOf(chart)) lines.push(row.map(csvCell).join(","));
  return lines.join("\r\n") + "\r\n";
}
