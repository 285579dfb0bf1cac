// What the four trees are of. Each model tells of its nodes their names, shares, processor groups and facts; `summary` is the node of the CCSG
// that a node belongs to, by which the trees are coordinated.

const data = JSON.parse(document.getElementById("data").textContent);
const { names, groups, nodes } = data;

const sum = (sparse) => {
  let whole = 0;
  for (let at = 1; at < sparse.length; at += 2) whole += sparse[at];
  return whole;
};

/** The coordinate that is the greatest, or -1. */
const greatest = (sparse) => {
  let best = -1, most = 0;
  for (let at = 0; at < sparse.length; at += 2) if (Math.abs(sparse[at + 1]) > most) [best, most] = [sparse[at], Math.abs(sparse[at + 1])];
  return best;
};

const digits = (value) => (value === 0 ? "0" : String(Number(value.toPrecision(3))));
const count = (value) => String(value).replace(/\B(?=(\d{3})+(?!\d))/g, "\u2009");
const things = (value, one, many) => `${count(value)} ${value === 1 ? one : many}`;

function time(nanoseconds) {
  const size = Math.abs(nanoseconds);
  if (size >= 1e9) return digits(nanoseconds / 1e9) + " s";
  if (size >= 1e6) return digits(nanoseconds / 1e6) + " ms";
  if (size >= 1e3) return digits(nanoseconds / 1e3) + " µs";
  return digits(nanoseconds) + " ns";
}

const MAIN = nodes.kind.indexOf("main");
const WHOLE = Math.max(1, sum(nodes.inclusive[MAIN]));
const MEASURE = data.wall ? "time on the wall" : "processor time";
const percent = (part) => `${((100 * part) / WHOLE).toFixed(1)} %`;
const share = (part) => `${time(part)}, ${percent(part)}`;

/** A vector with the names of its groups. */
const vector = (sparse) => {
  const words = [];
  for (let at = 0; at < sparse.length; at += 2) words.push(`${groups[sparse[at]]} ${time(sparse[at + 1])}`);
  return words.length === 0 ? "none" : words.length > 12 ? [...words.slice(0, 12), `and ${words.length - 12} groups more`].join(", ") : words.join(", ");
};

const statistics = ([many, mean, deviation, least, most]) =>
  `mean ${time(mean)}, deviation ${time(deviation)}, ${time(least)} to ${time(most)} (${things(many, "value", "values")})`;

const objectOf = (node) => names[nodes.object[node]];
const functionOf = (node) => (nodes.kind[node] === "thread" ? "threads of " : "") + (names[nodes.function[node]] || "(main)");
const shortName = (node) => functionOf(node) + (objectOf(node) ? ` [${objectOf(node)}]` : "");
const longName = (node) => {
  const name = names[nodes.interface[node]] ? `${names[nodes.interface[node]]}::${names[nodes.function[node]]}` : names[nodes.function[node]];
  return (nodes.kind[node] === "thread" ? `threads of ${name || "(main)"}` : name || "(main)") + (objectOf(node) ? ` [${objectOf(node)}]` : "");
};

class Model {
  constructor(key, title, tree) {
    Object.assign(this, { key, title, tree });
  }
  /** Made when it is first looked at, since it follows the shares. */
  get layout() {
    return (this.made ??= new Layout(this.tree, Float64Array.from({ length: this.tree.size }, (_, node) => this.share(node))));
  }
  /** The node of the CCSG, or -1. */
  summary() { return -1; }
  /** All nodes of the CCSG that a node stands for. */
  summaries(node) { return this.summary(node) < 0 ? [] : [this.summary(node)]; }
  /** Above 0 where a change adds time, below where it takes time away. */
  change() { return 0; }
  long(node) { return this.short(node); }
  /** Links beside the tree: the node at the other end, and words. */
  crossLinks() { return []; }
}

