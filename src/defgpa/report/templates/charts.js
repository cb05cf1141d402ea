// The plots that are not in space: maps of shapes by landmarks, the smoothing path, the spectrum.

Object.assign(plots, {
  residuals() {
    const rows = shapes[state.distances];
    const order = state.order === "given" ? allShapes : sortWorstFirst(rows);
    const value = (i, j) => (Number.isNaN(rows[i][j]) ? null : rows[i][j]);
    const text = (i, j) => `${describePoint(i, j)}<br>${formatNumber(rows[i][j])} from the reference`;
    return mapOf(order, value, text, { colorscale: cellScale(), zmin: 0, colorbar: bar("distance") });
  },

  weights() {
    const value = (i, j) => (isVisible(shapes.aligned[i], j) ? shapes.weights[i][j] : null);
    const text = (i, j) => `${describePoint(i, j)}<br>${value(i, j) > 0 ? `weight ${formatNumber(value(i, j))}` : "left out"}`;
    const colorscale = [[0, colour("missing")], [1, colour("visible")]];
    return mapOf(allShapes, value, text, { colorscale, zmin: 0, colorbar: bar("weight") });
  },

  missing() {
    const value = (i, j) => (isVisible(shapes.aligned[i], j) ? 0 : 1);
    const text = (i, j) => `${describePoint(i, j)}<br>${value(i, j) ? "missing" : "visible"}`;
    const colorscale = [[0, colour("visible")], [1, colour("missing")]];
    return mapOf(allShapes, value, text, { colorscale, zmin: 0, zmax: 1, showscale: false });
  },

  smoothing() {
    const path = page.smoothing;
    const curves = [
      ["CVE", path.cve, 0, "circle", "solid"],
      ["RMSE_r", path.rmse_reference, 1, "square", "dash"],
      ["RMSE_d", path.rmse_datum, 2, "diamond", "dot"],
    ];
    const data = curves.map(([name, y, k, symbol, dash]) => ({
      type: "scatter",
      mode: "lines+markers",
      name,
      x: path.values,
      y,
      line: { color: groupColour(k), dash, width: 2 },
      marker: { symbol, size: 7, color: groupColour(k) },
      hovertemplate: `${name} %{y:.4g}<br>smoothing %{x:.3g}<extra></extra>`,
    }));
    if (path.standard_error) data.unshift(errorBand(path));
    const errors = curves.flatMap(([, y]) => y).filter((x) => x > 0);
    const wide = Math.max(...errors) > 30 * Math.min(...errors);
    return {
      data,
      layout: layout({
        margin: { l: 12, r: 16, t: 40, b: 12 },
        xaxis: axis("relative smoothing: softer ← → stiffer", {
          type: "log",
          minexponent: 0,
          dtick: 1,
        }),
        yaxis: axis("error", wide ? { type: "log", dtick: "D2", tickformat: "~g" } : { rangemode: "tozero" }),
        dragmode: false,
        ...choiceMarks(path),
      }),
    };
  },

  spectrum() {
    const isUsed = page.spectrum.map((_, k) => k < dim);
    const names = page.spectrum.map((_, k) => (k < dim ? `axis ${k + 1}` : "next, not used"));
    const data = [{
      type: "bar",
      orientation: "h",
      x: page.spectrum,
      y: names.map((name, k) => (k > dim ? `${name} (${k + 1})` : name)),
      text: page.spectrum.map(formatNumber),
      textposition: "outside",
      cliponaxis: false,
      marker: { color: isUsed.map((used) => colour(used ? "group-0" : "group-1")) },
      hoverinfo: "skip",
    }];
    return {
      data,
      layout: layout({
        margin: { l: 12, r: 70, t: 12, b: 12 },
        xaxis: axis("eigenvalue of P: squared residual of a unit axis", { rangemode: "tozero" }),
        yaxis: axis("", { autorange: "reversed", gridcolor: "rgba(0,0,0,0)" }),
        bargap: 0.35,
        dragmode: false,
      }),
    };
  },
});

function sortWorstFirst(rows) {
  const square = (row) => {
    const visible = row.filter((x) => !Number.isNaN(x));
    return visible.reduce((sum, x) => sum + x * x, 0) / Math.max(1, visible.length);
  };
  const errors = rows.map(square);
  return [...allShapes].sort((a, b) => errors[b] - errors[a] || a - b);
}

// Cells lie at whole numbers and names are only written there: on an axis of names, plotly would
// take the number 7 for the name "7", wherever that is. As many names as there is room for.
function makeNamedAxis(names, room, more) {
  const step = Math.max(1, Math.ceil(names.length / room));
  const tickvals = names.map((_, k) => k).filter((k) => k % step === 0);
  const short = shortenAll(names, 18);
  return {
    type: "linear",
    tickmode: "array",
    tickvals,
    ticktext: tickvals.map((k) => escapeMarkup(short[k])),
    tickfont: { size: 11 },
    showgrid: false,
    range: [-0.5, names.length - 0.5],
    ...more,
  };
}

