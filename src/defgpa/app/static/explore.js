// Morphospace: where specimens lie, and the shape at any place of it.

import { get, post } from "./api.js";
import { legend, scaleLegend, scatter } from "./charts.js";
import {
  MAX_GROUPS,
  SIZE,
  chooseGrouping,
  encode,
  isGrouping,
  levelsOf,
  listColumns,
  valuesOf,
} from "./columns.js";
import { checkbox, field, fill, h, number, showMessage, select, table, token } from "./dom.js";
import { makeSaveButtons } from "./figures.js";
import { runTest } from "./progress.js";
import { ShapeView, blend } from "./shape_view.js";
import { changeSettings, choose, listen, path, store } from "./store.js";

const OUTLINES = [
  ["", "nothing"],
  ["hull", "hulls"],
  ["ellipse", "ellipses (95 %)"],
];
const nameColumn = (column) => (column === SIZE ? "centroid size" : column);
const options = {
  x: 0,
  y: 1,
  colour: null,
  marker: "",
  outline: "hull",
  magnification: 1,
  mesh: true,
};

export async function showExplore(main, { go }) {
  const controls = h("div", { class: "row choose-axes" }),
    plot = h("div", {}),
    shapeControls = h("div", { class: "row middle" }),
    work = h("div", {});
  const groupsAndOutliers = h("div", { class: "stack" }),
    sizes = h("section", { class: "card" });
  const shape = await new ShapeView().start();
  shape.element.classList.add("tall");
  shape.withMesh = store.project.dims === 3 && store.project.meshes.some(Boolean);
  main.append(
    h(
      "div",
      { class: "page", style: { maxWidth: "1400px" } },
      work,
      h(
        "div",
        { class: "explore" },
        h("section", { class: "card" }, h("h2", {}, "Morphospace"), controls, plot),
        h(
          "section",
          { class: "card" },
          h("h2", {}, "The shape there"),
          shapeControls,
          shape.element,
          h("small", {}, "Click or drag anywhere in the morphospace, or choose a specimen."),
          shape.saveButtons,
        ),
      ),
      h(
        "div",
        { class: "two", style: { marginTop: "16px" } },
        groupsAndOutliers,
        h("div", { class: "stack" }, sizes),
      ),
    ),
  );
  let space = null,
    cursor = [0, 0],
    isShown = true,
    outlines = [],
    allometry = null,
    redrawSizes = () => {};

  try {
    space = await get(path("/morphospace"));
  } catch (error) {
    fill(plot, h("div", { class: "worry" }, h("p", {}, error.message)));
    return () => {
      isShown = false;
      shape.stop();
    };
  }
  if (options.colour === null || !["", SIZE, ...listColumns()].includes(options.colour))
    options.colour = chooseGrouping();
  if (!listColumns().filter(isGrouping).includes(options.marker)) options.marker = "";
  const components = space.ratios.map((ratio, k) => [
    k,
    `PC${k + 1} (${(100 * ratio).toFixed(1)} %)`,
  ]);
  options.x = Math.min(options.x, components.length - 1);
  options.y = Math.min(options.y, components.length - 1);

  const requestShape = () =>
    shape
      .ask({
        scores: { [options.x]: cursor[0], [options.y]: cursor[1] },
        magnification: options.magnification,
      })
      .catch((error) => showMessage(error.message, "error"));

  const requestOutlines = async () => {
    outlines = [];
    if (options.outline && isGrouping(options.colour)) {
      const levels = levelsOf(options.colour);
      try {
        const answer = await get(
          path(
            `/outlines?kind=${options.outline}&x=${options.x}&y=${options.y}&column=${encodeURIComponent(options.colour)}`,
          ),
        );
        outlines = Object.entries(answer.outlines).map(([name, corners]) => ({
          corners,
          group: levels.indexOf(name),
        }));
      } catch (error) {
        showMessage(error.message, "error");
      }
    }
    draw();
  };

  /** The colour, marker and words of every specimen, by the chosen columns. */
  const makeLooks = () => {
    const { colours, numbers } = encode(options.colour);
    const markers = options.marker ? encode(options.marker).numbers : numbers;
    const words = [options.colour, options.marker].filter(Boolean).map(valuesOf);
    return space.specimens.map((specimen, k) => ({
      colour: colours[k],
      marker: markers[k],
      label: [store.project.names[specimen], ...words.map((values) => values[k])]
        .filter((word) => word !== null && word !== "")
        .map((word) => number(word))
        .join(" · "),
    }));
  };

  const drawLegends = () => {
    const { levels, range } = encode(options.colour);
    const isSame = !options.marker || options.marker === options.colour;
    return [
      range && scaleLegend(nameColumn(options.colour), range),
      levels.length > 0 && legend(levels, isSame ? {} : { markerOf: () => 0 }),
      options.marker &&
        !isSame &&
        legend(levelsOf(options.marker), { colourOf: () => token("--soft") }),
      options.outline &&
        options.colour &&
        !isGrouping(options.colour) &&
        h("small", {}, `Outlines are drawn around 2 to ${MAX_GROUPS} groups.`),
    ];
  };

  const draw = () => {
    if (!isShown) return;
    const looks = makeLooks();
    const points = space.scores.map((scores, k) => ({
      x: scores[options.x],
      y: scores[options.y],
      number: space.specimens[k],
      ...looks[k],
    }));
    const chart = scatter({
      points,
      xLabel: components[options.x][1],
      yLabel: components[options.y][1],
      outlines,
      selected: store.specimen,
      cursor,
      label: "Morphospace",
      on: {
        pick: (specimen) => {
          store.specimen = specimen;
          const k = space.specimens.indexOf(specimen);
          cursor = [space.scores[k][options.x], space.scores[k][options.y]];
          draw();
          requestShape();
        },
        place: (x, y) => {
          cursor = [x, y];
          requestShape();
        },
      },
    });
    chart.id = "morphospace";
    fill(
      plot,
      chart,
      drawLegends(),
      h(
        "div",
        { class: "row middle", style: { marginTop: "8px" } },
        h("span", { class: "soft" }, `Selected: ${store.project.names[store.specimen]}`),
        h(
          "button",
          {
            class: "quiet",
            onclick: () => {
              choose(store.specimen);
              go("look");
            },
          },
          "Look at it",
        ),
        makeSaveButtons("morphospace", () => chart.querySelector("svg")),
      ),
    );
  };

  const drawControls = () => {
    const set =
      (name, convert = String) =>
      (value) => {
        options[name] = convert(value);
        drawControls();
        requestOutlines();
        redrawSizes();
        if (["x", "y"].includes(name)) {
          cursor = [0, 0];
          requestShape();
        }
      };
    const name = (columns) => [["", "nothing"], ...columns.map((key) => [key, nameColumn(key)])];
    fill(
      controls,
      field("Across", select(components, options.x, set("x", Number))),
      field("Up", select(components, options.y, set("y", Number))),
      field(
        "Colour",
        select(name([SIZE, ...listColumns()]), options.colour, set("colour"), { id: "colour" }),
      ),
      field(
        "Marker",
        select(name(listColumns().filter(isGrouping)), options.marker, set("marker"), {
          id: "marker",
        }),
      ),
      field("Around groups", select(OUTLINES, options.outline, set("outline"), { id: "outline" })),
    );
    const slider = h("input", {
      type: "range",
      min: 0.5,
      max: 5,
      step: 0.1,
      value: String(options.magnification),
      id: "magnification",
      oninput: () => {
        options.magnification = Number(slider.value);
        label.textContent = `${options.magnification} ×`;
        requestShape();
      },
    });
    const label = h("span", {}, `${options.magnification} ×`);
    fill(
      shapeControls,
      h(
        "label",
        { class: "field", style: { flex: 1 } },
        h("span", {}, "Magnification ", label),
        slider,
      ),
      shape.withMesh || store.project.meshes.some(Boolean)
        ? checkbox("Mesh", shape.withMesh, (value) => {
            shape.withMesh = value;
            requestShape();
          })
        : null,
      h(
        "button",
        {
          onclick: () => {
            cursor = [0, 0];
            draw();
            requestShape();
          },
        },
        "Mean shape",
      ),
    );
  };

  drawControls();
  await requestOutlines();
  requestShape();
  drawGroups();
  drawAllometry();
  drawOutliers();

  function drawGroups() {
    const words = listColumns().filter(isGrouping);
    if (!words.length) return;
    const card = h("section", { class: "card" });
    groupsAndOutliers.append(card);
    let column = chooseGrouping(),
      from = null,
      to = null,
      t = 1;
    const drawCard = () => {
      const levels = levelsOf(column);
      from = levels.includes(from) ? from : levels[0];
      to = levels.includes(to) ? to : levels[1];
      const slider = h("input", {
        type: "range",
        min: 0,
        max: 1,
        step: 0.02,
        value: String(t),
        oninput: () => {
          t = Number(slider.value);
          show();
        },
      });
      fill(
        card,
        h("h2", {}, "Mean shapes of groups"),
        h(
          "div",
          { class: "row" },
          field(
            "Column",
            select(
              words.map((name) => [name, name]),
              column,
              (value) => {
                column = value;
                drawCard();
              },
            ),
          ),
          field(
            "From",
            select(
              levels.map((name) => [name, name]),
              from,
              (value) => {
                from = value;
                show();
              },
            ),
          ),
          field(
            "To",
            select(
              levels.map((name) => [name, name]),
              to,
              (value) => {
                to = value;
                show();
              },
            ),
          ),
        ),
        field(`Difference of the means`, slider),
        h("button", { id: "show-groups", onclick: () => show() }, "Show it above"),
      );
    };
    const show = async () => {
      try {
        const [a, b] = await Promise.all(
          [from, to].map((group) =>
            post(path("/shape"), { column, from, group, magnification: options.magnification }),
          ),
        );
        shape.draw(blend(a, b, t));
      } catch (error) {
        showMessage(error.message, "error");
      }
    };
    drawCard();
  }

  function drawAllometry() {
    const place = h("div", {}),
      progress = h("div", {});
    const start = async () => {
      const result = await runTest(progress, "allometry", { allometry: true });
      if (!result || !isShown) return;
      allometry = result;
      drawChart();
    };
    const remove = async () => {
      if (!(await changeSettings({ allometry: false }))) return;
      allometry = null;
      fill(place);
    };
    const drawChart = () => {
      if (!allometry) return;
      const [row] = allometry.table,
        looks = makeLooks();
      const points = allometry.sizes.map((size, k) => ({
        x: Math.log(size),
        y: allometry.scores[k],
        number: allometry.specimens[k],
        ...looks[k],
      }));
      const slider = h("input", {
        type: "range",
        min: 0,
        max: 1,
        step: 0.02,
        value: "0.5",
        "aria-label": "Size",
        oninput: () => shape.draw(blend(...allometry.shapes, Number(slider.value))),
      });
      const chart = scatter({
        points,
        xLabel: "size" in store.project.columns ? "log size" : "log centroid size",
        yLabel: "regression score",
        lines: [allometry.ends.map((size, k) => [Math.log(size), allometry.line[k]])],
        isEqual: false,
        label: "Allometry",
      });
      fill(
        place,
        h(
          "p",
          { style: { marginTop: "12px" } },
          `Size explains ${(100 * row.r_squared).toFixed(1)} % of the variation of shape (P = ${number(row.p, 3)}).`,
        ),
        chart,
        makeSaveButtons("allometry", () => chart.querySelector("svg")),
        field("Shape from the smallest to the largest", slider),
        h("button", { class: "quiet", id: "remove-allometry", onclick: remove }, "Leave it out"),
      );
    };
    redrawSizes = drawChart;
    fill(
      sizes,
      h("h2", {}, "Size and shape"),
      h(
        "p",
        { class: "soft" },
        "size" in store.project.columns
          ? "The regression of shape on the logarithm of the column size."
          : "The regression of shape on log centroid size.",
      ),
      h("button", { id: "allometry", onclick: start }, "Compute"),
      progress,
      place,
    );
    if (store.project.settings.allometry) start(); // it is in the scripts: show it again
  }

  async function drawOutliers() {
    const card = h("section", { class: "card" }, h("h2", {}, "The oddest specimens"));
    groupsAndOutliers.append(card);
    const column = isGrouping(options.colour) ? options.colour : "";
    try {
      const { rows } = await get(path(`/outliers?column=${encodeURIComponent(column)}`));
      card.append(
        table(
          ["specimen", "distance", "oddest landmark"],
          rows.slice(0, 12).map((row) => [
            [
              h(
                "button",
                {
                  class: "quiet",
                  onclick: () => {
                    choose(store.project.names.indexOf(row.name));
                    go("look");
                  },
                },
                row.name,
              ),
              row.outlier && h("small", {}, "outlier"),
            ],
            row.distance,
            row.worst_landmark,
          ]),
          { "aria-label": "Oddest specimens" },
        ),
      );
    } catch (error) {
      card.append(h("p", { class: "soft" }, error.message));
    }
  }

  const stop = listen((change) => {
    if (change === "sizes" && options.colour === SIZE) draw();
    if (change === "theme") {
      draw();
      redrawSizes();
      shape.redraw();
    }
  });
  return () => {
    isShown = false;
    stop();
    shape.stop();
  };
}
