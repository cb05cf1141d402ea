// Choosing a method with the evidence beside it, and looking at what it does.

import { getFloats } from "./api.js";
import { bars, curve } from "./charts.js";
import { checkbox, field, fill, h, number, showMessage, select, table } from "./dom.js";
import { makeSaveButtons } from "./figures.js";
import { hasCoordinates, rowsOf } from "./geometry.js";
import { changeSettings, listen, nameState, path, pointsOf, store } from "./store.js";
import { run } from "./progress.js";
import { makeView } from "./view.js";

const KINDS = [
  ["rigid", "Rigid: position, rotation, size"],
  ["affine", "Affine: also stretch and shear"],
  ["elastic", "Elastic: between rigid and deformable"],
  ["deformable", "Deformable: a smooth warp each"],
];
const memories = new Map(); // of each project: rows, points, verdict; they stay while steps change

/** What was compared so far of the project as it is edited and read now. */
const remember = () => {
  const { id } = store.project,
    state = nameState();
  if (memories.get(id)?.state !== state)
    memories.set(id, { rows: [], verdict: null, curve: null, state });
  return memories.get(id);
};

/** What a curve of smoothing belongs to: the method but for the smoothing. */
const nameCurve = ({ kind, points_per_axis: points }) => `${kind} ${points}`;

