"use strict";
// Draws the charts of a page with uPlot from the JSON beside each, when they come into view.

const FEW_LINES = 10; // more of them are told apart by their group's colour
const HEIGHT = 240;

class Figure {
  constructor(root) {
    this.root = root;
    this.plot = root.querySelector(".plot");
    this.reading = root.querySelector(".reading");
    this.tools = root.querySelector(".tools");
    this.data = JSON.parse(root.querySelector('script[type="application/json"]').textContent);
    this.axis = 0;
    this.groups = [...new Set(this.data.lines.map((line) => line.group))];
    this.group = null; // the only one that is shown, or all
    this.hidden = new Set(); // keys that the reader has put out
    this.chart = null;
    this.place = null; // of the cursor, by its number on the axis
    root.querySelector(".behind").addEventListener("toggle", () => this.fillRows(), { once: true });
    this.plot.addEventListener("keydown", (event) => this.key(event));
  }

  // Lines of one key share a colour and an entry of the legend.
  keyOf(line) {
    return this.isByGroup() ? line.group : nameOfLine(line);
  }

  // Since the first reading or event; what a scatter has in seconds is a figure.
  isOverTime() {
    return !this.data.scatter && this.data.axes[this.axis].unit === "s";
  }

  isByGroup() {
    return this.group === null && this.groups.length > 1 && this.data.lines.length > FEW_LINES;
  }

  nameOf(line) {
    return this.group === null ? nameOfLine(line) : line.label;
  }

  draw() {
    const left = this.chart && this.chart.scales.x;
    const kept = left && this.isZoomed ? { min: left.min, max: left.max } : null;
    if (this.chart) this.chart.destroy();
    this.place = null;
    this.lines = this.data.lines.filter((line) => this.group === null || line.group === this.group);
    this.keys = [...new Set(this.lines.map((line) => this.keyOf(line)))];
    this.colours = this.lines.map((line) => colour(`line-${this.keys.indexOf(this.keyOf(line)) % 8}`));
    this.places = this.data.axes[this.axis].values;
    this.chart = new uPlot(this.options(), [this.places, ...this.lines.map((line) => line.values)], this.plot);
    const [start, end] = this.ends();
    if (!this.data.scatter) this.chart.setScale("x", kept || { min: start, max: end });
    this.drawTools();
  }

  // The whole of the axis.
  ends() {
    if (this.data.end && this.isOverTime()) return [0, this.data.end];
    return [this.places[0], this.places[this.places.length - 1]];
  }

  options() {
    const [axis, isOverTime] = [this.data.axes[this.axis], this.isOverTime()];
    const [muted, edge] = [colour("muted"), colour("edge")];
    const look = { stroke: muted, grid: { stroke: edge, width: 1 }, ticks: { stroke: edge, width: 1 } };
    const increments = isOverTime ? [0.1, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400] : undefined;
    return {
      width: Math.max(this.plot.clientWidth, 200),
      height: HEIGHT,
      legend: { show: false },
      scales: { x: { time: false, range: (_, low, high) => this.width(low, high) }, y: { range: (_, low, high) => this.range(low, high) } },
      axes: [
        { ...look, label: axis.label + (isOverTime ? " since the first reading or event" : axis.unit ? ` (${axis.unit})` : ""), labelSize: 18, labelFont: FONT, size: 34, font: FONT, incrs: increments, space: isOverTime ? 70 : 60, values: (_, splits) => splits.map((value) => (isOverTime ? tickTime(value, splits[splits.length - 1]) : shownNumber(value))) },
        { ...look, size: 58, font: FONT, values: (_, splits) => splits.map(shownNumber) },
      ],
      series: [{}, ...this.lines.map((line, index) => this.series(line, index))],
      cursor: { y: false, focus: { prox: 1e6 }, points: { one: true }, drag: { x: true, y: false }, sync: this.data.link && axis.unit === "s" ? { key: this.data.link, setSeries: false, scales: ["x", null] } : undefined },
      focus: { alpha: this.lines.length > 1 ? 0.3 : 1 },
      hooks: {
        drawClear: [(chart) => this.shade(chart)],
        draw: [(chart) => this.drawLevels(chart), (chart) => this.drawNames(chart)],
        setCursor: [(chart) => this.moved(chart)],
        setSeries: [(_, index) => this.focused(index)],
        setScale: [(chart, scale) => scale === "x" && this.zoomed(chart)],
      },
    };
  }

  series(line, index) {
    const points = this.data.scatter || line.values.length < 40;
    const own = { label: line.label, stroke: this.colours[index], width: this.lines.length > FEW_LINES ? 1 : 1.6, spanGaps: false, show: !this.hidden.has(this.keyOf(line)) };
    if (this.data.scatter) return { ...own, paths: () => null, points: { show: true, size: 9, fill: this.colours[index] } };
    return { ...own, points: { show: points, size: 4, fill: this.colours[index] } };
  }

