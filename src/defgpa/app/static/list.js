// The list of specimens with small pictures; only the rows in sight are drawn.

import { get } from "./api.js";
import { fill, h, number, oncePerFrame, showMessage, select, token } from "./dom.js";
import { box, hasCoordinates, rowsOf } from "./geometry.js";
import { isIncluded, path, pointsOf, store } from "./store.js";

const ROW = 58;
// columns of specimens.csv that are computed by the chosen method, asked for when one is chosen
const COMPUTED = {
  procrustes_distance: "Procrustes distance",
  rmse_reference: "residual at the reference",
  rmse_datum: "residual in the specimen",
  bending_energy: "bending energy",
  stretch: "stretch",
  mirrored: "mirrored",
};
const LARGEST_FIRST = ["size", "distance", "missing", ...Object.keys(COMPUTED)];

export class SpecimenList {
  constructor(container, onchoose) {
    this.onchoose = onchoose;
    this.key = "";
    this.isDescending = false;
    this.search = "";
    this.rows = h("div", {
      class: "rows",
      role: "listbox",
      "aria-label": "Specimens",
      tabindex: "0",
      onkeydown: (event) => this.onkey(event),
    });
    this.scroller = h("div", { class: "list" }, this.rows);
    this.head = h("div", { class: "head" });
    fill(container, this.head, this.scroller);
    this.paint = oncePerFrame(() => this.paintRows());
    this.scroller.addEventListener("scroll", this.paint, { passive: true });
    this.observer = new ResizeObserver(this.paint);
    this.observer.observe(this.scroller);
    this.drawn = new Map();
  }

  stop() {
    this.observer.disconnect();
  }

  /** The values that specimens can be sorted by. */
  value(specimen, key) {
    const { project } = store;
    if (key === "name") return project.names[specimen];
    if (key === "size") return store.sizes?.[specimen] ?? null;
    if (key === "distance")
      return isIncluded(specimen)
        ? (store.distances?.[project.included[0].indexOf(specimen)] ?? null)
        : null;
    if (key === "missing") return project.missing[specimen];
    if (key.startsWith("column:")) return project.columns[key.slice(7)]?.[specimen] ?? null;
    if (key in COMPUTED) {
      const value = this.table?.columns[key]?.[specimen] ?? null;
      return typeof value === "boolean" ? Number(value) : value;
    }
    return specimen;
  }

  /** Sort by another key; what has to be computed for it is asked for. */
  async sortBy(key) {
    this.key = key;
    this.isDescending = LARGEST_FIRST.includes(key);
    this.scroller.scrollTop = 0;
    this.draw();
    await this.loadTable();
  }

  /** Ask for the columns of specimens.csv where they are sorted by and were not computed yet. */
  async loadTable() {
    if (!(this.key in COMPUTED) || this.table?.revision === store.project.revision) return;
    try {
      this.table = await get(path("/specimens"));
      this.draw();
    } catch (error) {
      showMessage(error.message, "error");
    }
  }

  draw() {
    const { project } = store;
    if (!project?.names) return;
    const keys = [
      ["", "order of the files"],
      ["name", "name"],
      ["size", "centroid size"],
      ["distance", "distance from the mean"],
      ["missing", "missing landmarks"],
      ...Object.entries(COMPUTED),
      ...Object.keys(project.columns).map((name) => [`column:${name}`, name]),
    ];
    if (!this.head.firstChild) {
      this.sorter = h("div", {
        class: "row tight middle",
        style: { margin: 0, flexWrap: "nowrap" },
      });
      fill(
        this.head,
        h("input", {
          type: "search",
          placeholder: "Find a specimen",
          "aria-label": "Find a specimen",
          oninput: (event) => {
            this.search = event.target.value.toLowerCase();
            this.draw();
          },
        }),
        this.sorter,
      );
    }
    fill(
      this.sorter,
      select(keys, this.key, (key) => this.sortBy(key), {
        "aria-label": "Sort by",
        id: "sort",
        style: { flex: 1 },
      }),
      h(
        "button",
        {
          class: "icon",
          "aria-label": this.isDescending ? "Largest first" : "Smallest first",
          title: "Turn the order round",
          onclick: () => {
            this.isDescending = !this.isDescending;
            this.draw();
          },
        },
        this.isDescending ? "↓" : "↑",
      ),
    );
    const values = project.names.map((_, i) => this.value(i, this.key));
    const direction = this.isDescending ? -1 : 1;
    const compare = (a, b) => {
      if (values[a] === null || values[b] === null)
        return (values[a] === null) - (values[b] === null); // unknown ones last, either way round
      return direction * compareValues(values[a], values[b]);
    };
    this.order = project.names
      .map((_, i) => i)
      .filter((i) => project.names[i].toLowerCase().includes(this.search))
      .sort(compare);
    this.rows.style.height = `${this.order.length * ROW}px`;
    this.rows.replaceChildren();
    this.drawn.clear();
    this.paint();
  }