class InterfaceTree extends Model {
  constructor({ steps, ...columns }) {
    super("idt", "interface definition tree", new Tree(steps));
    Object.assign(this, columns);
    const leaf = (node) => this.kind[node] === 4;
    const spent = (node) => (this.time[node].length ? this.time[node][0] * this.time[node][1] : 0);
    this.own = this.kind.map((kind, node) => (kind === 3 ? spent(node) : 0));
    this.sums = this.tree.inclusive(this.own);
    this.kind.forEach((kind, node) => leaf(node) && (this.sums[node] = spent(node)));
    this.calls = this.tree.inclusive(this.count.map((count, node) => (leaf(node) ? 0 : count)));
    this.kind.forEach((kind, node) => leaf(node) && (this.calls[node] = this.count[node]));
  }
  short(node) {
    const name = names[this.name[node]];
    if (this.kind[node] === 4) return (name || "(no object)") + (this.group[node] < 0 ? "" : ` on ${groups[this.group[node]]}`);
    return node === 0 ? "interfaces" : name || "(no name)";
  }
  long(node) {
    const path = this.tree.path(node).slice(1).filter((step) => this.kind[step] < 4).map((step) => names[this.name[step]]).join("::");
    return this.kind[node] === 4 ? `${path} ${this.short(node)}` : path || "interfaces";
  }
  summary(node) { return this.kind[node] === 4 ? this.node[node] : node === 0 ? MAIN : -1; }
  summaries(node) {
    if (node === 0) return [MAIN];
    const found = new Set(), open = [node];
    while (open.length) {
      const at = open.pop();
      if (this.kind[at] === 4) found.add(this.node[at]);
      for (let child = this.tree.first[at]; child < this.tree.first[at + 1]; child++) open.push(child);
    }
    return [...found].filter((it) => it >= 0);
  }
  groupOf(node) { return this.kind[node] === 4 ? this.group[node] : -1; }
  share(node) { return this.sums[node] / WHOLE; }
  facts(node) {
    const facts = [["Kind", ["all interfaces", "module", "interface", "function", "implementation"][this.kind[node]]]];
    facts.push(["Calls", count(this.calls[node])], ["Self", share(this.sums[node])]);
    if (this.time[node].length) facts.push([`${data.wall ? "Time" : "CPU"} a call`, statistics(this.time[node])]);
    if (this.latency[node].length) facts.push(["Latency", statistics(this.latency[node])]);
    return facts;
  }
  /** Of a function: mean and deviation by object and processor group. */
  table(node) {
    if (this.kind[node] !== 3) return null;
    const rows = [];
    for (let child = this.tree.first[node]; child < this.tree.first[node + 1]; child++) {
      const known = this.time[child].length > 0;
      const where = this.group[child] < 0 ? "unknown" : groups[this.group[child]];
      rows.push([names[this.name[child]] || "–", where, count(this.count[child]), known ? time(this.time[child][1]) : "–", known ? time(this.time[child][2]) : "–"]);
    }
    return { heads: ["Object", "Group", "Calls", "Mean", "Deviation"], rows };
  }
}

const FLAGS = ["in the thread of its caller", "its caller does not wait", "incomplete"];

