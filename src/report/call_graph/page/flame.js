// A flame graph of the paths of calls, the root at the top: each frame as wide as its inclusive time.

const ROW = 20;

/** Calls of the DSCG merged by path. What lies narrower than a pixel is drawn as one grey frame, and its share is said. */
class Flame {
  constructor(canvas, calls, { chosen }) {
    Object.assign(this, { canvas, chosen, zoom: 0, selected: 0, boxes: [] });
    this.tip = canvas.parentElement.querySelector(".tip");
    this.pen = canvas.getContext("2d");
    this.merge(calls);
    new ResizeObserver(() => this.resize()).observe(canvas.parentElement);
    this.listen();
    this.resize();
  }

  /** Paths, the widest sibling first. */
  merge(calls) {
    const { tree } = calls, path = new Int32Array(tree.size), numbers = new Map();
    const parents = [-1], node = [MAIN], own = [0];
    for (let call = 1; call < tree.size; call++) {
      const above = path[tree.parent[call]], key = above * (nodes.kind.length + 1) + calls.node[call] + 1;
      let number = numbers.get(key);
      if (number === undefined) {
        numbers.set(key, (number = parents.length));
        parents.push(above), node.push(calls.node[call]), own.push(0);
      }
      path[call] = number;
      own[number] += Math.max(0, calls.own[call]);
    }
    const sums = Float64Array.from(own);
    for (let at = parents.length - 1; at > 0; at--) sums[parents[at]] += sums[at];
    const order = breadthFirst(parents, (one, other) => sums[other] - sums[one] || one - other);
    this.tree = order.tree;
    this.node = Array.from(order.nodes, (at) => node[at]);
    this.sums = Array.from(order.nodes, (at) => sums[at]);
  }

  resize() {
    const box = this.canvas.parentElement.getBoundingClientRect(), dots = devicePixelRatio || 1;
    [this.width, this.height] = [Math.max(50, box.width), Math.max(50, box.height)];
    [this.canvas.width, this.canvas.height] = [Math.round(this.width * dots), Math.round(this.height * dots)];
    this.pen.setTransform(dots, 0, 0, dots, 0, 0);
    this.draw();
  }

  label(at) {
    return at === 0 ? "(main)" : this.node[at] < 0 ? "paths that are summed up" : longName(this.node[at]);
  }

  short(at) {
    return at === 0 ? "(main)" : this.node[at] < 0 ? "…" : shortName(this.node[at]);
  }

  /** Boxes of what is in sight: the path to the frame that is zoomed in on, then all beneath it. */
  place() {
    const { tree } = this, rows = Math.max(2, Math.floor(this.height / ROW)), boxes = [];
    const above = tree.path(this.zoom), shown = above.slice(-Math.max(1, Math.floor(rows / 3)));
    if (shown.length < above.length) shown[0] = above[0];
    shown.forEach((at, row) => boxes.push({ at, x: 0, y: row, width: this.width, part: this.sums[at] }));
    const open = [boxes.at(-1)];
    while (open.length) {
      const box = open.pop(), scale = box.width / Math.max(1e-9, this.sums[box.at]), y = box.y + 1;
      if (y >= rows) {
        box.deeper = !tree.leaf(box.at);
        continue;
      }
      let x = box.x;
      for (let child = tree.first[box.at]; child < tree.first[box.at + 1]; child++) {
        const width = this.sums[child] * scale;
        if (width < 1) {
          const rest = this.rest(box.at, child);
          if (rest > 0) boxes.push({ at: -1, from: child, x, y, width: Math.max(1, rest * scale), part: rest });
          break;
        }
        const inner = { at: child, x, y, width, part: this.sums[child] };
        boxes.push(inner), open.push(inner);
        x += width;
      }
    }
    return boxes;
  }

  /** The time of the siblings from one on: all are narrower. */
  rest(parent, from) {
    let whole = 0;
    for (let child = from; child < this.tree.first[parent + 1]; child++) whole += this.sums[child];
    return whole;
  }

  draw() {
    const { pen } = this;
    this.boxes = this.place();
    pen.clearRect(0, 0, this.width, this.height);
    pen.font = FONT;
    pen.textBaseline = "middle";
    for (const box of this.boxes) this.drawBox(box);
  }

  drawBox({ at, x, y, width, deeper }) {
    const { pen } = this, group = at <= 0 || this.node[at] < 0 ? -1 : greatest(nodes.own[this.node[at]]);
    pen.fillStyle = at < 0 ? theme.line : theme.group(group);
    pen.globalAlpha = at < 0 ? 1 : 0.38;
    pen.fillRect(x, y * ROW, Math.max(0.6, width - 1), ROW - 1);
    pen.globalAlpha = 1;
    if (at < 0) return;
    pen.fillStyle = theme.group(group);
    if (width > 10) pen.fillRect(x, y * ROW, 3, ROW - 1);
    if (at === this.selected) {
      pen.strokeStyle = theme.accent;
      pen.lineWidth = 2;
      pen.strokeRect(x + 1, y * ROW + 1, Math.max(1, width - 3), ROW - 3);
    }
    if (width < 34) return;
    pen.fillStyle = theme.ink;
    const most = Math.floor((width - 12) / 6.4), text = (deeper ? "▾ " : "") + this.short(at);
    if (most > 2) pen.fillText(shorten(text, most), x + 7, y * ROW + ROW / 2, width - 10);
  }

  under(event) {
    const box = this.canvas.getBoundingClientRect(), x = event.clientX - box.left, y = Math.floor((event.clientY - box.top) / ROW);
    return this.boxes.find((it) => it.y === y && x >= it.x && x < it.x + Math.max(1, it.width));
  }

  go(at) {
    this.zoom = this.selected = at;
    this.draw();
  }

  pick(at) {
    this.go(at);
    this.chosen(this, at);
  }

  listen() {
    const { canvas, tip } = this;
    canvas.addEventListener("click", (event) => {
      const box = this.under(event);
      if (box && box.at >= 0) this.pick(box.at);
    });
    canvas.addEventListener("pointermove", (event) => {
      const box = this.under(event);
      tip.hidden = !box;
      if (!box) return;
      const title = element("strong", {}, box.at < 0 ? `${things(this.tree.first[this.tree.parent[box.from] + 1] - box.from, "path", "paths")} narrower than a pixel` : this.label(box.at));
      tip.replaceChildren(title, share(box.part));
      const frame = canvas.getBoundingClientRect();
      tip.style.left = Math.max(0, Math.min(event.clientX - frame.left + 12, this.width - tip.offsetWidth - 4)) + "px";
      tip.style.top = Math.min(event.clientY - frame.top + 16, this.height - tip.offsetHeight) + "px";
    });
    canvas.addEventListener("pointerleave", () => (tip.hidden = true));
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    const { tree } = this, at = this.selected, parent = tree.parent[at];
    const sibling = (node) => (parent >= 0 && node >= tree.first[parent] && node < tree.first[parent + 1] ? node : at);
    const next = {
      ArrowUp: () => Math.max(0, parent),
      ArrowDown: () => (tree.leaf(at) ? at : tree.first[at]),
      ArrowLeft: () => sibling(at - 1),
      ArrowRight: () => sibling(at + 1),
      Home: () => 0,
    }[event.key];
    if (!next) return;
    this.pick(next());
    event.preventDefault();
  }
}
