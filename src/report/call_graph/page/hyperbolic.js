// The Poincaré disk. A motion takes z to (a z + b) / (b* z + a*); it is four numbers: a and b, real and imaginary.

const STILL = [1, 0, 0, 0];

/** One motion after another: `outer` of `inner`. */
function after(outer, inner) {
  const [ar, ai, br, bi] = outer, [cr, ci, dr, di] = inner;
  return normal([
    ar * cr - ai * ci + br * dr + bi * di,
    ar * ci + ai * cr + bi * dr - br * di,
    ar * dr - ai * di + br * cr + bi * ci,
    ar * di + ai * dr + bi * cr - br * ci,
  ]);
}

function normal([ar, ai, br, bi]) {
  const scale = 1 / Math.sqrt(Math.max(1e-300, ar * ar + ai * ai - br * br - bi * bi));
  return [ar * scale, ai * scale, br * scale, bi * scale];
}

/** The motion that takes the centre to a point, straight. */
function shift(x, y) {
  const scale = 1 / Math.sqrt(1 - x * x - y * y);
  return [scale, 0, x * scale, y * scale];
}

function turn(angle) {
  return [Math.cos(angle / 2), Math.sin(angle / 2), 0, 0];
}

/** Where a motion takes the centre. */
function centre([ar, ai, br, bi]) {
  const size = ar * ar + ai * ai;
  return [(br * ar - bi * ai) / size, (br * ai + bi * ar) / size];
}

/** How far a motion turns the plane about the image of the centre. */
function turned([ar, ai]) {
  return 2 * Math.atan2(ai, ar);
}

/** From the frame of a child to that of its parent. */
function outward(angle, distance) {
  const along = Math.cosh(distance / 2), aside = Math.sinh(distance / 2);
  const cos = Math.cos(angle / 2), sin = Math.sin(angle / 2);
  return [cos * along, sin * along, cos * aside, sin * aside];
}

/** The direction in which a motion moves a point of the rim. */
function onRim([ar, ai, br, bi], angle) {
  const x = Math.cos(angle), y = Math.sin(angle);
  const up = Math.atan2(ar * y + ai * x + bi, ar * x - ai * y + br);
  const down = Math.atan2(br * y - bi * x - ai, br * x + bi * y + ar);
  return up - down;
}

/** How wide an arc of the rim is after a motion: between 0 and a whole turn. */
function arc(motion, from, to) {
  const width = (onRim(motion, to) - onRim(motion, from)) % (2 * Math.PI);
  return width < 0 ? width + 2 * Math.PI : width;
}

/** Arcs narrower than this, in pixels, hold nothing that could be told apart. */
const NARROWEST = 2;
const BUCKETS = 360;

/**
 * What of a tree is in sight from a focus. It starts at the focus and goes on outwards, and stops where an arc of the rim is too narrow to
 * see; ranges of siblings are halved, so that the work depends on what is seen and not on the size of the tree.
 */
class Scene {
  constructor(layout) {
    this.layout = layout;
    this.nodes = [];
    this.motions = [];
    this.x = [];
    this.y = [];
    this.scale = [];
    /** Links between places of this scene: parent, child. */
    this.links = [];
    /** Towards what is hidden behind the rim: place, direction. */
    this.spokes = [];
    /** Where the rim hides more. */
    this.beyond = new Uint8Array(BUCKETS);
  }

  look(focus, motion, radius) {
    for (const column of [this.nodes, this.motions, this.x, this.y, this.scale, this.links, this.spokes]) column.length = 0;
    this.beyond.fill(0);
    const ranges = [];
    this.add(focus, motion);
    this.children(0, ranges);
    this.ascend(focus, motion, radius, ranges);
    while (ranges.length) this.range(ranges, radius);
  }

  add(node, motion) {
    const [x, y] = centre(motion);
    this.nodes.push(node);
    this.motions.push(motion);
    this.x.push(x);
    this.y.push(y);
    this.scale.push(1 / (motion[0] * motion[0] + motion[1] * motion[1]));
    return this.nodes.length - 1;
  }

  children(place, ranges) {
    const { first } = this.layout.tree, node = this.nodes[place];
    if (first[node] < first[node + 1]) ranges.push(place, first[node], first[node + 1]);
  }

  /** Goes up to the root, or to where all that is above is too narrow to see. */
  ascend(focus, motion, radius, ranges) {
    const { tree, angle, distance } = this.layout;
    for (let node = focus, place = 0; node > 0; node = tree.parent[node]) {
      if (arc(motion, FAN, 2 * Math.PI - FAN) * radius < NARROWEST) return this.hide(place, Math.PI);
      const [ar, ai, br, bi] = outward(angle[node], distance[node]);
      motion = after(motion, [ar, -ai, -br, -bi]);
      const parent = tree.parent[node], above = this.add(parent, motion);
      this.links.push(above, place);
      if (tree.first[parent] < node) ranges.push(above, tree.first[parent], node);
      if (node + 1 < tree.first[parent + 1]) ranges.push(above, node + 1, tree.first[parent + 1]);
      place = above;
    }
  }

  range(ranges, radius) {
    const end = ranges.pop(), start = ranges.pop(), place = ranges.pop();
    const { layout } = this, node = this.nodes[place], motion = this.motions[place];
    const lower = layout.bound(node, start), upper = layout.bound(node, end);
    if (upper - lower < 6 && arc(motion, lower, upper) * radius < NARROWEST) return this.hide(place, (lower + upper) / 2);
    if (end - start > 1) {
      const middle = (start + end) >> 1;
      ranges.push(place, start, middle, place, middle, end);
      return;
    }
    const child = this.add(start, after(motion, outward(layout.angle[start], layout.distance[start])));
    this.links.push(place, child);
    this.children(child, ranges);
  }

  hide(place, angle) {
    const direction = onRim(this.motions[place], angle), part = (direction / (2 * Math.PI)) % 1;
    if (this.scale[place] > 0.02) this.spokes.push(place, direction);
    this.beyond[Math.floor((part < 0 ? part + 1 : part) * BUCKETS) % BUCKETS] = 1;
  }

  /** The place of a node, or -1. */
  find(node) {
    return this.nodes.indexOf(node);
  }

  /** The place that is nearest to a point, or -1 where none is near. */
  nearest(x, y, reach) {
    let best = -1, least = reach * reach;
    for (let place = 0; place < this.nodes.length; place++) {
      const dx = this.x[place] - x, dy = this.y[place] - y, far = dx * dx + dy * dy;
      if (far < least) [best, least] = [place, far];
    }
    return best;
  }
}