class CallTree extends Model {
  constructor({ steps, ...columns }) {
    super("dscg", "dynamic system call graph", new Tree(steps));
    Object.assign(this, columns);
    this.sums = this.tree.inclusive(this.own.map((own) => Math.max(0, own)));
    for (let row = 1; row < this.chain.length; row++) this.chain[row] += this.chain[row - 1];
    /** Time on the critical path of the longest operation, by node. */
    this.onPath = new Map();
    for (const [row, from, to] of this.critical) this.onPath.set(row, (this.onPath.get(row) ?? 0) + to - from);
  }
  short(node) {
    if (this.node[node] < 0) return `… ${things(this.count[node], "path", "paths")} more`;
    const many = this.merged && this.count[node] !== 1 ? ` ×${count(this.count[node])}` : "";
    return shortName(this.node[node]) + many;
  }
  long(node) { return this.node[node] < 0 ? this.short(node) : longName(this.node[node]); }
  summary(node) { return this.node[node]; }
  groupOf(node) { return this.site[node] < 0 ? -1 : this.sites[this.site[node]][3]; }
  share(node) { return this.sums[node] / WHOLE; }
  /** Processor, process and thread by name, as far as they are known. */
  place(node) {
    const group = this.groupOf(node);
    if (group < 0) return ["unknown"];
    const [thread, process, processor] = this.sites[this.site[node]];
    if (thread < 0) return [groups[group]];
    const host = names[processor] || groups[group];
    return [host === groups[group] ? host : `${groups[group]}: ${host}`, `process ${names[process] || "–"}`, `thread ${names[thread] || "–"}`];
  }
  facts(node) {
    if (this.node[node] < 0) return [["Paths", count(this.count[node])], ["Inclusive", share(this.sums[node])]];
    const facts = [["Self", this.own[node] < 0 ? "cannot be told" : share(this.own[node])], ["Inclusive", share(this.sums[node])]];
    if (node === 0) {
      facts.unshift([this.merged ? "Paths" : "Calls", count(this.whole)]);
      return facts;
    }
    facts.push(["Where", this.place(node).join(", ")]);
    if (this.merged) {
      facts.unshift(["Calls along this path", count(this.count[node])]);
      return facts;
    }
    if (this.onPath.has(node)) facts.push(["On the critical path", time(this.onPath.get(node))]);
    if (this.latency.length && this.latency[node] >= 0) facts.push(["From begin to end, probes included", time(this.latency[node])]);
    facts.push(["First record", `event ${this.event[node]} of chain ${this.chains[this.chain[node]]}`]);
    const flags = FLAGS.filter((_, bit) => this.flags[node] & (1 << bit));
    if (flags.length) facts.push(["Marks", flags.join(", ")]);
    return facts;
  }
}

class SummaryTree extends Model {
  constructor(key, title, { steps, ...columns }) {
    super(key, title, new Tree(steps));
    Object.assign(this, columns);
    this.row = new Int32Array(nodes.kind.length).fill(-1);
    this.node.forEach((node, row) => (this.row[node] = row));
  }
  short(node) { return shortName(this.node[node]); }
  long(node) { return longName(this.node[node]); }
  summary(node) { return this.node[node]; }
  groupOf(node) { return greatest(nodes.own[this.node[node]]); }
  share(node) { return sum(nodes.inclusive[this.node[node]]) / WHOLE; }
  facts(node) {
    const of = this.node[node];
    const facts = [["Calls", count(nodes.invocations[of])], ["Self", `${share(sum(nodes.own[of]))}: ${vector(nodes.own[of])}`]];
    facts.push(["Inclusive", `${share(sum(nodes.inclusive[of]))}: ${vector(nodes.inclusive[of])}`]);
    facts.push(["Descendent", vector(nodes.descendent[of])]);
    if (nodes.time[of].length) facts.push(["Self a call", statistics(nodes.time[of])]);
    if (nodes.latency[of].length) facts.push(["Latency", statistics(nodes.latency[of])]);
    if (node > 0) facts.push(["Calls along this link", count(this.count[node])]);
    return facts;
  }
  crossLinks(node) {
    const of = this.node[node], links = [];
    for (const [from, to, many] of this.secondary) {
      if (from === of) links.push([this.row[to], `calls ${longName(to)}, ${things(many, "time", "times")}`]);
      else if (to === of) links.push([this.row[from], `called by ${longName(from)}, ${things(many, "time", "times")}`]);
    }
    return links;
  }
}

class ChangeTree extends SummaryTree {
  constructor(columns) {
    super("ccdg", "CPU consumption delta graph", columns);
    this.delta = this.changed.map(([, , [before, after]]) => sum(after) - sum(before));
    this.greatest = this.delta.reduce((most, delta) => Math.max(most, Math.abs(delta)), 1);
  }
  change(node) { return this.delta[node] / this.greatest; }
  share(node) { return Math.abs(this.delta[node]) / this.greatest; }
  facts(node) {
    const [own, descendent, inclusive] = this.changed[node], [before, after] = own;
    const words = (pair) => {
      const [old, now] = pair.map(sum);
      const relative = old === 0 ? "" : `, ${now >= old ? "+" : "−"}${Math.abs((100 * (now - old)) / old).toFixed(1)} %`;
      return `${time(old)} before, ${time(now)} after${relative}`;
    };
    return [["Self", words(own)], ["Inclusive", words(inclusive)], ["Descendent", words(descendent)], ["Self before", vector(before)], ["Self after", vector(after)]];
  }
}

