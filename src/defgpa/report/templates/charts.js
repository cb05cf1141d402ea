// The plots that are not in space: maps of shapes by landmarks, the smoothing path, the spectrum.

Object.assign(plots, {
  residuals() {
    const rows = shapes[state.distances];
    const order = state.order === "given" ? everyShape : worstFirst(rows);
    const trace = {
      z: order.map((i) => Array.from(rows[i], (x) => (Number.isNaN(x) ? null : x))),
      colorscale: cellScale(),
      zmin: 0,
      colorbar: bar("distance"),
      hovertemplate: "%{text}<br>%{z:.3g} from the reference<extra></extra>",
    };
    return mapOf(order, trace);
  },

  missing() {
    const trace = {
      z: shapes.aligned.map((own) => shapes.landmarks.map((_, j) => (seen(own, j) ? 0 : 1))),
      text: everyShape.map((i) =>
        shapes.landmarks.map((_, j) => `${said(i, j)}<br>${seen(shapes.aligned[i], j) ? "" : "not "}seen`),
      ),
      colorscale: [[0, colour("seen")], [1, colour("unseen")]],
      zmin: 0,
      zmax: 1,
      showscale: false,
      hovertemplate: "%{text}<extra></extra>",
    };
    return mapOf(everyShape, trace);
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
    const errors = curves.flatMap(([, y]) => y).filter((x) => x > 0);
    const wide = Math.max(...errors) > 30 * Math.min(...errors);
    return {
      data,
      layout: layout({
        margin: { l: 12, r: 16, t: 40, b: 12 },
        xaxis: axis("relative smoothing: softer ← → stiffer", {
          type: "log",
          exponentformat: "power",
          dtick: 1,
        }),
        yaxis: axis("error", wide ? { type: "log", tickformat: "~g" } : { rangemode: "tozero" }),
        dragmode: false,
        ...chosenMark(path.best),
      }),
    };
  },

  spectrum() {
    const kept = page.spectrum.map((_, k) => k < dim);
    const names = page.spectrum.map((_, k) => (k < dim ? `axis ${k + 1}` : "next, not taken"));
    const data = [{
      type: "bar",
      orientation: "h",
      x: page.spectrum,
      y: names.map((name, k) => (k > dim ? `${name} (${k + 1})` : name)),
      text: page.spectrum.map(figure),
      textposition: "outside",
      cliponaxis: false,
      marker: { color: kept.map((own) => colour(own ? "group-0" : "group-1")) },
      hoverinfo: "skip",
    }];
    return {
      data,
      layout: layout({
        margin: { l: 12, r: 70, t: 12, b: 12 },
        xaxis: axis("cost", { rangemode: "tozero" }),
        yaxis: axis("", { autorange: "reversed", gridcolor: "rgba(0,0,0,0)" }),
        bargap: 0.35,
        dragmode: false,
      }),
    };
  },
});

function worstFirst(rows) {
  const square = (row) => {
    const known = Array.from(row).filter((x) => !Number.isNaN(x));
    return known.reduce((sum, x) => sum + x * x, 0) / Math.max(1, known.length);
  };
  const errors = rows.map(square);
  return [...everyShape].sort((a, b) => errors[b] - errors[a] || a - b);
}

// Cells lie at whole numbers and names are only written there: on an axis of names, plotly would
// take the number 7 for the name "7", wherever that is. As many names as there is room for.
function namedAxis(names, room, more) {
  const step = Math.max(1, Math.ceil(names.length / room));
  const tickvals = names.map((_, k) => k).filter((k) => k % step === 0);
  return {
    type: "linear",
    tickmode: "array",
    tickvals,
    ticktext: tickvals.map((k) => plain(cut(names[k], 18))),
    tickfont: { size: 11 },
    showgrid: false,
    range: [-0.5, names.length - 0.5],
    ...more,
  };
}

// a map of shapes by landmarks
function mapOf(order, trace) {
  const names = order.map((i) => shapes.names[i]);
  const height = Math.min(620, Math.max(180, 17 * names.length)) + 90;
  const gap = names.length <= 60 && shapes.landmarks.length <= 120 ? 1 : 0;
  const wide = document.getElementById("plot-residuals").clientWidth > 600;
  return {
    data: [{
      type: "heatmap",
      text: order.map((i) => shapes.landmarks.map((_, j) => said(i, j))),
      xgap: gap,
      ygap: gap,
      ...trace,
    }],
    layout: layout({
      margin: { l: 12, r: 12, t: 34, b: 12 },
      xaxis: axis("landmark", namedAxis(shapes.landmarks, wide ? 45 : 14, { tickangle: -90 })),
      yaxis: axis("", namedAxis(names, Math.floor((height - 90) / 13), {
        range: [names.length - 0.5, -0.5],
      })),
    }),
    buttons: ["zoom2d", "pan2d", "resetScale2d"],
    height,
  };
}

function chosenMark(best) {
  if (best === null) return {};
  const line = { color: colour("ink"), width: 1, dash: "dash" };
  return {
    shapes: [{ type: "line", x0: best, x1: best, yref: "paper", y0: 0, y1: 1, line }],
    annotations: [{
      x: Math.log10(best),
      y: 1,
      yref: "paper",
      yanchor: "top",
      xanchor: "left",
      xshift: 5,
      text: `chosen: ${figure(best)}`,
      showarrow: false,
      font: { color: colour("ink") },
    }],
  };
}
