// One specimen in the plane: photograph, links, landmarks, where the others have them. Editable.

import { h, oncePerFrame, token } from "./dom.js";
import { SvgContext } from "./figures.js";
import { box, hasCoordinates } from "./geometry.js";

const REACH = 12; // pixels within which a landmark is picked
const MARGIN = 0.09;

/**
 * A canvas that draws a scene.
 *
 * Scene: {points, links, names, mean, cloud, estimates, uncertainty, selected, marked, excluded,
 * grid, ghosts, photograph: {image, scale, flip, isUp}, showNames, isDown, label}.
 * Handlers: onpick(landmark), onmove(landmark, point), onkey(event).
 */
export class View2D {
  constructor(container, handlers = {}) {
    this.handlers = handlers;
    this.canvas = h("canvas", {
      class: "view",
      tabindex: "0",
      role: "img",
      "aria-label": "Specimen",
    });
    container.replaceChildren(this.canvas);
    this.scene = { points: [] };
    this.zoom = 1;
    this.shift = [0, 0];
    this.draw = oncePerFrame(() => this.paint());
    this.observer = new ResizeObserver(this.draw);
    this.observer.observe(this.canvas);
    this.listen();
  }

  destroy() {
    this.observer.disconnect();
    this.canvas.remove();
  }

  /** Show a scene; `keep` keeps zoom and position. */
  show(scene, keep = false) {
    this.scene = scene;
    if (!keep) {
      this.zoom = 1;
      this.shift = [0, 0];
      this.bounds = null;
    }
    this.dragged = null;
    this.canvas.setAttribute("aria-label", scene.label ?? "Specimen");
    this.draw();
  }

  reset() {
    this.zoom = 1;
    this.shift = [0, 0];
    this.bounds = null;
    this.draw();
  }

  /** What the picture shows without zoom: a box that stays while landmarks are dragged. */
  findFrame() {
    if (!this.bounds) {
      const rows = [
        ...this.scene.points,
        ...(this.scene.mean ?? []),
        ...(this.scene.estimates ?? []),
        ...(this.scene.bounds ?? []),
        ...(this.scene.grid ?? []).flat(),
      ];
      this.bounds = box(rows);
    }
    return this.bounds;
  }

  project(point) {
    const { scale, middle, width, height } = this.mapping;
    const up = this.scene.isDown ? 1 : -1;
    return [
      width / 2 + (point[0] - middle[0]) * scale + this.shift[0],
      height / 2 + up * (point[1] - middle[1]) * scale + this.shift[1],
    ];
  }

  unproject([x, y]) {
    const { scale, middle, width, height } = this.mapping;
    const up = this.scene.isDown ? 1 : -1;
    return [
      (x - width / 2 - this.shift[0]) / scale + middle[0],
      (up * (y - height / 2 - this.shift[1])) / scale + middle[1],
    ];
  }

  /** Where a landmark is drawn: as measured, or estimated where it is missing. */
  place(landmark) {
    if (this.dragged?.landmark === landmark) return this.dragged.point;
    const point = this.scene.points[landmark];
    if (hasCoordinates(point)) return point;
    const estimate = this.scene.estimates?.[landmark];
    return hasCoordinates(estimate) ? estimate : null;
  }

