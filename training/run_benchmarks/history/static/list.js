"use strict";
// Says how many rounds are ticked; without it the page works all the same.

const ticks = [...document.querySelectorAll('input[name="r"]')];

function countTicks() {
  const count = ticks.filter((tick) => tick.checked).length;
  document.getElementById("compare").disabled = count < 2;
  document.getElementById("ticked").textContent = count < 2 ? "Tick two rounds or more." : `${count} are ticked.`;
}

for (const tick of ticks) tick.addEventListener("change", countTicks);
if (document.getElementById("compare")) countTicks();