/** The linking tree: places of many counterparts, processor, process and thread, above the counterparts themselves. */
class LinkingTree extends Model {
  constructor(target, found, title) {
    const parents = [-1], labels = [title], leaves = [-1], inner = [new Map()], sizes = [found.length];
    const add = (parent, label, leaf) => {
      parents.push(parent), labels.push(label), leaves.push(leaf), inner.push(leaf < 0 ? new Map() : null), sizes.push(leaf < 0 ? 0 : 1);
      return parents.length - 1;
    };
    for (const node of found) {
      let at = 0;
      for (const step of target.place ? target.place(node) : [target.groupOf(node) < 0 ? "all groups" : groups[target.groupOf(node)]]) {
        if (!inner[at].has(step)) inner[at].set(step, add(at, step, -1));
        at = inner[at].get(step);
        sizes[at]++;
      }
      add(at, "", node);
    }
    const order = breadthFirst(parents, (one, other) => sizes[other] - sizes[one] || one - other);
    super("linking", title, order.tree);
    this.target = target;
    this.labels = Array.from(order.nodes, (node) => labels[node]);
    this.leaves = Int32Array.from(order.nodes, (node) => leaves[node]);
    this.sizes = Array.from(order.nodes, (node) => sizes[node]);
    this.sums = this.tree.inclusive(Float64Array.from(this.leaves, (leaf) => (leaf < 0 ? 0 : target.share(leaf))));
  }
  short(node) {
    if (this.leaves[node] < 0) return `${this.labels[node]} (${count(this.sizes[node])})`;
    const { target } = this, leaf = this.leaves[node];
    return target.event && !target.merged ? `${target.chains[target.chain[leaf]]} event ${target.event[leaf]}` : target.short(leaf);
  }
  groupOf(node) { return this.leaves[node] < 0 ? -1 : this.target.groupOf(this.leaves[node]); }
  share(node) { return Math.min(1, this.sums[node] / Math.max(1e-12, this.sums[0])); }
  facts(node) { return this.leaves[node] < 0 ? [] : this.target.facts(this.leaves[node]); }
}

const models = {
  idt: new InterfaceTree(data.idt),
  dscg: new CallTree(data.dscg),
  ccsg: new SummaryTree("ccsg", "CPU consumption summarization graph", data.ccsg),
};
if (data.ccdg) models.ccdg = new ChangeTree(data.ccdg);

/** For each node of the CCSG, the calls of the DSCG, by ranges of one column. */
const callsOf = (() => {
  const start = new Int32Array(nodes.kind.length + 1), column = models.dscg.node;
  for (const node of column) if (node >= 0) start[node + 1]++;
  for (let node = 0; node < nodes.kind.length; node++) start[node + 1] += start[node];
  const calls = new Int32Array(start[nodes.kind.length]), next = start.slice();
  column.forEach((node, call) => node >= 0 && (calls[next[node]++] = call));
  return (node) => calls.subarray(start[node], start[node + 1]);
})();

/** For each node of the CCSG, its function in the IDT. */
const functionRow = (() => {
  const rows = new Map(), { idt } = models;
  const key = (node) => `${nodes.interface[node]} ${nodes.function[node]}`;
  idt.kind.forEach((kind, row) => kind === 4 && idt.node[row] >= 0 && rows.set(key(idt.node[row]), idt.tree.parent[row]));
  return (node) => (node === MAIN ? 0 : rows.get(key(node)) ?? -1);
})();

/** What of another tree answers to a node. */
function counterparts(from, node, to) {
  const found = from.summaries(node);
  if (to.key === "idt") return [...new Set(found.map(functionRow))].filter((row) => row >= 0);
  if (to.key !== "dscg") return found.map((it) => to.row[it]).filter((row) => row >= 0);
  const group = from.key === "idt" && from.kind[node] === 4 ? from.group[node] : null;
  const calls = found.flatMap((it) => Array.from(callsOf(it)));
  return calls.filter((call) => group === null || to.groupOf(call) === group);
}