  // Of the axis; points have room around them.
  width(low, high) {
    if (low === high) return [low - 1, high + 1];
    const room = this.data.scatter ? (high - low) * 0.06 : 0;
    return [low - room, high + room];
  }

  range(low, high) {
    const levels = this.data.levels.map((level) => level[1]);
    const ends = [low, high, ...levels, ...(this.data.fromZero ? [0] : [])].filter((value) => value !== null && value !== undefined);
    if (!ends.length) return [0, 1];
    const [least, most] = [Math.min(...ends), Math.max(...ends)];
    if (least === most) return this.data.fromZero && least === 0 ? [0, 1] : [least - Math.abs(least) * 0.1 - 1e-9, most + Math.abs(most) * 0.1 + 1e-9];
    const room = (most - least) * 0.06;
    return [this.data.fromZero && least === 0 ? 0 : least - room, most + room];
  }

  // Phases lie behind the grid. One that lies in another covers it, so that colours do not mix; a short one can be seen.
  shade(chart) {
    if (!this.isOverTime()) return;
    const { ctx, bbox } = chart;
    ctx.save();
    for (const [kind, start, end] of this.data.phases) {
      const from = Math.max(chart.valToPos(start, "x", true), bbox.left);
      const to = Math.min(chart.valToPos(end, "x", true), bbox.left + bbox.width);
      if (to <= from) continue;
      for (const [name, alpha] of [["ground", 1], [kind, Number(colour("phase-alpha"))]]) {
        ctx.globalAlpha = alpha;
        ctx.fillStyle = colour(name);
        ctx.fillRect(from, bbox.top, Math.max(to - from, 2 * uPlot.pxRatio), bbox.height);
      }
    }
    ctx.restore();
  }

  drawLevels(chart) {
    const { ctx, bbox } = chart;
    for (const [name, value] of this.data.levels) {
      const top = chart.valToPos(value, "y", true);
      ctx.save();
      ctx.strokeStyle = ctx.fillStyle = colour("text");
      ctx.setLineDash([6 * uPlot.pxRatio, 4 * uPlot.pxRatio]);
      ctx.beginPath();
      ctx.moveTo(bbox.left, top);
      ctx.lineTo(bbox.left + bbox.width, top);
      ctx.stroke();
      this.writeLevel(ctx, bbox, name, top);
      ctx.restore();
    }
  }

  // Above its line, or below where there is no room.
  writeLevel(ctx, box, name, top) {
    const unit = uPlot.pxRatio;
    const isAbove = top - box.top > 18 * unit;
    write(ctx, name, box.left + 4 * unit, top + (isAbove ? -4 : 4) * unit, { textAlign: "left", textBaseline: isAbove ? "bottom" : "top" });
  }

  // Beside points that are each all of their set: the set.
  drawNames(chart) {
    const lines = this.data.scatter ? this.lines.filter((line) => !this.hidden.has(this.keyOf(line))) : [];
    if (!lines.every((line) => line.values.filter((value) => value !== null).length === 1)) return;
    const points = lines.map((line) => {
      const place = line.values.findIndex((value) => value !== null);
      return { name: this.nameOf(line), left: chart.valToPos(this.places[place], "x", true), top: chart.valToPos(line.values[place], "y", true) };
    });
    writeNames(chart, points);
  }

  moved(chart) {
    if (this.isByKey) return; // of several points at one place of the axis it would always be the first
    this.place = chart.cursor.idx ?? null;
    this.read();
  }

  focused(index) {
    if (this.isByKey) return; // it stays with its line
    this.nearest = index;
    this.read();
  }

  // What stands at the cursor, in words: of the line that is nearest to it, or of all where they are few.
  read() {
    const place = this.place;
    if (place === null) {
      this.reading.textContent = "";
      return;
    }
    const axis = this.data.axes[this.axis];
    const near = this.nearest ? [this.lines[this.nearest - 1]] : [];
    const lines = this.data.scatter || this.lines.length > FEW_LINES ? near : this.lines;
    const words = lines.filter((line) => line && line.values[place] !== null && line.values[place] !== undefined).map((line) => {
      return `${line.names[place] || this.nameOf(line)}: ${shownNumber(line.values[place])}${this.data.unit ? ` ${this.data.unit}` : ""}`;
    });
    this.reading.textContent = [shownPlace(axis, this.places[place]), ...words].join("   ");
  }

  zoomed(chart) {
    const { min, max } = chart.scales.x;
    const [start, end] = this.ends();
    this.isZoomed = min > start || max < end;
    if (this.whole) this.whole.hidden = !this.isZoomed;
    if (!this.data.link || !this.isOverTime() || Figure.isZooming) return;
    Figure.isZooming = true; // those of one link show the same time
    for (const other of FIGURES)
      if (other !== this && other.chart && other.data.link === this.data.link && other.isOverTime()) other.chart.setScale("x", { min, max });
    Figure.isZooming = false;
  }

