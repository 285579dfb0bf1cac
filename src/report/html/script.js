"use strict";
// Reading values off the curves, by pointer and by keyboard. Without this script each point still has a title and each chart a table.
for (const chart of document.querySelectorAll(".chart")) {
  const plot = chart.querySelector(".plot"), tip = chart.querySelector(".tip"), cross = plot.querySelector(".cross");
  const columns = new Map();
  for (const series of plot.querySelectorAll(".series")) {
    for (const point of series.querySelectorAll("circle")) {
      const at = point.getAttribute("cx");
      if (!columns.has(at)) columns.set(at, []);
      columns.get(at).push({ point, name: series.dataset.name });
      point.querySelector("title")?.remove(); // the tip says it, and more
    }
  }
  const places = [...columns.keys()].sort((a, b) => a - b);
  if (!places.length) continue;
  let at = 0;

  const words = () => {
    const points = columns.get(places[at]);
    return [points[0].point.dataset.x, points.map(({ point, name }) => name + ": " + point.dataset.y)];
  };
  const clear = () => {
    plot.classList.remove("reading");
    for (const point of plot.querySelectorAll(".on")) point.classList.remove("on");
    tip.hidden = true;
  };
  const show = (next) => {
    clear();
    at = Math.max(0, Math.min(places.length - 1, next));
    const [title, lines] = words(), x = places[at];
    for (const { point } of columns.get(x)) point.classList.add("on");
    cross.setAttribute("x1", x);
    cross.setAttribute("x2", x);
    plot.classList.add("reading");
    const head = document.createElement("strong");
    head.textContent = title;
    tip.replaceChildren(head, ...lines.map((line) => {
      const row = document.createElement("span");
      row.textContent = line;
      row.style.display = "block";
      return row;
    }));
    tip.hidden = false;
    const box = plot.getBoundingClientRect(), frame = chart.getBoundingClientRect();
    const left = box.left - frame.left + (x / plot.viewBox.baseVal.width) * box.width;
    const fits = left + 14 + tip.offsetWidth < frame.width;
    tip.style.left = Math.max(0, fits ? left + 14 : left - 14 - tip.offsetWidth) + "px";
    tip.style.top = box.top - frame.top + 18 + "px";
    plot.setAttribute("aria-valuenow", at + 1);
    plot.setAttribute("aria-valuetext", title + ". " + lines.join(", "));
  };

  plot.setAttribute("tabindex", "0");
  plot.setAttribute("role", "slider");
  plot.setAttribute("aria-valuemin", 1);
  plot.setAttribute("aria-valuemax", places.length);
  plot.setAttribute("aria-valuenow", 1);
  plot.setAttribute("aria-valuetext", words().flat().join(", "));
  document.documentElement.classList.add("live");
  const nearest = (event) => {
    const box = plot.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * plot.viewBox.baseVal.width;
    let best = 0;
    places.forEach((place, index) => { if (Math.abs(place - x) < Math.abs(places[best] - x)) best = index; });
    return best;
  };
  plot.addEventListener("pointermove", (event) => show(nearest(event)));
  plot.addEventListener("pointerdown", (event) => show(nearest(event)));
  plot.addEventListener("pointerleave", () => { if (document.activeElement !== plot) clear(); });
  plot.addEventListener("focus", () => show(at));
  plot.addEventListener("blur", clear);
  plot.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 5, PageDown: -5 }[event.key];
    if (step) show(at + step);
    else if (event.key === "Home") show(0);
    else if (event.key === "End") show(places.length - 1);
    else if (event.key === "Escape") clear();
    else return;
    event.preventDefault();
  });
}
