// Trees in breadth-first order: the children of a node stand side by side, so a tree is two columns of numbers, and nothing here recurses.

class Tree {
  /** `steps`: for each node but the root, how far its parent lies behind the parent of the node before. */
  constructor(steps) {
    this.size = steps.length + 1;
    this.parent = new Int32Array(this.size).fill(-1);
    /** Children of node i are those from first[i] up to first[i + 1]. */
    this.first = new Int32Array(this.size + 1);
    const count = new Int32Array(this.size);
    for (let node = 1, parent = 0; node < this.size; node++) {
      parent += steps[node - 1];
      this.parent[node] = parent;
      count[parent]++;
    }
    this.first[0] = Math.min(1, this.size);
    for (let node = 0; node < this.size; node++) this.first[node + 1] = this.first[node] + count[node];
  }

  /** Sums of a column over each node with all beneath it. */
  inclusive(own) {
    const sums = Float64Array.from(own);
    for (let node = this.size - 1; node > 0; node--) sums[this.parent[node]] += sums[node];
    return sums;
  }

  /** The nodes from the root to a node. */
  path(node) {
    const path = [];
    for (let at = node; at >= 0; at = this.parent[at]) path.push(at);
    return path.reverse();
  }

  leaf(node) {
    return this.first[node] === this.first[node + 1];
  }
}

/** Puts nodes with these parents, the first of which is the root, in breadth-first order. Returns the tree and the node at each place. */
function breadthFirst(parents, compare) {
  const start = new Int32Array(parents.length + 1), children = new Int32Array(parents.length);
  for (let node = 1; node < parents.length; node++) start[parents[node] + 1]++;
  for (let node = 0; node < parents.length; node++) start[node + 1] += start[node];
  const next = start.slice();
  for (let node = 1; node < parents.length; node++) children[next[parents[node]]++] = node;
  const nodes = new Int32Array(parents.length), steps = new Int32Array(parents.length - 1);
  for (let place = 0, end = 1, last = 0; place < end; place++) {
    const siblings = children.subarray(start[nodes[place]], start[nodes[place] + 1]);
    if (siblings.length > 1) siblings.sort(compare);
    for (const child of siblings) {
      steps[end - 1] = place - last;
      last = place;
      nodes[end++] = child;
    }
  }
  return { tree: new Tree(steps), nodes };
}

/** Half of the arc of the rim that belongs to the children of a node, as the node sees it. */
const FAN = 0.55 * Math.PI;
/** The shortest link, in the measure of the hyperbolic plane. */
const SHORTEST = 0.95;

/**
 * Where children stand, each in the frame of its parent: a direction and a distance. The arc of the rim that a node gets from its parent is,
 * seen from the node, as wide for each node; so no branch runs into another, and depth costs no precision. Half of the arc is shared by how much
 * lies beneath a child, and half by its value (its time): what matters stands near.
 */
class Layout {
  constructor(tree, values) {
    const { size, first } = tree, beneath = tree.inclusive(new Float64Array(size).fill(1));
    this.tree = tree;
    this.lower = new Float64Array(size);
    this.angle = new Float64Array(size);
    this.distance = new Float64Array(size);
    const weight = (node) => 1 + Math.log2(beneath[node]);
    for (let node = 0; node < size; node++) {
      const fan = this.fan(node);
      let whole = 0, worth = 0, at = -fan;
      for (let child = first[node]; child < first[node + 1]; child++) (whole += weight(child)), (worth += Math.max(0, values[child]));
      for (let child = first[node]; child < first[node + 1]; child++) {
        const part = weight(child) / whole, half = (fan * (worth > 0 ? part + Math.max(0, values[child]) / worth : 2 * part)) / 2;
        this.lower[child] = at;
        this.angle[child] = at + half;
        this.distance[child] = Math.max(SHORTEST, Math.log(Math.tan(FAN / 2) / Math.tan(half / 2)));
        at += 2 * half;
      }
    }
  }

  fan(node) {
    return node === 0 ? Math.PI : FAN;
  }

  /** Where the arc of a child begins; of the end of all children, where the last arc ends. */
  bound(node, child) {
    return child < this.tree.first[node + 1] ? this.lower[child] : this.fan(node);
  }
}
