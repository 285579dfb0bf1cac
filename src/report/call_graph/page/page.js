// The page: panels, the search, and what one selection means in all trees.

const disks = {};
let flame = null;

const hooks = { chosen: selected, menu: openMenu };

/** Marks in each tree what answers to a selection, and describes it. */
function selected(disk, node) {
  closeMenu();
  mark(new Set(disk.model.summaries(node)));
  for (const other of Object.values(disks)) {
    if (other !== disk) other.selected = -1;
    other.invalidate();
  }
  describe(disk, node);
}

function mark(found) {
  const flags = new Uint8Array(nodes.kind.length);
  found.forEach((node) => (flags[node] = 1));
  const functions = new Set([...found].map(functionRow));
  for (const disk of Object.values(disks)) {
    disk.marked = disk.model.key === "idt" ? (row) => functions.has(row) : (row) => flags[disk.model.summary(row)] === 1;
  }
}

/** A panel of a narrow screen, or beside one that is enlarged, comes into view. */
function reveal(key) {
  const board = document.getElementById("board"), large = board.querySelector(".panel.large");
  if (large && large.dataset.tree !== key) enlarge(large, false), enlarge(document.getElementById("panel-" + key), true);
}

function enlarge(panel, on) {
  panel.classList.toggle("large", on);
  document.getElementById("board").classList.toggle("one", on);
  panel.querySelector("[data-do=enlarge]").setAttribute("aria-pressed", on);
}

function wirePanel(panel) {
  const key = panel.dataset.tree;
  panel.querySelector("[data-do=root]").addEventListener("click", () => (key === "flame" ? flame.pick(0) : disks[key].select(0)));
  panel.querySelector("[data-do=enlarge]").addEventListener("click", () => enlarge(panel, !panel.classList.contains("large")));
}

// The search.

let matches = { flags: null, next: {} };

function search(text) {
  const wanted = text.trim().toLowerCase();
  const flags = new Uint8Array(nodes.kind.length);
  let found = 0;
  if (wanted) {
    for (let node = 0; node < flags.length; node++) if (longName(node).toLowerCase().includes(wanted)) (flags[node] = 1), found++;
  }
  matches = { flags, next: {} };
  for (const disk of Object.values(disks)) {
    const { model } = disk;
    const named = (row) => row > 0 && model.kind[row] < 4 && names[model.name[row]].toLowerCase().includes(wanted);
    const isMatch = model.key === "idt" ? named : (row) => flags[model.summary(row)] === 1;
    disk.matched = wanted ? isMatch : () => false;
    disk.invalidate();
  }
  const words = Object.values(disks).map(({ model, matched }) => `${SHORT[model.key]} ${count(matchCount(model, matched))}`);
  document.getElementById("found").textContent = wanted ? (found ? words.join(", ") : "nothing is called so") : "";
}

function matchCount(model, matched) {
  let many = 0;
  for (let row = 0; row < model.tree.size; row++) if (matched(row)) many++;
  return many;
}

/** Goes to the next match in each tree; the first tree that has one gets the selection. */
function nextMatch() {
  let first = null;
  for (const [key, disk] of Object.entries(disks)) {
    const { size } = disk.model.tree, from = matches.next[key] ?? 0;
    for (let step = 0; step < size; step++) {
      const row = (from + step) % size;
      if (!disk.matched(row)) continue;
      matches.next[key] = row + 1;
      disk.go(row);
      first ??= [disk, row];
      break;
    }
  }
  if (first) first[0].select(first[1]);
}

function wireSearch() {
  const input = document.getElementById("search");
  input.addEventListener("input", () => search(input.value));
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") nextMatch();
    else if (event.key === "Escape") (input.value = ""), search("");
    else return;
    event.preventDefault();
  });
}

// Keys of the whole page.

function wireKeys() {
  document.addEventListener("keydown", (event) => {
    const typing = event.target instanceof HTMLInputElement || linking.open;
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/") document.getElementById("search").focus();
    else if (event.key === "Escape" && menu) closeMenu();
    else if (/^[1-4]$/.test(event.key)) crossByKey(Object.values(models)[event.key - 1]);
    else return;
    event.preventDefault();
  });
  document.addEventListener("pointerdown", (event) => menu && !menu.contains(event.target) && closeMenu());
  linking.querySelector("[data-do=close]").addEventListener("click", () => linking.close());
}

function crossByKey(to) {
  const disk = Object.values(disks).find((it) => it.selected >= 0);
  if (!to || !disk) return;
  if (to === disk.model) return arrive(to, disk.selected);
  cross(to, counterparts(disk.model, disk.selected, to), disk.model.long(disk.selected));
}

function legend() {
  const shown = groups.slice(0, 24).map((name, group) => {
    const sign = element("canvas", { width: 28, height: 28, "aria-hidden": "true" }), pen = sign.getContext("2d"), path = new Path2D();
    trace(path, theme.shape(group), 14, 14, 9);
    pen.fillStyle = theme.group(group);
    pen.fill(path);
    return element("li", {}, sign, name);
  });
  if (groups.length > 24) shown.push(element("li", {}, `and ${count(groups.length - 24)} groups more`));
  if (models.dscg.critical.length) shown.push(element("li", {}, element("span", { class: "critical-sign" }), "critical path of the longest operation"));
  if (models.ccdg) shown.push(element("li", {}, "CCDG: ▲ more, ▼ less"));
  document.getElementById("legend").replaceChildren(...shown);
}

/** What came in by the flame graph. */
function chosenFrame(_, at) {
  const node = flame.node[at];
  if (node < 0) return;
  const { ccsg } = models;
  disks.ccsg.select(ccsg.row[node]);
}

function begin() {
  theme.read();
  document.getElementById("tools").hidden = false;
  document.documentElement.classList.add("live");
  legend();
  for (const [key, model] of Object.entries(models)) {
    disks[key] = new Disk(document.querySelector(`#panel-${key} canvas`), model, hooks);
  }
  document.querySelectorAll(".panel").forEach(wirePanel);
  if (models.dscg.critical.length) criticalPath(disks.dscg);
  wireSearch();
  wireKeys();
  // Merging by path takes its time, and the trees are to be seen first.
  setTimeout(() => (flame = new Flame(document.querySelector("#panel-flame canvas"), models.dscg, { chosen: chosenFrame })), 30);
  darkness.addEventListener("change", () => {
    theme.read();
    legend();
    for (const disk of Object.values(disks)) disk.invalidate();
    flame?.draw();
  });
}

begin();
