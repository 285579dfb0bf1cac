// What is said in words about a selection.

function element(tag, attributes, ...content) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value);
  }
  made.append(...content.filter((part) => part !== null));
  return made;
}

const PATH = 8;
const CROSS_LINKS = 40;

/** The way from the root, the last steps of it; each is a button. */
function breadcrumbs(disk, node) {
  const path = disk.model.tree.path(node).slice(0, -1), shown = path.slice(-PATH);
  if (!path.length) return null;
  const step = (at) => element("button", { type: "button", class: "link", onclick: () => disk.select(at) }, shorten(disk.model.short(at), 40));
  const hidden = path.length - shown.length;
  const parts = hidden > 0 ? [step(path[0]), ` … ${things(hidden, "step", "steps")} … `] : [];
  shown.forEach((at, place) => parts.push(place > 0 || hidden > 0 ? " › " : "", step(at)));
  return element("p", { class: "path" }, ...parts);
}

function factList(facts) {
  return element("dl", {}, ...facts.flatMap(([term, value]) => [element("dt", {}, term), element("dd", {}, value)]));
}

function captioned(caption, head, rows) {
  const parts = [element("caption", {}, caption), element("thead", {}, head), element("tbody", {}, ...rows)];
  return element("div", { class: "frame" }, element("table", {}, ...parts));
}

function factTable({ heads, rows }) {
  const row = (cells, tag) => element("tr", {}, ...cells.map((cell, place) => element(tag, { ...(place > 1 && { class: "n" }), ...(tag === "th" && { scope: "col" }) }, cell)));
  const shown = rows.slice(0, 100), hidden = rows.length - shown.length;
  const caption = `By object and processor group${hidden > 0 ? `; ${things(hidden, "row", "rows")} more in the tree` : ""}`;
  return captioned(caption, row(heads, "th"), shown.map((cells) => row(cells, "td")));
}

/** Secondary links of a summary node; each goes to its other end. */
function crossList(disk, node) {
  const links = disk.model.crossLinks(node);
  if (!links.length) return null;
  const items = links.slice(0, CROSS_LINKS).map(([to, words]) => element("li", {}, element("button", { type: "button", class: "link", onclick: () => disk.select(to) }, words)));
  if (links.length > CROSS_LINKS) items.push(element("li", {}, `and ${things(links.length - CROSS_LINKS, "link", "links")} more`));
  return element("div", {}, element("h3", {}, "Secondary links"), element("ul", {}, ...items));
}

const STRETCHES = 100;

/** The critical path of the longest operation, from its begin to its end; each stretch leads to its call. */
function criticalPath(disk) {
  const { critical } = disk.model;
  const row = ([node, from, to, transit]) => element("tr", {}, ...[time(from), time(to - from)].map((cell) => element("td", { class: "n" }, cell)),
    element("td", {}, element("button", { type: "button", class: "link", onclick: () => disk.select(node) }, (transit ? "to or from " : "") + disk.model.short(node))));
  const hidden = critical.slice(STRETCHES), rest = hidden.length ? [hidden[0][1], critical.at(-1)[2]] : [];
  const more = hidden.length ? element("p", { class: "quiet" }, `${things(hidden.length, "stretch", "stretches")} more: ${time(rest[1] - rest[0])}`) : "";
  const heads = ["From", "For", "Call"].map((head) => element("th", { scope: "col" }, head));
  const caption = `Critical path of the longest operation: ${time(critical.at(-1)[2])}`;
  const table = captioned(caption, element("tr", {}, ...heads), critical.slice(0, STRETCHES).map(row));
  document.getElementById("critical").replaceChildren(table, more);
}

/** Fills the panel of the selection. */
function describe(disk, node) {
  const { model } = disk, table = model.table?.(node);
  const parts = [
    element("h3", { class: "name" }, model.long(node)),
    breadcrumbs(disk, node),
    element("p", { class: "quiet" }, `in the ${model.title}`),
    crossingButtons(disk, node),
    factList(model.facts(node)),
    table ? factTable(table) : null,
    crossList(disk, node),
  ];
  document.getElementById("selection").replaceChildren(...parts.filter((part) => part !== null));
}