// A map of specimens by landmarks. Of very many, a cell stands for several: for the largest value.
const MAX_MAP_ROWS = 400;
const MAX_MAP_COLUMNS = 250;
function mapOf(order, value, text, more) {
  const rowsPerCell = Math.ceil(order.length / MAX_MAP_ROWS);
  const columnsPerCell = Math.ceil(shapes.landmarks.length / MAX_MAP_COLUMNS);
  const columns = Array.from({ length: Math.ceil(shapes.landmarks.length / columnsPerCell) }, (_, c) => c);
  const cells = Array.from({ length: Math.ceil(order.length / rowsPerCell) }, (_, r) =>
    columns.map((c) => largestOf(order.slice(r * rowsPerCell, (r + 1) * rowsPerCell), c * columnsPerCell, columnsPerCell, value)),
  );
  const names = cells.map((_, r) => shapes.names[order[r * rowsPerCell]]);
  const landmarks = columns.map((c) => shapes.landmarks[c * columnsPerCell]);
  const height = Math.min(620, Math.max(180, 17 * names.length)) + 90;
  const gap = names.length <= 60 && landmarks.length <= 120 ? 1 : 0;
  const wide = document.getElementById("plot-residuals").clientWidth > 600;
  const count = rowsPerCell * columnsPerCell;
  const prefix = count > 1 ? `largest of ${count}:<br>` : "";
  return {
    data: [{
      type: "heatmap",
      z: cells.map((row) => row.map((cell) => cell.value)),
      text: cells.map((row) => row.map(({ i, j }) => (i < 0 ? "missing" : prefix + text(i, j)))),
      hovertemplate: "%{text}<extra></extra>",
      xgap: gap,
      ygap: gap,
      ...more,
    }],
    layout: layout({
      margin: { l: 12, r: 12, t: 34, b: 12 },
      xaxis: axis(columnsPerCell > 1 ? `landmark (${columnsPerCell} to a cell)` : "landmark",
        makeNamedAxis(landmarks, wide ? 45 : 14, { tickangle: -90 })),
      yaxis: axis(rowsPerCell > 1 ? `specimen (${rowsPerCell} to a cell)` : "",
        makeNamedAxis(names, Math.floor((height - 90) / 13), { range: [names.length - 0.5, -0.5] })),
    }),
    buttons: ["zoom2d", "pan2d", "resetScale2d"],
    height,
  };
}

function largestOf(rows, start, count, value) {
  let cell = { value: null, i: count === 1 && rows.length === 1 ? rows[0] : -1, j: start };
  for (const i of rows) {
    for (let j = start; j < Math.min(start + count, shapes.landmarks.length); j++) {
      const candidate = value(i, j);
      if (candidate !== null && (cell.value === null || candidate > cell.value)) cell = { value: candidate, i, j };
    }
  }
  return cell;
}

// one standard error around the cross-validation error
function errorBand({ values, cve, standard_error: spread }) {
  const shown = values.map((_, k) => k).filter((k) => cve[k] !== null && spread[k] !== null);
  return {
    type: "scatter",
    mode: "lines",
    name: "CVE ± 1 standard error",
    x: [...shown, ...shown.toReversed()].map((k) => values[k]),
    y: [...shown.map((k) => cve[k] + spread[k]), ...shown.toReversed().map((k) => Math.max(cve[k] - spread[k], 1e-9))],
    fill: "toself",
    fillcolor: `${groupColour(0)}33`,
    line: { width: 0 },
    hoverinfo: "skip",
  };
}

// the chosen smoothing, and that of the smallest CVE where it is another
function choiceMarks({ chosen, minimum }) {
  const marks = [[chosen, "chosen", "dash", 1], [minimum, "smallest CVE", "dot", 0.92]];
  const shown = marks.filter(([at], k) => at !== null && (k === 0 || at !== chosen));
  return {
    shapes: shown.map(([at, , dash]) => ({
      type: "line", x0: at, x1: at, yref: "paper", y0: 0, y1: 1, line: { color: colour("ink"), width: 1, dash },
    })),
    annotations: shown.map(([at, word, , y]) => ({
      x: Math.log10(at),
      y,
      yref: "paper",
      yanchor: "top",
      xanchor: at < chosen ? "right" : "left",
      xshift: at < chosen ? -5 : 5,
      text: `${word}: ${formatNumber(at)}`,
      showarrow: false,
      font: { color: colour("ink") },
    })),
  };
}