  key(event) {
    const chart = this.chart;
    if (!chart || event.ctrlKey || event.metaKey || event.altKey) return;
    const { min, max } = chart.scales.x;
    const last = this.places.length - 1;
    const at = this.place ?? -1;
    const jump = event.shiftKey ? Math.max(1, Math.round(last / 20)) : 1;
    const moves = { ArrowRight: Math.min(at + jump, last), ArrowLeft: Math.max(at - jump, 0), Home: 0, End: last };
    if (event.key in moves) this.point(moves[event.key]);
    else if (event.key === "ArrowUp" || event.key === "ArrowDown") this.step(event.key === "ArrowUp" ? -1 : 1);
    else if (event.key === "+" || event.key === "=" || event.key === "-") {
      const middle = at < 0 ? (min + max) / 2 : this.places[at];
      const factor = event.key === "-" ? 2 : 0.5;
      const [start, end] = this.ends();
      chart.setScale("x", { min: Math.max(middle - (middle - min) * factor, start), max: Math.min(middle + (max - middle) * factor, end) });
    } else if (event.key === "Escape") this.showAll();
    else return;
    event.preventDefault();
  }

  point(place) {
    if (this.data.scatter) this.nearest = this.lines.findIndex((line) => line.values[place] !== null) + 1; // each point is of one
    this.nearest = this.nearest || 1;
    const value = this.lines[this.nearest - 1].values[place];
    const top = value === null || value === undefined ? 10 : this.chart.valToPos(value, "y");
    this.place = place;
    this.isByKey = true;
    this.chart.setCursor({ left: this.chart.valToPos(this.places[place], "x"), top });
    this.chart.setSeries(this.nearest, { focus: true });
    this.isByKey = false;
    this.read();
  }

  // The line before or after the one that is read.
  step(by) {
    const count = this.lines.length;
    this.nearest = (((this.nearest || 1) - 1 + by + count) % count) + 1;
    this.point(this.place ?? 0);
  }

  showAll() {
    const [min, max] = this.ends();
    this.chart.setScale("x", { min, max });
  }

  drawTools() {
    this.tools.replaceChildren();
    if (this.data.axes.length > 1) this.addSelect("Over", this.data.axes.map((axis, index) => [index, axis.label]), this.axis, (value) => (this.axis = Number(value)));
    if (this.groups.length > 1 && this.data.lines.length > FEW_LINES)
      this.addSelect("Of", [["", "all"], ...this.groups.map((name) => [name, name])], this.group || "", (value) => (this.group = value || null));
    if (this.keys.length > 1 && this.keys.length <= 64) this.keys.forEach((key, index) => this.addEntry(key, index));
    this.tools.append(element("span", "", { class: "gap" }));
    this.whole = element("button", "Show all", { type: "button", class: "plain" });
    this.whole.hidden = !this.isZoomed;
    this.whole.addEventListener("click", () => this.showAll());
    this.tools.append(this.whole);
  }

  addSelect(label, choices, chosen, choose) {
    const select = element("select", "", { "aria-label": `${label}: ${this.data.title}` });
    for (const [value, text] of choices) select.append(element("option", text, { value }));
    select.value = chosen;
    select.addEventListener("change", () => {
      choose(select.value);
      this.isZoomed = false;
      this.nearest = null;
      this.draw();
      this.tools.querySelector(`select[aria-label="${CSS.escape(label)}: ${CSS.escape(this.data.title)}"]`)?.focus();
    });
    this.tools.append(select);
  }

  addEntry(key, index) {
    const entry = element("button", "", { type: "button", class: "entry" });
    entry.innerHTML = `<svg viewBox="0 0 12 12" aria-hidden="true"><circle class="phase-${index % 8}" cx="6" cy="6" r="5"/></svg>`;
    const places = [...this.lines.keys()].filter((place) => this.keyOf(this.lines[place]) === key);
    entry.append((this.isByGroup() ? key : this.nameOf(this.lines[places[0]])) || "(none)");
    entry.setAttribute("aria-pressed", String(!this.hidden.has(key)));
    entry.addEventListener("click", () => {
      if (!this.hidden.delete(key)) this.hidden.add(key);
      entry.setAttribute("aria-pressed", String(!this.hidden.has(key)));
      this.chart.batch(() => places.forEach((place) => this.chart.setSeries(place + 1, { show: !this.hidden.has(key) })));
    });
    this.tools.append(entry);
  }

  fillRows() {
    const table = element("table");
    const [headings, ...rows] = rowsOf(this.data);
    table.createTHead().insertRow().append(...headings.map((cell) => element("th", cell, { scope: "col" })));
    const body = table.createTBody();
    for (const row of rows) body.insertRow().append(...row.map((cell) => element("td", typeof cell === "string" ? cell : shownNumber(cell))));
    this.root.querySelector(".behind .wide").append(table);
  }
}

const FIGURES = [...document.querySelectorAll("figure.chart")].filter((root) => root.querySelector(".plot")).map((root) => new Figure(root));
