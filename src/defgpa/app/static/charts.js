// Charts as SVG: scatter, curve, bars. Colours and fonts come from the style sheet.

import { groupColour, h, number, svg, token } from "./dom.js";
import { markerPath } from "./geometry.js";

const WIDTH = 640,
  HEIGHT = 440,
  LEFT = 58,
  RIGHT = 14,
  TOP = 12,
  BOTTOM = 44;

/** Round numbers for the ticks of an axis. */
export function ticks(low, high, count = 6) {
  const span = high - low || 1;
  const rough = span / count,
    power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * power).find((k) => k >= rough);
  const values = [];
  for (let value = Math.ceil(low / step) * step; value <= high + step * 1e-9; value += step)
    values.push(Math.abs(value) < step * 1e-9 ? 0 : value);
  return values;
}

function extent(values, margin = 0.07) {
  const finite = values.filter((value) => Number.isFinite(value));
  const low = Math.min(...finite),
    high = Math.max(...finite),
    span = high - low || Math.abs(high) || 1;
  return [low - margin * span, high + margin * span];
}

/** Axes, and the functions from values to places on the picture and back. */
function makeAxes({ x, y, xLabel, yLabel, isLogX = false, height = HEIGHT, isEqual = false }) {
  const log = (value) => (isLogX ? Math.log10(value) : value);
  let [x0, x1] = extent(x.map(log)),
    [y0, y1] = extent(y);
  const width = WIDTH - LEFT - RIGHT,
    tall = height - TOP - BOTTOM;
  if (isEqual) {
    // the same scale along both axes
    const unit = Math.max((x1 - x0) / width, (y1 - y0) / tall),
      cx = (x0 + x1) / 2,
      cy = (y0 + y1) / 2;
    [x0, x1, y0, y1] = [
      cx - (unit * width) / 2,
      cx + (unit * width) / 2,
      cy - (unit * tall) / 2,
      cy + (unit * tall) / 2,
    ];
  }
  const toX = (value) => LEFT + ((log(value) - x0) / (x1 - x0)) * width;
  const toY = (value) => TOP + (1 - (value - y0) / (y1 - y0)) * tall;
  const fromX = (place) => x0 + ((place - LEFT) / width) * (x1 - x0);
  const fromY = (place) => y0 + (1 - (place - TOP) / tall) * (y1 - y0);
  const drawing = svg("g", {});
  for (const value of isLogX ? ticks(x0, x1, 8).filter(Number.isInteger) : ticks(x0, x1)) {
    const place = LEFT + ((value - x0) / (x1 - x0)) * width;
    drawing.append(
      svg("line", { class: "gridline", x1: place, x2: place, y1: TOP, y2: height - BOTTOM }),
      svg(
        "text",
        { x: place, y: height - BOTTOM + 17, "text-anchor": "middle" },
        isLogX ? number(10 ** value, 2) : number(value, 3),
      ),
    );
  }
  for (const value of ticks(y0, y1, 5)) {
    drawing.append(
      svg("line", {
        class: "gridline",
        x1: LEFT,
        x2: WIDTH - RIGHT,
        y1: toY(value),
        y2: toY(value),
      }),
      svg("text", { x: LEFT - 7, y: toY(value) + 4, "text-anchor": "end" }, number(value, 3)),
    );
  }
  drawing.append(
    svg("line", {
      class: "axis",
      x1: LEFT,
      x2: WIDTH - RIGHT,
      y1: height - BOTTOM,
      y2: height - BOTTOM,
    }),
    svg("line", { class: "axis", x1: LEFT, x2: LEFT, y1: TOP, y2: height - BOTTOM }),
    svg("text", { x: LEFT + width / 2, y: height - 8, "text-anchor": "middle" }, xLabel),
    svg(
      "text",
      {
        x: 14,
        y: TOP + tall / 2,
        "text-anchor": "middle",
        transform: `rotate(-90 14 ${TOP + tall / 2})`,
      },
      yLabel,
    ),
  );
  return { drawing, toX, toY, fromX, fromY, height };
}

const picture = (label, height = HEIGHT) =>
  svg("svg", {
    class: "chart",
    viewBox: `0 0 ${WIDTH} ${height}`,
    role: "img",
    "aria-label": label,
  });

const STEPS = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }; // from dot to dot