  paintRows() {
    if (!this.order) return;
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / ROW) - 3);
    const last = Math.min(
      this.order.length,
      Math.ceil((this.scroller.scrollTop + this.scroller.clientHeight) / ROW) + 3,
    );
    for (const [k, row] of this.drawn)
      if (k < first || k >= last) {
        row.remove();
        this.drawn.delete(k);
      }
    for (let k = first; k < last; k++) {
      if (this.drawn.has(k)) continue;
      const row = this.makeRow(this.order[k], k);
      this.drawn.set(k, row);
      this.rows.append(row);
    }
    this.mark(false);
  }

  makeRow(specimen, k) {
    const { project } = store;
    const canvas = h("canvas", { width: 100, height: 96, "aria-hidden": "true" });
    drawThumbnail(canvas, specimen);
    const value =
      this.key && this.key !== "name"
        ? this.value(specimen, this.key)
        : (project.columns.group?.[specimen] ?? "");
    const missing = project.missing[specimen] ? `${project.missing[specimen]} missing` : "";
    const shown = typeof value === "number" ? number(value) : value;
    return h(
      "div",
      {
        class: `item${isIncluded(specimen) ? "" : " out"}`,
        role: "option",
        id: `specimen-${specimen}`,
        "data-specimen": specimen,
        style: { top: `${k * ROW}px` },
        onclick: () => this.onchoose(specimen),
      },
      canvas,
      h(
        "div",
        { style: { minWidth: 0 } },
        h("span", { class: "name", title: project.names[specimen] }, project.names[specimen]),
        h(
          "small",
          {},
          [shown, missing, isIncluded(specimen) ? "" : "excluded"]
            .filter((text) => text !== "" && text !== null)
            .join(" · "),
        ),
      ),
    );
  }

  mark(isScrolling = true) {
    for (const [k, row] of this.drawn)
      row.setAttribute("aria-selected", String(this.order[k] === store.specimen));
    this.rows.setAttribute("aria-activedescendant", `specimen-${store.specimen}`);
    if (!isScrolling) return;
    const top = this.order.indexOf(store.specimen) * ROW,
      { scrollTop, clientHeight } = this.scroller;
    if (top < scrollTop) this.scroller.scrollTop = top;
    else if (top + ROW > scrollTop + clientHeight)
      this.scroller.scrollTop = top + ROW - clientHeight;
  }

  onkey(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const specimen = this.order[this.order.indexOf(store.specimen) + step];
    if (specimen !== undefined) this.onchoose(specimen);
  }
}

/** A small picture: superimposed where that is known, so that specimens can be compared. */
function drawThumbnail(canvas, specimen) {
  const { project } = store;
  const k = project.included[0].indexOf(specimen),
    m = project.included[1].length;
  const isAligned = store.superimposed && k >= 0;
  const rows = isAligned ? rowsOf(store.superimposed, m, project.dims, k * m) : pointsOf(specimen);
  const numbers = isAligned ? project.included[1] : rows.map((_, j) => j);
  const at = new Map(numbers.map((j, place) => [j, rows[place]]));
  const flat = rows.map((row) =>
    hasCoordinates(row) ? [row[0], project.dims === 3 && !isAligned ? row[2] : row[1]] : null,
  );
  const { low, high, isEmpty } = box(flat);
  if (isEmpty) return;
  const scale =
    Math.min(canvas.width / (high[0] - low[0] || 1), canvas.height / (high[1] - low[1] || 1)) *
    0.86;
  const middle = [(low[0] + high[0]) / 2, (low[1] + high[1]) / 2];
  const place = (row) => [
    canvas.width / 2 + (row[0] - middle[0]) * scale,
    canvas.height / 2 - ((project.dims === 3 && !isAligned ? row[2] : row[1]) - middle[1]) * scale,
  ];
  const context = canvas.getContext("2d");
  context.strokeStyle = token("--link");
  context.lineWidth = 1.4;
  context.beginPath();
  for (const [a, b] of project.links) {
    if (!hasCoordinates(at.get(a)) || !hasCoordinates(at.get(b))) continue;
    context.moveTo(...place(at.get(a)));
    context.lineTo(...place(at.get(b)));
  }
  context.stroke();
  context.fillStyle = token("--accent");
  const radius = rows.length > 100 ? 1.5 : 2.6;
  for (const row of rows) {
    if (!hasCoordinates(row)) continue;
    const [x, y] = place(row);
    context.fillRect(x - radius, y - radius, 2 * radius, 2 * radius);
  }
}

function compareValues(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), undefined, { numeric: true });
}
