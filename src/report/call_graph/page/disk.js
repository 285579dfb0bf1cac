// A tree in a Poincaré disk on a canvas: drawn around its focus, moved by pointer and keyboard.

/** Okabe and Ito's colours, which all eyes tell apart, in an order for light and one for dark ground; shapes go on where colours end. */
const LIGHT = ["#0072b2", "#d55e00", "#009e73", "#aa4499", "#b8860b", "#332288", "#882255", "#4d7a00"];
const DARK = ["#56b4e9", "#e69f00", "#2fc99a", "#e39ac4", "#f0e442", "#9d8df1", "#e8798f", "#b5d95a"];
const SHAPES = ["circle", "square", "triangle", "diamond"];
const darkness = matchMedia("(prefers-color-scheme: dark)");
const still = matchMedia("(prefers-reduced-motion: reduce)");

const theme = {
  read() {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["paper", "panel", "ink", "soft", "line", "accent", "alarm"]) this[name] = style.getPropertyValue("--" + name).trim();
    this.groups = darkness.matches ? DARK : LIGHT;
    this.less = darkness.matches ? "#56b4e9" : "#0072b2";
    this.more = darkness.matches ? "#e69f00" : "#d55e00";
  },
  group(group) {
    return group < 0 ? this.soft : this.groups[group % this.groups.length];
  },
  shape(group) {
    return group < 0 ? "circle" : SHAPES[(group + Math.floor(group / LIGHT.length)) % SHAPES.length];
  },
};

/** Adds the outline of a mark to a path. */
function trace(path, shape, x, y, radius) {
  if (shape === "square") path.rect(x - radius * 0.9, y - radius * 0.9, radius * 1.8, radius * 1.8);
  else if (shape === "circle") path.moveTo(x + radius, y), path.arc(x, y, radius, 0, 2 * Math.PI);
  else {
    const corners = { triangle: [0, -1.2, 1.1, 0.8, -1.1, 0.8], diamond: [0, -1.25, 1.25, 0, 0, 1.25, -1.25, 0], down: [0, 1.2, 1.1, -0.8, -1.1, -0.8] }[shape];
    path.moveTo(x + corners[0] * radius, y + corners[1] * radius);
    for (let at = 2; at < corners.length; at += 2) path.lineTo(x + corners[at] * radius, y + corners[at + 1] * radius);
    path.closePath();
  }
}

const FONT = '12px system-ui, "Segoe UI", "Noto Sans", "Liberation Sans", sans-serif';
const LABELS = 46;
/** Nodes smaller than this, against the one at the centre, have no label. */
const SMALLEST_LABEL = 0.07;
const LONGEST_LABEL = 34;
const TRAVEL = 380;
/** How far from the centre the nearest node may be dragged. */
const FARTHEST = 0.8;

/** A point, moved towards the centre where it is too far from it. */
function within([x, y], most) {
  const far = Math.hypot(x, y);
  return far > most ? [(x * most) / far, (y * most) / far] : [x, y];
}

const shorten = (text, longest) => (text.length <= longest ? text : text.slice(0, longest / 2 - 1) + "…" + text.slice(1 - longest / 2));

class Disk {
  /** `canvas` shows `model`; `chosen(disk, node)` hears what is selected, `menu(disk, node, event)` what is asked for. */
  constructor(canvas, model, { chosen, menu }) {
    Object.assign(this, { canvas, model, chosen, menu, focus: 0, motion: STILL, selected: -1, hovered: -1, travel: null });
    this.tip = canvas.parentElement.querySelector(".tip");
    this.pen = canvas.getContext("2d");
    this.scene = new Scene(model.layout);
    this.marked = () => false;
    this.matched = () => false;
    this.waiting = false;
    new ResizeObserver(() => this.resize()).observe(canvas.parentElement);
    this.listen();
    this.resize();
  }

  show(model) {
    Object.assign(this, { model, scene: new Scene(model.layout), focus: 0, motion: STILL, selected: -1, hovered: -1, travel: null });
    this.invalidate();
  }

  resize() {
    const box = this.canvas.parentElement.getBoundingClientRect(), dots = devicePixelRatio || 1;
    [this.width, this.height] = [Math.max(50, box.width), Math.max(50, box.height)];
    [this.canvas.width, this.canvas.height] = [Math.round(this.width * dots), Math.round(this.height * dots)];
    this.pen.setTransform(dots, 0, 0, dots, 0, 0);
    this.radius = Math.min(this.width, this.height) / 2 - 8;
    this.invalidate();
  }