/**
 * A scatter of points with groups.
 *
 * points: [{x, y, colour, marker, label, number}]; on: {pick(number), place(x, y)}.
 */
export function scatter({
  points,
  xLabel,
  yLabel,
  outlines = [],
  selected = null,
  cursor = null,
  lines = [],
  on = {},
  label = "Scatter plot",
  isEqual = true,
}) {
  const places = [
    ...points.map(({ x, y }) => [x, y]),
    ...outlines.flatMap(({ corners }) => corners),
    ...lines.flat(),
  ];
  const axes = makeAxes({
    x: places.map(([x]) => x),
    y: places.map(([, y]) => y),
    xLabel,
    yLabel,
    isEqual,
  });
  const chart = picture(label);
  const reached = Math.max(
    points.findIndex(({ number }) => number === selected),
    0,
  ); // by the key Tab; arrows lead from it to the others
  chart.append(axes.drawing);
  for (const { corners, group } of outlines) {
    const outline = corners.map(([x, y]) => `${axes.toX(x)},${axes.toY(y)}`).join(" ");
    chart.append(
      svg("polygon", {
        class: "hull",
        points: outline,
        fill: groupColour(group),
        stroke: groupColour(group),
      }),
    );
  }
  for (const line of lines)
    chart.append(
      svg("polyline", {
        class: "line",
        points: line.map(([x, y]) => `${axes.toX(x)},${axes.toY(y)}`).join(" "),
      }),
    );
  const tip = h("div", { class: "tip", hidden: true });
  const box = h("div", { style: { position: "relative" } }, tip);
  for (const [k, point] of points.entries()) {
    const x = axes.toX(point.x),
      y = axes.toY(point.y);
    const show = () => {
      tip.textContent = point.label;
      tip.hidden = false;
      tip.style.left = `${(x / WIDTH) * 100}%`;
      tip.style.top = `${(y / HEIGHT) * 100}%`;
    };
    chart.append(
      svg("path", {
        class: `dot${point.number === selected ? " selected" : ""}`,
        d: markerPath(point.marker ?? 0, x, y, 5.5),
        fill: point.colour ?? groupColour(0),
        tabindex: on.pick ? (k === reached ? "0" : "-1") : null,
        role: on.pick ? "button" : null,
        "aria-label": point.label,
        "data-number": point.number,
        onpointerenter: show,
        onfocus: show,
        onpointerleave: () => {
          tip.hidden = true;
        },
        onblur: () => {
          tip.hidden = true;
        },
        onkeydown: (event) => {
          if (event.key === "Enter" || event.key === " ") {
            event.preventDefault();
            on.pick?.(point.number);
          } else if (event.key in STEPS && on.pick) {
            event.preventDefault();
            const dots = chart.querySelectorAll(".dot");
            dots[(k + STEPS[event.key] + dots.length) % dots.length].focus();
          }
        },
        onclick: (event) => {
          event.stopPropagation();
          on.pick?.(point.number);
        },
      }),
    );
  }
  const mark = svg(
    "g",
    { class: "cursor", visibility: cursor ? "visible" : "hidden" },
    svg("circle", { r: 9 }),
    svg("path", { d: "M-15 0h9M6 0h9M0-15v9M0 6v9" }),
  );
  const moveTo = (x, y) => {
    mark.setAttribute("visibility", "visible");
    mark.setAttribute("transform", `translate(${axes.toX(x)} ${axes.toY(y)})`);
  };
  chart.append(mark);
  if (cursor) moveTo(...cursor);
  if (on.place) {
    let isDown = false;
    const place = (event) => {
      const area = chart.getBoundingClientRect();
      const x = axes.fromX(((event.clientX - area.left) / area.width) * WIDTH),
        y = axes.fromY(((event.clientY - area.top) / area.height) * HEIGHT);
      box.cursor = [x, y];
      moveTo(x, y);
      on.place(x, y);
    };
    chart.addEventListener("pointerdown", (event) => {
      if (event.target.classList.contains("dot")) return;
      isDown = true;
      chart.setPointerCapture(event.pointerId);
      place(event);
    });
    chart.addEventListener("pointermove", (event) => {
      if (isDown) place(event);
    });
    chart.addEventListener("pointerup", () => {
      isDown = false;
    });
    chart.setAttribute("tabindex", "0");
    chart.setAttribute("role", "application");
    chart.setAttribute("aria-label", `${label}: arrows move the place whose shape is shown`);
    chart.addEventListener("keydown", (event) => {
      const arrows = {
        ArrowLeft: [-1, 0],
        ArrowRight: [1, 0],
        ArrowUp: [0, -1],
        ArrowDown: [0, 1],
      };
      if (!(event.key in arrows) || event.target !== chart) return;
      event.preventDefault();
      const [dx, dy] = arrows[event.key],
        at = box.cursor ?? [0, 0];
      const next = [axes.fromX(axes.toX(at[0]) + dx * 10), axes.fromY(axes.toY(at[1]) + dy * 10)];
      box.cursor = next;
      moveTo(...next);
      on.place(...next);
    });
  }
  box.cursor = cursor;
  box.moveTo = moveTo;
  box.append(chart);
  return box;
}

