// Plots are drawn when they come into view, and the rest while the browser is idle.

const SPATIAL = ["reference", "before", "after", "deformation", "shape"];
const elementOf = (id) => document.getElementById(`plot-${id}`);
const present = Object.keys(plots).filter(elementOf);
const LEGEND_ROW = 19;
const COMPANIONS = { scatter: "shape" }; // as high as the first
const legendRooms = {};
const COUNTERPARTS = { before: "after", after: "before" };
const drawn = new Set();
const requested = new Set();
const idle = window.requestIdleCallback || ((work) => setTimeout(work, 30));
let paperWidth = 0;

function draw(id) {
  const plot = elementOf(id);
  const { data, layout, height, aspect, sides, companion, buttons = [] } = plots[id]();
  const width = paperWidth && (plot.closest(".pair") ? paperWidth / 2 - 8 : paperWidth);
  const wanted = height || (aspect && heightFor(aspect, width || plot.clientWidth));
  plot.style.height = wanted ? `${wanted}px` : "";
  const room = companion ? legendRooms[companion] || 0 : measureLegend(data, layout, width || plot.clientWidth);
  if (legendRooms[id] !== room && COMPANIONS[id]) requestDraw(COMPANIONS[id]);
  legendRooms[id] = room;
  if (room) plot.style.height = `${(wanted || plot.clientHeight) + room}px`;
  plot.classList.toggle("scene", Boolean(layout.scene));
  if (width) Object.assign(layout, { width, height: plot.clientHeight, autosize: false });
  if (layout.scene) layout.scene.camera = cameraOf(sides, (width || plot.clientWidth) / (plot.clientHeight - SCENE_TOP));
  drawn.add(id);
  return Plotly.react(plot, data, layout, config(buttons)).then(() => {
    if (!plot.dataset.drawn) connectPlot(id, plot);
    plot.dataset.drawn = Number(plot.dataset.drawn || 0) + 1;
    if (drawn.size === present.length) root.dataset.ready = "yes";
  });
}

// the rows of a legend but the first two, in pixels: plotly makes its columns as wide as the longest name
function measureLegend(data, layout, width) {
  if (layout.showlegend === false) return 0;
  const names = data.filter((trace) => trace.name && trace.showlegend !== false).map(({ name }) => name);
  const column = 50 + 7 * Math.max(...names.map((name) => name.length), 0);
  const rows = Math.ceil(names.length / Math.max(1, Math.floor(width / column)));
  return LEGEND_ROW * Math.max(0, rows - 2);
}

function connectPlot(id, plot) {
  if (solid && COUNTERPARTS[id]) turnTogether(plot, elementOf(COUNTERPARTS[id]));
  if (!MARKED.includes(id)) return;
  plot.on("plotly_click", ({ points }) => {
    const owner = points[0]?.customdata;
    if (Number.isInteger(owner)) mark(owner);
  });
}

// what a plane plot needs for its box, its legend and its ticks, within reason
const heightFor = (aspect, width) =>
  Math.round(Math.min(Math.max(aspect * (width - 60) + 80, 240), Math.max(360, 0.75 * width), 640));

// several changes at once are one drawing; what was never drawn waits for its turn
function requestDraw(id) {
  if (!drawn.has(id) || requested.has(id)) return;
  requested.add(id);
  requestAnimationFrame(() => {
    requested.delete(id);
    draw(id);
  });
}

function drawInTurn() {
  const next = present.find((id) => !drawn.has(id));
  if (!next) return;
  draw(next).then(() => idle(drawInTurn));
}

const watcher = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    const id = target.id.replace("plot-", "");
    if (!isIntersecting) continue;
    watcher.unobserve(target);
    if (!drawn.has(id)) draw(id);
  }
}, { rootMargin: "200px" });

connectChoice("shown", "shown", ["reference"]);
connectChoice("colour", "colour", ["reference"]);
connectChoice("before", "before", ["before"]);
connectChoice("deformation", "how", ["deformation"]);
connectChoice("distances", "distances", ["residuals"]);
connectChoice("order", "order", ["residuals"]);
connectChoice("outline", "outline", ["scatter"]);
connectChoice("change", "change", ["shape"]);
connectPicker("before-after", "pair", "all specimens", ["before", "after"]);
if (elementOf("deformation")) connectPicker("deformation", "deformation", null, ["deformation"]);
connectColumns();
if (pca) connectShapeSpace();
connectDownloads();
connectCheckbox("labels");
connectCheckbox("links");
const updateShapeList = buildShapeList();
updateShapeList();
if (solid) SPATIAL.filter(elementOf).forEach(connectKeys);
if (flattened) root.classList.add("flattened");
present.forEach((id) => watcher.observe(elementOf(id)));
setTimeout(() => idle(drawInTurn), 400);

window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawn.forEach(requestDraw));

// on paper: light, as wide as the paper, and complete
window.addEventListener("beforeprint", () => {
  root.classList.add("paper");
  paperWidth = 676;
  document.querySelector("#specimens details").open = shapes.names.length <= 100;
  present.forEach(draw);
});
window.addEventListener("afterprint", () => {
  root.classList.remove("paper");
  paperWidth = 0;
  present.forEach(draw);
});