  setMapping() {
    const ratio = window.devicePixelRatio || 1;
    const width = this.canvas.clientWidth,
      height = this.canvas.clientHeight;
    if (
      this.canvas.width !== Math.round(width * ratio) ||
      this.canvas.height !== Math.round(height * ratio)
    ) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
    }
    const { low, high, isEmpty } = this.findFrame();
    const extent = isEmpty
      ? [1, 1]
      : [Math.max(high[0] - low[0], 1e-12), Math.max(high[1] - low[1], 1e-12)];
    const fit = Math.min(width / extent[0], height / extent[1]) * (1 - 2 * MARGIN);
    const middle = isEmpty ? [0, 0] : [(low[0] + high[0]) / 2, (low[1] + high[1]) / 2];
    this.mapping = { scale: fit * this.zoom, middle, width, height };
    return ratio;
  }

  paint() {
    if (!this.canvas.clientWidth || !this.canvas.isConnected) return;
    const ratio = this.setMapping();
    const context = this.canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.paintScene(context);
  }

  /** Return the picture as SVG. */
  writeSvg() {
    this.setMapping();
    const context = new SvgContext(this.canvas.clientWidth, this.canvas.clientHeight);
    this.paintScene(context);
    return String(context);
  }

  paintScene(context) {
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    const colours = Object.fromEntries(
      ["ink", "soft", "faint", "accent", "mark", "unseen", "grid", "card", "link"].map((name) => [
        name,
        token(`--${name}`),
      ]),
    );
    this.paintPhotograph(context);
    this.paintGrid(context, colours);
    this.paintGhosts(context, colours);
    this.paintMean(context, colours);
    this.paintLinks(context, colours);
    this.paintCloud(context, colours);
    this.paintLandmarks(context, colours);
  }

  paintPhotograph(context) {
    const photograph = this.scene.photograph;
    if (!photograph?.image) return;
    const { image, scale, isUp, flip } = photograph;
    const corner = (x, y) =>
      this.project([(flip ? -1 : 1) * x * scale, (isUp ? image.height - y : y) * scale]);
    const [left, top] = corner(0, 0),
      [right, bottom] = corner(image.width, image.height);
    context.save();
    context.translate(left, top);
    context.scale((right - left) / image.width, (bottom - top) / image.height);
    context.drawImage(image, 0, 0);
    context.restore();
  }

  paintGrid(context, colours) {
    if (!this.scene.grid) return;
    context.strokeStyle = colours.grid;
    context.globalAlpha = 0.75;
    context.lineWidth = 1;
    for (const line of this.scene.grid) this.stroke(context, line);
    context.globalAlpha = 1;
  }

  stroke(context, line) {
    context.beginPath();
    line.forEach((point, k) => {
      const [x, y] = this.project(point);
      if (k) context.lineTo(x, y);
      else context.moveTo(x, y);
    });
    context.stroke();
  }

  /** All specimens at once, faint. */
  paintGhosts(context, colours) {
    const { ghosts } = this.scene;
    if (!ghosts) return;
    context.fillStyle = colours.accent;
    context.globalAlpha = Math.max(0.08, Math.min(0.5, 12 / Math.sqrt(ghosts.length)));
    for (const point of ghosts) {
      if (!hasCoordinates(point)) continue;
      const [x, y] = this.project(point);
      context.beginPath();
      context.arc(x, y, 2.2, 0, 7);
      context.fill();
    }
    context.globalAlpha = 1;
  }

  paintMean(context, colours) {
    const { mean, links } = this.scene;
    if (!mean) return;
    const isOnPhotograph = Boolean(this.scene.photograph?.image);
    context.strokeStyle = isOnPhotograph ? "#ffffff" : colours.faint;
    context.lineWidth = isOnPhotograph ? 1.5 : 1;
    if (isOnPhotograph) Object.assign(context, { shadowColor: "#000000", shadowBlur: 3 });
    context.setLineDash([4, 4]);
    for (const [a, b] of links ?? [])
      if (hasCoordinates(mean[a]) && hasCoordinates(mean[b])) this.stroke(context, [mean[a], mean[b]]);
    context.setLineDash([]);
    for (const point of mean) {
      if (!hasCoordinates(point)) continue;
      const [x, y] = this.project(point);
      context.beginPath();
      context.moveTo(x - 3.5, y);
      context.lineTo(x + 3.5, y);
      context.moveTo(x, y - 3.5);
      context.lineTo(x, y + 3.5);
      context.stroke();
    }
    context.shadowBlur = 0;
  }

  paintLinks(context, colours) {
    context.strokeStyle = this.scene.photograph?.image ? "#ffffff" : colours.link;
    context.globalAlpha = this.scene.photograph?.image ? 0.7 : 1;
    context.lineWidth = 1.6;
    for (const [a, b] of this.scene.links ?? []) {
      const ends = [this.place(a), this.place(b)];
      if (!ends.every(hasCoordinates)) continue;
      const isEstimated = !hasCoordinates(this.scene.points[a]) || !hasCoordinates(this.scene.points[b]);
      context.setLineDash(isEstimated ? [3, 4] : []);
      this.stroke(context, ends);
    }
    context.setLineDash([]);
    context.globalAlpha = 1;
  }

  /** Where the other specimens have the selected landmark. */
  paintCloud(context, colours) {
    if (!this.scene.cloud) return;
    const isOnPhotograph = Boolean(this.scene.photograph?.image);
    context.fillStyle = isOnPhotograph ? "#ff8cc6" : colours.mark;
    context.globalAlpha = isOnPhotograph ? 0.9 : 0.35;
    for (const point of this.scene.cloud) {
      if (!hasCoordinates(point)) continue;
      const [x, y] = this.project(point);
      context.beginPath();
      context.arc(x, y, 2.5, 0, 7);
      context.fill();
    }
    context.globalAlpha = 1;
  }

  paintLandmarks(context, colours) {
    const {
      points,
      uncertainty,
      selected,
      marked = [],
      excluded = [],
      names,
      showNames,
    } = this.scene;
    const radius = this.scene.radius ?? (points.length > 150 ? 2.5 : points.length > 60 ? 3.5 : 5);
    context.font = `12px ${token("--font")}`;
    context.textBaseline = "middle";
    for (let j = 0; j < points.length; j++) {
      const point = this.place(j);
      if (!point) continue;
      const [x, y] = this.project(point);
      const isMissing = !hasCoordinates(points[j]) && this.dragged?.landmark !== j;
      const isOut = excluded.includes(j);
      context.lineWidth = 1.5;
      context.globalAlpha = isOut ? 0.35 : 1;
      if (isMissing && uncertainty?.[j]) {
        context.strokeStyle = colours.unseen;
        context.setLineDash([3, 3]);
        context.beginPath();
        context.arc(x, y, Math.max(uncertainty[j] * this.mapping.scale, radius), 0, 7);
        context.stroke();
        context.setLineDash([]);
      }
      context.beginPath();
      context.arc(x, y, radius, 0, 7);
      if (isMissing) {
        context.strokeStyle = colours.unseen;
        context.stroke();
      } else {
        context.fillStyle = marked.includes(j) ? colours.mark : colours.accent;
        context.fill();
        context.strokeStyle = colours.card;
        context.lineWidth = 1;
        context.stroke();
      }
      if (j === selected) {
        context.strokeStyle = colours.mark;
        context.lineWidth = 2.5;
        context.beginPath();
        context.arc(x, y, radius + 5, 0, 7);
        context.stroke();
      }
      if (names && (showNames || j === selected || marked.includes(j)))
        this.paintName(
          context,
          colours,
          names[j] + (isMissing ? " (missing)" : ""),
          x + radius + 6,
          y - radius - 3,
        );
      context.globalAlpha = 1;
    }
  }

  paintName(context, colours, text, x, y) {
    context.lineWidth = 3.5;
    context.strokeStyle = colours.card;
    context.strokeText(text, x, y);
    context.fillStyle = colours.ink;
    context.fillText(text, x, y);
  }

  nearest([x, y]) {
    let best = null,
      least = REACH;
    for (let j = 0; j < this.scene.points.length; j++) {
      const point = this.place(j);
      if (!point) continue;
      const [px, py] = this.project(point);
      const distance = Math.hypot(px - x, py - y);
      if (distance < least) {
        least = distance;
        best = j;
      }
    }
    return best;
  }

  listen() {
    const where = (event) => {
      const area = this.canvas.getBoundingClientRect();
      return [event.clientX - area.left, event.clientY - area.top];
    };
    let start = null;
    this.canvas.addEventListener("pointerdown", (event) => {
      if (!this.mapping) return;
      const at = where(event);
      const landmark = this.nearest(at);
      start = { at, landmark, shift: [...this.shift], isMoved: false };
      this.canvas.setPointerCapture(event.pointerId);
      if (landmark !== null) this.handlers.onpick?.(landmark);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      const at = where(event);
      if (!start) {
        if (this.mapping) this.canvas.style.cursor = this.nearest(at) !== null ? "pointer" : "grab";
        return;
      }
      const step = [at[0] - start.at[0], at[1] - start.at[1]];
      if (!start.isMoved && Math.hypot(...step) < 4) return;
      start.isMoved = true;
      if (start.landmark !== null && this.handlers.onmove && !this.isLinking)
        this.dragged = { landmark: start.landmark, point: this.unproject(at) };
      else this.shift = [start.shift[0] + step[0], start.shift[1] + step[1]];
      this.draw();
    });
    this.canvas.addEventListener("pointerup", () => {
      if (start?.isMoved && this.dragged) {
        const { landmark, point } = this.dragged;
        this.scene.points[landmark] = point;
        this.dragged = null;
        this.handlers.onmove(landmark, point);
      }
      start = null;
    });
    this.canvas.addEventListener("pointercancel", () => {
      start = null;
      this.dragged = null;
      this.draw();
    });
    this.canvas.addEventListener("dblclick", () => this.reset());
    this.canvas.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        this.zoomAt(Math.exp(-event.deltaY * 0.0015), where(event));
      },
      { passive: false },
    );
    this.canvas.addEventListener("keydown", (event) => this.onkey(event));
  }

  zoomAt(factor, [x, y]) {
    if (!this.mapping) return;
    const { width, height } = this.mapping;
    const limited = Math.max(0.2, Math.min(60, this.zoom * factor)) / this.zoom;
    this.zoom *= limited;
    this.shift = [
      x - width / 2 - (x - width / 2 - this.shift[0]) * limited,
      y - height / 2 - (y - height / 2 - this.shift[1]) * limited,
    ];
    this.draw();
  }

  onkey(event) {
    const { selected } = this.scene;
    const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (
      event.key in arrows &&
      selected !== null &&
      selected !== undefined &&
      this.handlers.onmove &&
      this.place(selected)
    ) {
      event.preventDefault();
      const [x, y] = this.project(this.place(selected)),
        step = event.shiftKey ? 10 : 1;
      const point = this.unproject([
        x + arrows[event.key][0] * step,
        y + arrows[event.key][1] * step,
      ]);
      this.scene.points[selected] = point;
      this.draw();
      clearTimeout(this.keyTimer);
      this.keyTimer = setTimeout(() => this.handlers.onmove(selected, point), 350); // one edit for a run of keys
    } else if (event.key === "+" || event.key === "-") {
      this.zoomAt(event.key === "+" ? 1.25 : 0.8, [
        this.mapping.width / 2,
        this.mapping.height / 2,
      ]);
    } else this.handlers.onkey?.(event);
  }
}