  /** Draws with the next frame. */
  invalidate() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame((now) => {
      this.waiting = false;
      this.step(now);
      this.draw();
    });
  }

  // Where things are.

  toScreen(x, y) {
    return [this.width / 2 + x * this.radius, this.height / 2 + y * this.radius];
  }

  toPlane(event) {
    const box = this.canvas.getBoundingClientRect();
    return [(event.clientX - box.left - this.width / 2) / this.radius, (event.clientY - box.top - this.height / 2) / this.radius];
  }

  /** The node under the pointer, or -1. */
  under(event) {
    const [x, y] = this.toPlane(event), place = this.scene.nearest(x, y, 16 / this.radius);
    return place < 0 ? -1 : this.scene.nodes[place];
  }

  /** Takes the node that is nearest to the centre as the focus, so that no motion ever grows long. */
  anchor() {
    const place = this.scene.nearest(0, 0, 2);
    if (place >= 0) [this.focus, this.motion] = [this.scene.nodes[place], this.scene.motions[place]];
  }

  // Moving.

  drag(from, to) {
    this.carry(within(from, 0.96), within(to, 0.96));
    // The tree never leaves the disk.
    const at = centre(this.motion);
    if (Math.hypot(...at) > FARTHEST) this.carry(at, within(at, FARTHEST));
    this.invalidate();
  }

  carry([fromX, fromY], [toX, toY]) {
    this.motion = after(after(shift(toX, toY), shift(-fromX, -fromY)), this.motion);
  }

  /** Brings a node to the centre, its parent to the left. */
  go(node, swiftly = false) {
    const place = this.scene.find(node);
    this.travel = null;
    if (place < 0 || swiftly || still.matches) {
      [this.focus, this.motion] = [node, STILL];
    } else {
      [this.focus, this.motion] = [node, this.scene.motions[place]];
      const [x, y] = centre(this.motion), far = Math.hypot(x, y);
      let angle = turned(this.motion) % (2 * Math.PI);
      if (angle > Math.PI) angle -= 2 * Math.PI;
      if (angle < -Math.PI) angle += 2 * Math.PI;
      this.travel = { node, begin: null, way: Math.atanh(Math.min(far, 1 - 1e-12)), x: far ? x / far : 0, y: far ? y / far : 0, angle };
    }
    this.invalidate();
  }

  step(now) {
    const { travel } = this;
    if (!travel) return;
    travel.begin ??= now;
    const part = Math.min(1, (now - travel.begin) / TRAVEL), left = (1 - part) ** 3;
    const far = Math.tanh(travel.way * left);
    this.focus = travel.node;
    this.motion = part < 1 ? after(shift(travel.x * far, travel.y * far), turn(travel.angle * left)) : STILL;
    if (part < 1) this.invalidate();
    else this.travel = null;
  }

  select(node, swiftly = false) {
    this.selected = node;
    this.go(node, swiftly);
    this.chosen(this, node);
  }

  listen() {
    const { canvas } = this;
    let from = null, moved = false;
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      [from, moved] = [this.toPlane(event), false];
      canvas.setPointerCapture?.(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      const to = this.toPlane(event);
      if (!from) return this.hover(event);
      if (!moved && Math.hypot(to[0] - from[0], to[1] - from[1]) * this.radius < 4) return;
      moved = true;
      this.travel = null;
      this.hover(null);
      this.drag(from, to);
      from = to;
    });
    canvas.addEventListener("pointerup", (event) => {
      const node = from && !moved ? this.under(event) : -1;
      from = null;
      if (node >= 0) this.select(node);
    });
    canvas.addEventListener("pointercancel", () => (from = null));
    canvas.addEventListener("pointerleave", () => this.hover(null));
    canvas.addEventListener("focus", () => this.selected < 0 && canvas.matches(":focus-visible") && this.select(0));
    canvas.addEventListener("contextmenu", (event) => {
      const node = this.under(event);
      if (node < 0) return;
      event.preventDefault();
      this.select(node);
      this.menu(this, node, event);
    });
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { tree } = this.model, at = Math.max(0, this.selected), parent = tree.parent[at];
    const sibling = (node) => (parent >= 0 && node >= tree.first[parent] && node < tree.first[parent + 1] ? node : at);
    const next = {
      ArrowLeft: () => Math.max(0, parent),
      ArrowRight: () => (tree.leaf(at) ? at : tree.first[at]),
      ArrowUp: () => sibling(at - 1),
      ArrowDown: () => sibling(at + 1),
      Home: () => 0,
      Enter: () => at,
    }[event.key];
    if (next) this.select(next());
    else if (event.key === "m" || event.key === "M" || event.key === "ContextMenu") this.menu(this, at, null);
    else return;
    event.preventDefault();
  }

  hover(event) {
    const node = event ? this.under(event) : -1;
    this.canvas.style.cursor = node >= 0 ? "pointer" : "grab";
    if (node !== this.hovered) this.invalidate();
    this.hovered = node;
    this.tip.hidden = node < 0;
    if (node < 0) return;
    const title = document.createElement("strong"), words = this.model.facts(node).slice(0, 3);
    title.textContent = this.model.long(node);
    this.tip.replaceChildren(title, ...words.map(([term, value]) => element("span", { style: "display:block" }, `${term}: ${value}`)));
    const place = this.scene.find(node), [x, y] = this.toScreen(this.scene.x[place], this.scene.y[place]);
    this.tip.style.left = Math.max(0, Math.min(x + 14, this.width - this.tip.offsetWidth - 4)) + "px";
    this.tip.style.top = Math.max(0, y + 18 + this.tip.offsetHeight > this.height ? y - 14 - this.tip.offsetHeight : y + 18) + "px";
  }

  // Drawing.

  draw() {
    const { pen, scene } = this;
    scene.look(this.focus, this.motion, this.radius);
    this.anchor();
    pen.clearRect(0, 0, this.width, this.height);
    this.drawGround();
    this.drawLinks();
    this.drawCrossLinks();
    this.drawNodes();
    this.drawRings();
    this.drawLabels();
  }

  drawGround() {
    const { pen, radius } = this, [x, y] = this.toScreen(0, 0);
    pen.beginPath();
    pen.arc(x, y, radius, 0, 2 * Math.PI);
    pen.fillStyle = theme.panel;
    pen.fill();
    pen.strokeStyle = theme.line;
    pen.lineWidth = 1;
    pen.stroke();
    pen.beginPath();
    const part = (2 * Math.PI) / BUCKETS;
    this.scene.beyond.forEach((more, bucket) => {
      if (!more) return;
      pen.moveTo(x + radius * Math.cos(bucket * part), y + radius * Math.sin(bucket * part));
      pen.arc(x, y, radius, bucket * part, (bucket + 1) * part);
    });
    pen.strokeStyle = theme.soft;
    pen.lineWidth = 3;
    pen.stroke();
  }

  /** Links by width, a path for each: what flows along them, as a share of the whole. */
  drawLinks() {
    const { pen, scene, model } = this;
    const paths = [0, 1, 2, 3].map(() => new Path2D()), critical = new Path2D();
    for (let at = 0; at < scene.links.length; at += 2) {
      const from = scene.links[at], to = scene.links[at + 1], share = model.share(scene.nodes[to]);
      const path = paths[share > 0.3 ? 3 : share > 0.1 ? 2 : share > 0.01 ? 1 : 0];
      this.geodesic(path, scene.x[from], scene.y[from], scene.x[to], scene.y[to]);
      if (model.onPath?.has(scene.nodes[to])) this.geodesic(critical, scene.x[from], scene.y[from], scene.x[to], scene.y[to]);
    }
    pen.strokeStyle = theme.soft;
    this.drawSpokes();
    paths.forEach((path, width) => {
      pen.globalAlpha = 0.55 + 0.1 * width;
      pen.lineWidth = [0.8, 1.4, 2.4, 4][width];
      pen.stroke(path);
    });
    pen.globalAlpha = 1;
    pen.strokeStyle = theme.alarm;
    pen.lineWidth = 2.5;
    pen.stroke(critical);
  }

  /** Faint lines to the rim, where a fan of children is too fine to be told apart. */
  drawSpokes() {
    const { pen, scene } = this, path = new Path2D();
    for (let at = 0; at < scene.spokes.length; at += 2) {
      const from = scene.spokes[at], direction = scene.spokes[at + 1];
      this.geodesic(path, scene.x[from], scene.y[from], Math.cos(direction), Math.sin(direction));
    }
    pen.globalAlpha = 0.16;
    pen.lineWidth = 0.7;
    pen.stroke(path);
  }

  /** The straight line of the hyperbolic plane: an arc of a circle that meets the rim at right angles. */
  geodesic(path, ax, ay, bx, by) {
    const [x, y] = this.toScreen(ax, ay), [u, v] = this.toScreen(bx, by);
    path.moveTo(x, y);
    const cross = ax * by - ay * bx;
    if (Math.abs(cross) < 1e-4 || Math.hypot(u - x, v - y) < 6) return path.lineTo(u, v);
    const one = (1 + ax * ax + ay * ay) / 2, other = (1 + bx * bx + by * by) / 2;
    const cx = (one * by - other * ay) / cross, cy = (other * ax - one * bx) / cross;
    const mx = (ax + bx) / 2 - cx, my = (ay + by) / 2 - cy;
    const pole = (cx * cx + cy * cy - 1) / (mx * mx + my * my);
    path.quadraticCurveTo(...this.toScreen(cx + mx * pole, cy + my * pole), u, v);
  }

  /** Links beside the tree, of the node that is selected. */
  drawCrossLinks() {
    const { pen, scene, model, selected } = this;
    if (selected < 0) return;
    const at = scene.find(selected), path = new Path2D();
    if (at < 0) return;
    for (const [node] of model.crossLinks(selected)) {
      const to = scene.find(node);
      if (to >= 0 && to !== at) this.geodesic(path, scene.x[at], scene.y[at], scene.x[to], scene.y[to]);
    }
    pen.strokeStyle = theme.accent;
    pen.lineWidth = 1.5;
    pen.setLineDash([5, 4]);
    pen.stroke(path);
    pen.setLineDash([]);
  }

  size(place) {
    const { model, scene } = this, share = Math.min(1, Math.max(0, model.share(scene.nodes[place])));
    return Math.max(0.9, Math.min(11, this.radius * 0.03) * Math.sqrt(scene.scale[place]) * (0.7 + 0.8 * Math.sqrt(share)));
  }

  look(node) {
    const change = this.model.change(node);
    if (this.model.key === "ccdg" && change !== 0) return [change < 0 ? theme.less : theme.more, change < 0 ? "down" : "triangle"];
    const group = this.model.groupOf(node);
    return [theme.group(group), theme.shape(group)];
  }

  drawNodes() {
    const { pen, scene } = this, paths = new Map();
    for (let place = 0; place < scene.nodes.length; place++) {
      const [color, shape] = this.look(scene.nodes[place]), [x, y] = this.toScreen(scene.x[place], scene.y[place]);
      if (!paths.has(color)) paths.set(color, new Path2D());
      trace(paths.get(color), shape, x, y, this.size(place));
    }
    for (const [color, path] of paths) {
      pen.fillStyle = color;
      pen.fill(path);
    }
  }

  /** Rings around what is selected, what answers to the selection, and what was searched for. */
  drawRings() {
    const { pen, scene } = this;
    for (let place = 0; place < scene.nodes.length; place++) {
      const node = scene.nodes[place], [x, y] = this.toScreen(scene.x[place], scene.y[place]);
      const selected = node === this.selected, marked = this.marked(node), matched = this.matched(node);
      if (!selected && !marked && !matched && node !== this.hovered) continue;
      pen.beginPath();
      pen.arc(x, y, this.size(place) + 3.5, 0, 2 * Math.PI);
      pen.strokeStyle = matched ? theme.alarm : selected || marked ? theme.accent : theme.ink;
      pen.lineWidth = selected ? 3.5 : 2;
      pen.setLineDash(matched && !selected ? [4, 3] : []);
      pen.stroke();
    }
    pen.setLineDash([]);
  }

  /** Names of the largest nodes, the focus first, each where it covers no other. */
  drawLabels() {
    const { pen, scene } = this;
    const places = [];
    for (let place = 0; place < scene.nodes.length; place++) if (scene.scale[place] > SMALLEST_LABEL) places.push(place);
    const urgent = (place) => (scene.nodes[place] === this.selected || scene.nodes[place] === this.hovered ? 1 : 0);
    const rank = (place) => scene.scale[place] * (1 + 0.6 * Math.min(1, this.model.share(scene.nodes[place]))) + urgent(place);
    places.sort((one, other) => rank(other) - rank(one));
    const taken = [];
    for (const place of places) {
      const [x, y] = this.toScreen(scene.x[place], scene.y[place]), size = this.size(place);
      if (size > 2) taken.push([x - size, y - size, x + size, y + size]);
    }
    pen.font = FONT;
    pen.textBaseline = "middle";
    pen.lineJoin = "round";
    for (const place of places.slice(0, LABELS)) this.drawLabel(place, taken);
  }

  drawLabel(place, taken) {
    const { pen, scene } = this, [x, y] = this.toScreen(scene.x[place], scene.y[place]);
    const text = shorten(this.model.short(scene.nodes[place]), LONGEST_LABEL), gap = this.size(place) + 4;
    const width = pen.measureText(text).width, height = 15;
    const right = [x + gap, y], left = [x - gap - width, y], above = [x - width / 2, y - gap - 7], below = [x - width / 2, y + gap + 7];
    // Links of the node at the centre leave to the sides; what lies aside has its name outwards.
    const spots = Math.abs(scene.x[place]) < 0.1 ? [above, below, right, left] : scene.x[place] < 0 ? [left, above, below, right] : [right, above, below, left];
    for (const [start, middle] of spots) {
      const box = [start - 1, middle - height / 2, start + width + 1, middle + height / 2];
      const outside = box[0] < 0 || box[1] < 0 || box[2] > this.width || box[3] > this.height;
      if (outside || taken.some((other) => box[0] < other[2] && other[0] < box[2] && box[1] < other[3] && other[1] < box[3])) continue;
      taken.push(box);
      pen.strokeStyle = theme.panel;
      pen.lineWidth = 3.5;
      pen.strokeText(text, start, middle);
      pen.fillStyle = theme.ink;
      pen.fillText(text, start, middle);
      return;
    }
  }
}
