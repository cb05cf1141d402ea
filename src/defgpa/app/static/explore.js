// Morphospace: where specimens lie, and the shape at any place of it.

import { get, post } from "./api.js";
import { legend, scatter } from "./charts.js";
import { checkbox, field, fill, h, number, showMessage, select, table } from "./dom.js";
import { makeSaveButtons } from "./figures.js";
import { run } from "./progress.js";
import { ShapeView, blend } from "./shape_view.js";
import { choose, listen, path, store } from "./store.js";

const OUTLINES = [
  ["", "nothing"],
  ["hull", "hulls"],
  ["ellipse", "ellipses (95 %)"],
];
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
  const controls = h("div", { class: "row" }),
    plot = h("div", {}),
    shapeControls = h("div", { class: "row middle" }),
    work = h("div", {});
  const below = h("div", { class: "cards", style: { marginTop: "16px" } });
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
      below,
    ),
  );
  let space = null,
    cursor = [0, 0],
    isShown = true,
    outlines = [];

  const columns = () => Object.keys(store.project.columns);
  const valuesOf = (column) =>
    column ? space.specimens.map((i) => store.project.columns[column][i]) : null;
  const levelsOf = (column) =>
    [...new Set(valuesOf(column).map((value) => (value === null ? "" : String(value))))].sort(
      (a, b) => a.localeCompare(b, undefined, { numeric: true }),
    );

  const isGrouping = (column) => {
    const count = levelsOf(column).length;
    return count > 1 && count <= space.specimens.length / 2;
  };

  try {
    space = await get(path("/morphospace"));
  } catch (error) {
    fill(plot, h("div", { class: "worry" }, h("p", {}, error.message)));
    return () => {
      isShown = false;
      shape.stop();
    };
  }
  if (options.colour === null || !["", ...columns()].includes(options.colour)) {
    const groupings = columns().filter(isGrouping);
    options.colour = groupings.includes("group") ? "group" : (groupings[0] ?? "");
  }
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
    if (options.outline && options.colour) {
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

  const draw = () => {
    if (!isShown) return;
    const colours = options.colour ? levelsOf(options.colour) : [],
      markers = options.marker ? levelsOf(options.marker) : [];
    const colourOf = valuesOf(options.colour),
      markerOf = valuesOf(options.marker);
    const level = (levels, value) =>
      Math.max(0, levels.indexOf(value === null ? "" : String(value)));
    const points = space.scores.map((scores, k) => ({
      x: scores[options.x],
      y: scores[options.y],
      number: space.specimens[k],
      group: colourOf ? level(colours, colourOf[k]) : 0,
      marker: markerOf ? level(markers, markerOf[k]) : colourOf ? level(colours, colourOf[k]) : 0,
      label: [store.project.names[space.specimens[k]], colourOf?.[k], markerOf?.[k]]
        .filter((word) => word !== undefined && word !== null && word !== "")
        .join(" · "),
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
      colours.length ? legend(colours, (k) => (options.marker ? 0 : k)) : null,
      markers.length ? h("p", { class: "soft" }, `Markers: ${markers.join(", ")}`) : null,
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
        if (["x", "y"].includes(name)) {
          cursor = [0, 0];
          requestShape();
        }
      };
    const named = [["", "nothing"], ...columns().map((name) => [name, name])];
    fill(
      controls,
      field("Across", select(components, options.x, set("x", Number))),
      field("Up", select(components, options.y, set("y", Number))),
      field("Colour", select(named, options.colour, set("colour"), { id: "colour" })),
      field("Marker", select(named, options.marker, set("marker"))),
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
    const words = columns().filter((name) => isGrouping(name));
    if (!words.length) return;
    const card = h("section", { class: "card" });
    below.append(card);
    let column = words.includes("group") ? "group" : words[0],
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
            post(path("/shape"), { column, group, magnification: options.magnification }),
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
    const card = h("section", { class: "card" }),
      place = h("div", {}),
      progress = h("div", {});
    below.append(card);
    const start = async () => {
      const allometry = await run(progress, { kind: "allometry" });
      if (!allometry || !isShown) return;
      const row = allometry.table[0],
        t = { value: 0.5 };
      const points = allometry.sizes.map((size, k) => ({
        x: Math.log(size),
        y: allometry.scores[k],
        number: allometry.specimens[k],
        label: store.project.names[allometry.specimens[k]],
        group: options.colour
          ? Math.max(0, levelsOf(options.colour).indexOf(String(valuesOf(options.colour)[k])))
          : 0,
      }));
      const slider = h("input", {
        type: "range",
        min: 0,
        max: 1,
        step: 0.02,
        value: "0.5",
        "aria-label": "Size",
        oninput: () => {
          t.value = Number(slider.value);
          shape.draw(blend(...allometry.shapes, t.value));
        },
      });
      const chart = scatter({
        points,
        xLabel: "log centroid size",
        yLabel: "regression score",
        lines: [allometry.ends.map((size, k) => [Math.log(size), allometry.line[k]])],
        isEqual: false,
        label: "Allometry",
      });
      fill(
        place,
        h(
          "p",
          {},
          `Size explains ${(100 * row.r_squared).toFixed(1)} % of the variation of shape (P = ${number(row.p, 3)}).`,
        ),
        chart,
        makeSaveButtons("allometry", () => chart.querySelector("svg")),
        field("Shape from the smallest to the largest", slider),
      );
    };
    fill(
      card,
      h("h2", {}, "Size and shape"),
      h("p", { class: "soft" }, "The regression of shape on log centroid size."),
      h("button", { id: "allometry", onclick: start }, "Compute"),
      progress,
      place,
    );
  }

  async function drawOutliers() {
    const card = h("section", { class: "card" }, h("h2", {}, "The oddest specimens"));
    below.append(card);
    try {
      const { rows } = await get(path(`/outliers?column=${encodeURIComponent(options.colour)}`));
      card.append(
        table(
          ["specimen", "distance", "", "oddest landmark"],
          rows.slice(0, 12).map((row) => [
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
            row.distance,
            row.outlier ? "outlier" : "",
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
    if (change === "theme") {
      draw();
      shape.redraw();
    }
  });
  return () => {
    isShown = false;
    stop();
    shape.stop();
  };
}