/** The legend of groups, each with its colour and marker. */
export function legend(groups, { markerOf = (k) => k, colourOf = groupColour } = {}) {
  const maxShown = 24;
  return h(
    "div",
    { class: "legend" },
    groups.slice(0, maxShown).map((name, k) =>
      h(
        "span",
        {},
        svg(
          "svg",
          { viewBox: "0 0 14 14", "aria-hidden": "true" },
          svg("path", { d: markerPath(markerOf(k), 7, 7, 5), fill: colourOf(k) }),
        ),
        name === "" ? "(none)" : name,
      ),
    ),
    groups.length > maxShown && h("span", {}, `and ${groups.length - maxShown} more`),
  );
}

/** The legend of a scale: its colours between the smallest and the largest value. */
export function scaleLegend(name, [low, high]) {
  return h(
    "div",
    { class: "legend" },
    h("span", {}, name),
    h("span", {}, number(low), h("i", { class: "ramp" }), number(high)),
  );
}

/** A curve over a logarithmic axis, its best point marked. */
export function curve({ points, best, xLabel, yLabel, label }) {
  const height = 280;
  const chart = picture(label, height);
  if (!points.length) return chart;
  const axes = makeAxes({
    x: points.map((p) => p.x),
    y: points.map((p) => p.y),
    xLabel,
    yLabel,
    isLogX: true,
    height,
  });
  const sorted = [...points].sort((a, b) => a.x - b.x);
  chart.append(
    axes.drawing,
    svg("polyline", {
      class: "line",
      points: sorted.map((p) => `${axes.toX(p.x)},${axes.toY(p.y)}`).join(" "),
    }),
  );
  for (const point of sorted)
    chart.append(
      svg(
        "circle",
        { cx: axes.toX(point.x), cy: axes.toY(point.y), r: 3.5, fill: token("--accent") },
        svg("title", {}, `${number(point.x)}: ${number(point.y)}`),
      ),
    );
  if (best)
    chart.append(
      svg("circle", { class: "cursor", cx: axes.toX(best.x), cy: axes.toY(best.y), r: 9 }),
    );
  return chart;
}

/** Horizontal bars, the longest first. */
export function bars(rows, { label, maxBars = 18, onpick } = {}) {
  const shown = [...rows]
    .filter((row) => row.value !== null)
    .sort((a, b) => b.value - a.value)
    .slice(0, maxBars);
  const height = 22 * shown.length + 8,
    longest = Math.max(...shown.map((row) => row.value), 1e-300);
  const chart = svg("svg", {
    class: "chart",
    viewBox: `0 0 ${WIDTH} ${height}`,
    role: "img",
    "aria-label": label,
  });
  shown.forEach((row, k) => {
    const y = 4 + 22 * k,
      width = Math.max(1, (row.value / longest) * 380);
    chart.append(
      svg(
        "g",
        { onclick: onpick ? () => onpick(row) : null },
        svg(
          "text",
          { x: 160, y: y + 13, "text-anchor": "end" },
          row.name.length > 24 ? `${row.name.slice(0, 22)}…` : row.name,
        ),
        svg("rect", { class: "bar", x: 168, y: y + 2, width, height: 15, rx: 3 }),
        svg("text", { x: 174 + width, y: y + 13 }, number(row.value, 3)),
      ),
    );
  });
  return chart;
}
