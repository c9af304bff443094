"use strict";
// What is reckoned of a chart's data: numbers and times as text, rows of its table.

function shownNumber(value) {
  if (value === null || value === undefined) return "-";
  const size = Math.abs(value);
  if (size >= 1e7 || (size < 1e-5 && size > 0)) return Number(value.toPrecision(4)).toExponential();
  return value.toLocaleString("en-US", { maximumSignificantDigits: 5 });
}

// A time on an axis that goes on to `last`: all of one axis are written alike.
function tickTime(seconds, last) {
  const two = (number) => String(number).padStart(2, "0");
  if (last < 120) return `${+seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  const minutes = Math.floor(whole / 60);
  if (last < 3600) return `${minutes}:${two(whole % 60)} min`;
  return `${Math.floor(minutes / 60)}:${two(minutes % 60)} h${whole % 60 ? ` ${whole % 60} s` : ""}`;
}

// A time by itself, such as 1 h 2 min 3 s.
function shownTime(seconds) {
  const whole = Math.floor(seconds / 60);
  const rest = `${+(seconds - 60 * whole).toFixed(1)} s`;
  if (whole < 1) return rest;
  return whole < 60 ? `${whole} min ${rest}` : `${Math.floor(whole / 60)} h ${whole % 60} min ${rest}`;
}

function shownPlace(axis, value) {
  if (axis.unit === "s") return shownTime(value);
  return shownNumber(value) + (axis.unit ? ` ${axis.unit}` : "");
}

function nameOfLine(line) {
  return line.group && line.group !== line.label ? `${line.group} ${line.label}` : line.label;
}

// Points with their names; of those that are nearer to each other than `reach`, the first with the names of all.
function together(points, reach) {
  const groups = [];
  for (const point of points) {
    const near = groups.find((each) => Math.abs(each.left - point.left) < reach && Math.abs(each.top - point.top) < reach);
    if (near) near.names.push(point.name);
    else groups.push({ ...point, names: [point.name] });
  }
  return groups;
}

// Rows of cells, the headings first: a scatter's points, else a row a place of the axis.
function* rowsOf(chart) {
  const axis = chart.axes[0];
  if (chart.scatter) {
    yield ["set", "point", axis.label, chart.title];
    for (const line of chart.lines)
      for (const [index, value] of line.values.entries()) if (value !== null) yield [nameOfLine(line), line.names[index] || "", axis.values[index], value];
    return;
  }
  yield [...chart.axes.map((each) => (each.unit ? `${each.label} ${each.unit}` : each.label)), ...chart.lines.map(nameOfLine)];
  for (const index of axis.values.keys()) yield [...chart.axes, ...chart.lines].map((each) => each.values[index]);
}
