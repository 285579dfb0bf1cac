// Crossings between the trees (2002, Figure 4), and the linking tree where one node has many counterparts.

const SHORT = { idt: "IDT", dscg: "DSCG", ccsg: "CCSG", ccdg: "CCDG" };

/** The letter of a crossing and what one looks for along it. */
function crossing(from, to) {
  if (to === "idt") return ["A", "the definition of its function, with latency and CPU usage"];
  if (to === "ccdg") return from === "ccsg" ? ["G", "whether its CPU consumption is affected by the change"] : ["F", "whether its implementation is impacted by the change"];
  if (to === "ccsg") return from === "dscg" ? ["D", "the CPU consumption that comes of this causality"] : ["B", "how it behaves in CPU consumption and its propagation"];
  return from === "idt" ? ["C", "how its invocations are carried out and propagated"] : ["E", "the actual causality"];
}

/** Ways from a node to the other trees, with how many nodes answer there. */
function ways(disk, node) {
  return Object.values(models).filter((to) => to !== disk.model).map((to) => {
    const [letter, question] = crossing(disk.model.key, to.key);
    return { to, letter, question, found: counterparts(disk.model, node, to) };
  });
}

function crossingButtons(disk, node) {
  const buttons = ways(disk, node).map(({ to, letter, question, found }) => {
    const attributes = { type: "button", title: `${letter}: to see ${question}`, "data-to": to.key, onclick: () => cross(to, found, disk.model.long(node)) };
    if (!found.length) attributes.disabled = "";
    const many = to.key === "ccdg" && !found.length ? "not impacted" : count(found.length);
    return element("button", attributes, `${letter} → ${SHORT[to.key]} `, element("small", {}, many));
  });
  return element("p", { class: "ways" }, ...buttons);
}

/** Goes to the one counterpart, or lets one of many be chosen. */
function cross(to, found, title) {
  closeMenu();
  if (found.length === 1) return arrive(to, found[0]);
  if (found.length > 1) openLinking(to, found, title);
}

function arrive(to, node) {
  const disk = disks[to.key];
  reveal(to.key);
  disk.select(node);
  disk.canvas.focus({ preventScroll: true });
  disk.canvas.scrollIntoView({ block: "nearest" });
}

// The menu of a node.

let menu = null;

function closeMenu() {
  menu?.remove();
  menu = null;
}

function openMenu(disk, node, event) {
  closeMenu();
  const box = disk.canvas.getBoundingClientRect();
  const [x, y] = event ? [event.clientX, event.clientY] : [box.left + box.width / 2 + 12, box.top + box.height / 2 + 12];
  menu = element("div", { class: "menu", role: "dialog", "aria-label": "To the other trees" });
  for (const { to, letter, question, found } of ways(disk, node)) {
    const attributes = { type: "button", onclick: () => cross(to, found, disk.model.long(node)) };
    if (!found.length) attributes.disabled = "";
    menu.append(element("button", attributes, `${letter} → ${SHORT[to.key]}: ${question} (${count(found.length)})`));
  }
  menu.addEventListener("keydown", (pressed) => {
    const buttons = [...menu.querySelectorAll("button:enabled")], at = buttons.indexOf(document.activeElement);
    const step = { ArrowDown: 1, ArrowUp: -1 }[pressed.key];
    if (step && buttons.length) buttons[(at + step + buttons.length) % buttons.length].focus();
    else if (pressed.key === "Escape") closeMenu(), disk.canvas.focus();
    else return;
    pressed.preventDefault();
  });
  document.body.append(menu);
  menu.style.left = Math.max(4, Math.min(x, innerWidth - menu.offsetWidth - 8)) + "px";
  menu.style.top = Math.max(4, Math.min(y, innerHeight - menu.offsetHeight - 8)) + "px";
  menu.querySelector("button:enabled")?.focus();
}

// The linking tree.

const LISTED = 30;
const linking = document.getElementById("linking");
let linkingDisk = null;

function openLinking(to, found, title) {
  const model = new LinkingTree(to, found, shorten(title, 60));
  document.getElementById("heading-linking").textContent = `${count(found.length)} nodes of the ${SHORT[to.key]} answer to ${title}`;
  const levels = to.key === "dscg" && !to.merged ? "processor, process and thread" : "processor group";
  document.getElementById("linking-words").textContent = `They are arranged by ${levels}. Click a leaf to go there.`;
  linking.showModal();
  const chosen = (disk, node) => listChoices(disk, node);
  if (linkingDisk) linkingDisk.show(model);
  else linkingDisk = new Disk(linking.querySelector("canvas"), model, { chosen, menu: () => {} });
  linkingDisk.resize();
  let node = 0;
  while (model.tree.first[node + 1] - model.tree.first[node] === 1) node = model.tree.first[node];
  linkingDisk.select(node, true);
  linkingDisk.canvas.focus();
}

/** A leaf is gone to; of any other node its children are listed, so that they can be reached one after another by keyboard. */
function listChoices(disk, node) {
  const { model } = disk, { tree } = model;
  if (model.leaves[node] >= 0) {
    linking.close();
    return arrive(model.target, model.leaves[node]);
  }
  const shown = [];
  for (let child = tree.first[node]; child < tree.first[node + 1] && shown.length < LISTED; child++) {
    const words = `${model.short(child)} – ${(100 * model.share(child)).toFixed(1)} %`;
    shown.push(element("li", {}, element("button", { type: "button", class: "link", onclick: () => disk.select(child) }, words)));
  }
  const hidden = tree.first[node + 1] - tree.first[node] - shown.length;
  if (hidden > 0) shown.push(element("li", {}, `and ${count(hidden)} more in the tree`));
  document.getElementById("linking-list").replaceChildren(element("h3", {}, model.short(node)), element("ul", {}, ...shown));
}
