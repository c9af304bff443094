"use strict";
// What charts are drawn with: elements of the page, its colours, text on a canvas.

const FONT = "12px system-ui, sans-serif";

function element(name, text, attributes) {
  const made = document.createElement(name);
  if (text) made.textContent = text;
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  return made;
}

// Rimmed, for curves may cross it.
function write(ctx, text, left, top, look) {
  const unit = uPlot.pxRatio;
  const rim = { font: `${12 * unit}px system-ui, sans-serif`, strokeStyle: colour("ground"), lineWidth: 4 * unit, lineJoin: "round" };
  Object.assign(ctx, rim, look).setLineDash([]);
  for (const draw of ["strokeText", "fillText"]) ctx[draw](text, left, top);
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

// Beside points, in pixels of the canvas; those that lie on each other have one text.
function writeNames(chart, points) {
  const { ctx, bbox } = chart;
  const unit = uPlot.pxRatio;
  ctx.save();
  for (const { names, left, top } of together(points, 14 * unit)) {
    const isLeft = left > bbox.left + bbox.width * 0.8;
    write(ctx, names.join(", "), left + (isLeft ? -9 : 9) * unit, top, { textAlign: isLeft ? "right" : "left", textBaseline: "middle", fillStyle: colour("text") });
  }
  ctx.restore();
}