export async function showAlign(main) {
  const memory = remember();
  const evidence = h("section", { class: "card" }),
    controls = h("section", { class: "card" }),
    smoothing = h("section", { class: "card" });
  const work = h("div", {}),
    figures = h("section", { class: "card" }),
    residuals = h("section", { class: "card" });
  const picture = h("div", { class: "picture" }),
    spaces = h("div", { class: "segments", role: "group", "aria-label": "Which coordinates" });
  main.append(
    h(
      "div",
      { class: "page" },
      h(
        "div",
        { class: "two" },
        h("div", { class: "stack" }, work, evidence, controls, smoothing),
        h(
          "div",
          { class: "stack" },
          h(
            "section",
            { class: "card" },
            h(
              "div",
              { class: "row middle" },
              h("h2", { style: { margin: 0, flex: 1 } }, "Before and after"),
              spaces,
            ),
            h("div", { class: "shape" }, picture),
            makeSaveButtons("alignment", () => view),
          ),
          figures,
          residuals,
        ),
      ),
    ),
  );
  const view = await makeView(picture, store.project.dims);
  let space = "superimposed",
    analysis = null,
    isShown = true;

  const drawEvidence = () => {
    const chosen = JSON.stringify(store.project.settings.method);
    const rows = memory.rows.map((row) => {
      const percent = (value) =>
        value === null || value === undefined ? null : Number((100 * value).toPrecision(4));
      const cells = [
        h(
          "span",
          {},
          row.label ?? row.name,
          row.failure ? h("small", {}, ` ${row.failure}`) : null,
        ),
        percent(row.relative_rmse_datum),
        percent(row.relative_rmse_reference),
        percent(row.relative_cve),
        row.seconds == null ? null : Number(row.seconds.toPrecision(2)),
        row.method ? h("button", { class: "quiet", onclick: () => choose(row.method) }, "Use") : "",
      ];
      cells.class = `${memory.verdict?.chosen === row.name ? "best" : ""} ${JSON.stringify(row.method) === chosen ? "chosen" : ""}`;
      return cells;
    });
    fill(
      evidence,
      h(
        "div",
        { class: "row middle" },
        h("h2", { style: { margin: 0, flex: 1 } }, "Which method?"),
        h(
          "button",
          { class: memory.rows.length ? "" : "primary", id: "compare", onclick: compare },
          memory.rows.length ? "Compare again" : "Compare methods",
        ),
      ),
      memory.verdict &&
        h(
          "div",
          { class: "good", id: "verdict" },
          h("p", {}, h("strong", {}, "Recommended. "), memory.verdict.sentence),
          h(
            "button",
            {
              class: "primary",
              id: "use-recommended",
              onclick: () => choose(memory.verdict.method),
            },
            "Use it",
          ),
        ),
      rows.length
        ? table(["method", "RMSE_d %", "RMSE_r %", "CVE %", "seconds", ""], rows, {
            "aria-label": "Methods compared",
            id: "methods",
          })
        : h(
            "p",
            { class: "soft" },
            "Every method predicts landmarks that it has not seen. The error of these predictions (CVE) says which one to take.",
          ),
      rows.length
        ? h(
            "small",
            {},
            "In per cent of the size: RMSE_d left in the specimens, RMSE_r left at the reference, CVE on landmarks left out.",
          )
        : null,
    );
  };

  const drawControls = () => {
    const { method } = store.project.settings;
    const set = (values) => choose({ ...method, ...values });
    const isBending = ["elastic", "deformable"].includes(method.kind);
    const numeric = (name, attributes) => {
      const input = h("input", {
        type: "number",
        value: String(method[name]),
        ...attributes,
        onchange: () => {
          const value = Number(input.value);
          if (Number.isFinite(value))
            set({ [name]: name === "points_per_axis" ? Math.round(value) : value });
        },
      });
      return input;
    };
    fill(
      controls,
      h("h2", {}, "Method"),
      h(
        "div",
        { class: "row" },
        field(
          "Kind",
          select(KINDS, method.kind, (kind) => set({ kind }), { id: "kind" }),
        ),
        method.kind === "rigid" &&
          checkbox("Bring specimens to one size", method.scaling, (scaling) => set({ scaling })),
        isBending &&
          field("Points per axis", numeric("points_per_axis", { min: 2, max: 12, step: 1 })),
        isBending &&
          field(
            "Smoothing",
            numeric("smoothing", {
              min: 0,
              step: "any",
              id: "smoothing",
              style: { width: "24ch" },
            }),
          ),
        method.kind === "elastic" &&
          field("Rigidity", numeric("rigidity", { min: 0, step: "any" })),
      ),
    );
    fill(smoothing);
    smoothing.hidden = !isBending;
    if (!isBending) return;
    const drawn = memory.curve?.method === nameCurve(method) ? memory.curve : null;
    fill(
      smoothing,
      h(
        "div",
        { class: "row middle" },
        h("h2", { style: { margin: 0, flex: 1 } }, "How smooth?"),
        h(
          "button",
          { id: "choose-smoothing", onclick: chooseSmoothing },
          "Choose by cross-validation",
        ),
      ),
      drawn
        ? curve({
            points: drawn.points,
            best: drawn.points.find(({ x }) => x === drawn.best),
            xLabel: "smoothing",
            yLabel: "cross-validation error",
            label: "Cross-validation error along the smoothing",
          })
        : h(
            "p",
            { class: "soft" },
            "More smoothing means stiffer warps. The best predicts left-out landmarks with the least error.",
          ),
      drawn &&
        makeSaveButtons("smoothing", () => smoothing.querySelector("svg.chart")),
      drawn?.choice && h("p", { id: "choice" }, drawn.choice),
    );
  };

  function rememberCurve({ points, best, choice, method }) {
    const places = points
      .filter(({ smoothing: value }) => value > 0)
      .map(({ smoothing: value, cve }) => ({ x: value, y: cve }));
    memory.curve = { method: nameCurve(method), points: places, best, choice };
  }

  async function compare() {
    Object.assign(memory, { rows: [], verdict: null });
    drawEvidence();
    const result = await run(
      work,
      { kind: "compare" },
      {
        row: (row) => {
          memory.rows.push(row);
          if (isShown) drawEvidence();
        },
      },
    );
    memory.verdict = result;
    if (result?.points.length) rememberCurve(result);
    if (!isShown) return;
    drawEvidence();
    drawControls();
  }

  async function chooseSmoothing() {
    const curveSoFar = { method: nameCurve(store.project.settings.method), points: [] };
    memory.curve = curveSoFar;
    drawControls();
    const result = await run(
      work,
      { kind: "smoothing" },
      {
        point: (point) => {
          curveSoFar.points.push({ x: point.smoothing, y: point.cve });
          if (isShown) drawControls();
        },
      },
    );
    if (!result) return;
    rememberCurve(result);
    await choose(result.method);
  }

  async function choose(method) {
    if ((await changeSettings({ method })) && isShown) {
      drawEvidence();
      drawControls();
      await fit();
    }
  }

  async function fit() {
    analysis = await run(work, { kind: "fit" });
    if (!analysis || !isShown) return;
    drawFigures();
    await drawSpace();
  }

  const drawFigures = () => {
    const items = [
      ["RMSE_r", number(analysis.rmse_reference)],
      ["RMSE_d", number(analysis.rmse_datum)],
      ["foldovers", number(analysis.foldovers)],
    ];
    fill(
      figures,
      h("h2", {}, "How well it fits"),
      h("p", { class: "soft" }, analysis.sentence),
      h(
        "dl",
        { class: "figures", id: "figures" },
        items.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
      ),
      analysis.notes.length > 0 &&
        h(
          "div",
          { class: "worry" },
          analysis.notes.map((note) => h("p", {}, note)),
        ),
    );
    const labels = store.project.included[1].map((j) => store.project.landmarks[j]);
    const names = store.project.included[0].map((i) => store.project.names[i]);
    fill(
      residuals,
      h("h2", {}, "What is left, by landmark"),
      bars(
        analysis.by_landmark.map((value, k) => ({ name: labels[k], value })),
        { label: "RMS residual of each landmark", maxBars: 12 },
      ),
      makeSaveButtons("residuals-of-landmarks", () => residuals.querySelectorAll("svg")[0]),
      h("h2", { style: { marginTop: "14px" } }, "By specimen"),
      bars(
        analysis.specimens.rmse_reference.map((value, k) => ({ name: names[k], value })),
        { label: "RMS residual of each specimen", maxBars: 12 },
      ),
      makeSaveButtons("residuals-of-specimens", () => residuals.querySelectorAll("svg")[1]),
    );
  };

  const drawSpace = async () => {
    const choices = [
      ["measured", "Measured"],
      ["superimposed", "Superimposed"],
      ["aligned", "Aligned"],
    ];
    fill(
      spaces,
      choices.map(([name, text]) =>
        h(
          "button",
          {
            "aria-pressed": String(name === space),
            onclick: () => {
              space = name;
              drawSpace();
            },
          },
          text,
        ),
      ),
    );
    const { included, dims, links } = store.project;
    const m = included[1].length;
    let ghosts,
      points = analysis.reference;
    if (space === "measured") {
      ghosts = included[0].flatMap((i) => pointsOf(i));
      points = [];
    } else {
      try {
        ghosts = rowsOf(
          await getFloats(path(`/aligned?space=${space}`)),
          included[0].length * m,
          dims,
        );
      } catch (error) {
        showMessage(error.message, "error");
        return;
      }
    }
    if (ghosts.length > 40000)
      ghosts = ghosts.filter((_, k) => k % Math.ceil(ghosts.length / 40000) === 0);
    const numbers = new Map(included[1].map((j, k) => [j, k]));
    const includedLinks = links
      .filter(([a, b]) => numbers.has(a) && numbers.has(b))
      .map(([a, b]) => [numbers.get(a), numbers.get(b)]);
    const bounds = ghosts.filter(
      (point, k) => hasCoordinates(point) && k % Math.ceil(ghosts.length / 3000) === 0,
    );
    if (isShown)
      view.show({
        points,
        links: points.length ? includedLinks : [],
        ghosts,
        bounds,
        radius: 3,
        label: `All specimens, ${space}`,
      });
  };

  drawEvidence();
  drawControls();
  fit();
  const stop = listen((change) => {
    if (change !== "theme") return;
    drawControls();
    if (analysis) {
      drawFigures();
      drawSpace();
    }
  });
  return () => {
    isShown = false;
    stop();
    view.destroy();
  };
}
