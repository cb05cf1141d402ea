// Tests: a formula, its table, comparisons of groups, effects as shapes; repeatability, symmetry.

import { chooseGrouping, levelsOf, nameFactor, quote } from "./columns.js";
import { field, fill, h, number, select, table } from "./dom.js";
import { runTest } from "./progress.js";
import { ShapeView, blend } from "./shape_view.js";
import { listen, nameState, store } from "./store.js";

const lastResults = new Map(); // the last result of each project

const nameAnalysis = () => nameState() + JSON.stringify(store.project.settings.method);

export async function showTest(main) {
  const { project } = store;
  const columns = [...new Set(["size", ...Object.keys(project.columns)])];
  const work = h("div", {}),
    resultBox = h("div", { class: "stack" }),
    asymmetryBox = h("div", {});
  const settings = { ...project.settings.test },
    grouping = chooseGrouping();
  let shape = null,
    pairwise = settings.pairwise,
    isShown = true;

  const input = h("input", {
    type: "text",
    id: "formula",
    value: settings.formula || `shape ~ ${grouping ? nameFactor(grouping) : "size"}`,
    spellcheck: "false",
    autocomplete: "off",
    "aria-autocomplete": "list",
    style: { width: "100%", fontFamily: "var(--mono)" },
  });
  const suggestions = h("ul", { role: "listbox", hidden: true, "aria-label": "Columns" });
  complete(input, suggestions, columns);
  const insert = (word) => {
    const at = input.selectionStart ?? input.value.length;
    input.setRangeText(word, at, input.selectionEnd ?? at, "end");
    input.focus();
  };
  const pairs = h("div", {});
  const drawPairs = () =>
    fill(
      pairs,
      field(
        "Compare groups of",
        select(
          [["", "none"], ...Object.keys(project.columns).map((name) => [name, name])],
          pairwise,
          (value) => {
            pairwise = value;
          },
          { id: "pairwise" },
        ),
      ),
    );
  drawPairs();
  const permutations = h("input", {
    type: "number",
    min: 99,
    max: 99999,
    value: String(settings.n_permutations),
    style: { width: "9ch" },
  });
  const seed = h("input", {
    type: "number",
    value: String(settings.seed),
    style: { width: "8ch" },
  });

  const start = async () => {
    const test = {
      formula: input.value.trim(),
      n_permutations: Math.round(Number(permutations.value)) || 999,
      seed: Math.round(Number(seed.value)) || 0,
      pairwise,
    };
    const state = nameAnalysis();
    const result = await runTest(work, "test", { test });
    if (!result || !isShown) return;
    lastResults.set(project.id, { result, state });
    draw(result);
  };

  const draw = async (result) => {
    const p = (value) =>
      value === null || value === undefined ? "–" : value < 0.001 ? "< 0.001" : number(value, 3);
    const rows = result.table.map((row) => [
      row.term,
      row.df,
      row.ss ?? null,
      row.ms ?? null,
      row.r_squared ?? null,
      row.f ?? null,
      row.z ?? null,
      p(row.p),
    ]);
    fill(
      resultBox,
      h(
        "section",
        { class: "card" },
        h("h2", {}, "Analysis of variance"),
        table(["term", "df", "SS", "MS", "R²", "F", "Z", "P"], rows, {
          id: "anova",
          "aria-label": "Analysis of variance",
        }),
        result.notes.map((note) => h("div", { class: "worry" }, h("p", {}, note))),
        h(
          "div",
          { class: "row", style: { marginTop: "10px" } },
          download("anova.csv", result.csv, "Table as CSV"),
        ),
      ),
    );
    if (result.pairwise) {
      const { groups, distances, p: probabilities } = result.pairwise;
      resultBox.append(
        h(
          "section",
          { class: "card" },
          h("h2", {}, "Differences between groups"),
          h("p", { class: "soft" }, "Distance of the mean shapes above, P below."),
          table(
            ["", ...groups],
            groups.map((name, i) => [
              name,
              ...groups.map((_, j) =>
                i === j ? "" : i < j ? number(distances[i][j], 3) : p(probabilities[i][j]),
              ),
            ]),
            { id: "pairs", "aria-label": "Differences between groups" },
          ),
          download("pairwise.csv", result.pairwise.csv, "Table as CSV"),
        ),
      );
    }
    if (result.effects.length) {
      const card = h("section", { class: "card" }),
        controls = h("div", { class: "row" });
      shape?.stop();
      shape = await new ShapeView().start();
      fill(card, h("h2", {}, "Effects as shapes"), controls, shape.element, shape.saveButtons);
      resultBox.append(card);
      drawEffect(controls, result.effects, 0);
    }
  };

  const drawEffect = (controls, effects, which) => {
    const effect = effects[which],
      last = effect.levels.length - 1;
    let [from, to, t] = [0, last, 1];
    const levels = effect.levels.map((level, k) => [
      k,
      typeof level === "number" ? number(level) : String(level),
    ]);
    const label = h("span", {});
    const show = () => {
      label.textContent = `Along the effect: ${t.toFixed(2)} (0 is ${levels[from][1]}, 1 is ${levels[to][1]})`;
      shape.draw(blend(effect.shapes[from], effect.shapes[to], t));
    };
    const slider = h("input", {
      type: "range",
      id: "effect",
      min: -1, // beyond both ends the effect is exaggerated
      max: 2,
      step: 0.02,
      value: "1",
      oninput: () => {
        t = Number(slider.value);
        show();
      },
    });
    fill(
      controls,
      field(
        "Effect of",
        select(
          effects.map(({ column }, k) => [k, column]),
          which,
          (value) => drawEffect(controls, effects, Number(value)),
        ),
      ),
      field(
        "From",
        select(levels, from, (value) => {
          from = Number(value);
          show();
        }),
      ),
      field(
        "To",
        select(levels, to, (value) => {
          to = Number(value);
          show();
        }),
      ),
      h("label", { class: "field", style: { flex: 1 } }, label, slider),
    );
    show();
  };

  main.append(
    h(
      "div",
      { class: "page" },
      h(
        "div",
        { class: "two wide-right" },
        h(
          "div",
          { class: "stack" },
          h(
            "section",
            { class: "card" },
            h("h2", {}, "What does shape depend on?"),
            h(
              "label",
              { class: "field" },
              h("span", {}, "Formula, as in R"),
              h("div", { class: "suggest" }, input, suggestions),
            ),
            h("p", {}),
            h(
              "div",
              { class: "chips", "aria-label": "Insert into the formula" },
              columns.map((name) => h("button", { onclick: () => insert(quote(name)) }, name)),
              ["+", "*", ":"].map((sign) =>
                h(
                  "button",
                  { onclick: () => insert(` ${sign} `), "aria-label": `insert ${sign}` },
                  sign,
                ),
              ),
              h("button", { onclick: () => insert("log(size)") }, "log(size)"),
            ),
            h("p", {}),
            h(
              "div",
              { class: "row" },
              pairs,
              field("Permutations", permutations),
              field("Seed", seed),
              h("button", { class: "primary", id: "run-test", onclick: start }, "Test"),
            ),
            work,
          ),
          makeAsymmetryForm(asymmetryBox),
        ),
        h("div", { class: "stack" }, resultBox, asymmetryBox),
      ),
    ),
  );
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && suggestions.hidden) start();
  });
  const memory = lastResults.get(project.id);
  if (memory?.state === nameAnalysis()) draw(memory.result);
  else
    fill(
      resultBox,
      h(
        "section",
        { class: "card" },
        h(
          "p",
          { class: "soft" },
          "The table, the comparisons and the effects appear here. P comes from permuting the residuals of reduced models.",
        ),
      ),
    );
  const stop = listen((change) => {
    if (change === "theme") shape?.redraw();
  });
  return () => {
    isShown = false;
    stop();
    shape?.stop();
  };
}

/** Repeatability and symmetry, where columns allow them; what comes of it is shown in a box. */
function makeAsymmetryForm(box) {
  const columns = Object.keys(store.project.columns);
  const { kind: lastKind, ...lastColumns } = store.project.settings.asymmetry;
  const count = store.project.included[0].length;
  const hasReplicates = (name) => levelsOf(name).length < count;
  const chosen = lastKind
    ? lastColumns
    : {
        individual:
          columns.find((name) => /indiv|^id$|specimen/i.test(name) && hasReplicates(name)) ?? "",
        side: columns.find((name) => /side/i.test(name)) ?? "",
        replicate: columns.find((name) => /rep|measure/i.test(name)) ?? "",
      };
  const work = h("div", {});
  const named = [["", "–"], ...columns.map((name) => [name, name])];
  const pick = (key, text) =>
    field(
      text,
      select(
        named,
        chosen[key],
        (value) => {
          chosen[key] = value;
        },
        { id: `column-${key}` },
      ),
    );
  const start = async (kind) => {
    const result = await runTest(work, kind, { asymmetry: { kind, ...chosen } });
    if (result)
      fill(
        box,
        h(
          "section",
          { class: "card" },
          h("h2", {}, kind === "symmetry" ? "Symmetry" : "Repeatability"),
          h("pre", { class: "whole", id: "asymmetry", tabindex: "0" }, result.text),
          (result.notes ?? []).map((note) => h("div", { class: "worry" }, h("p", {}, note))),
          download(`${kind}.csv`, result.csv, "Table as CSV"),
        ),
      );
  };
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "Repeatability and symmetry"),
    h(
      "p",
      { class: "soft" },
      "Repeatability needs a column that says which specimens are of the same individual; matching symmetry also one that says the side. Without columns, object symmetry finds mirrored pairs of landmarks by itself.",
    ),
    h(
      "div",
      { class: "row" },
      pick("individual", "Individual"),
      pick("side", "Side"),
      pick("replicate", "Replicate"),
    ),
    h(
      "div",
      { class: "row" },
      h("button", { id: "repeatability", onclick: () => start("repeatability") }, "Repeatability"),
      h("button", { id: "symmetry", onclick: () => start("symmetry") }, "Symmetry"),
    ),
    work,
  );
}

/** Complete the word at the cursor from a list. */
function complete(input, list, words) {
  let chosen = 0,
    suggested = [];
  const wordStart = () => input.value.slice(0, input.selectionStart).search(/[\w.]*$/);
  const draw = () => {
    list.hidden = !suggested.length;
    fill(
      list,
      suggested.map((word, k) =>
        h(
          "li",
          {
            role: "option",
            "aria-selected": String(k === chosen),
            onpointerdown: (event) => {
              event.preventDefault();
              insertSuggestion(word);
            },
          },
          word,
        ),
      ),
    );
  };
  const insertSuggestion = (word) => {
    input.setRangeText(quote(word), wordStart(), input.selectionStart, "end");
    suggested = [];
    draw();
  };
  input.addEventListener("input", () => {
    const prefix = input.value.slice(wordStart(), input.selectionStart).toLowerCase();
    suggested = prefix
      ? words.filter((word) => word.toLowerCase().startsWith(prefix) && word.toLowerCase() !== prefix)
      : [];
    chosen = 0;
    draw();
  });
  input.addEventListener("keydown", (event) => {
    if (!suggested.length) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      chosen = (chosen + (event.key === "ArrowDown" ? 1 : suggested.length - 1)) % suggested.length;
      draw();
    } else if (event.key === "Tab" || event.key === "Enter") {
      event.preventDefault();
      event.stopImmediatePropagation();
      insertSuggestion(suggested[chosen]);
    } else if (event.key === "Escape") {
      suggested = [];
      draw();
    }
  });
  input.addEventListener("blur", () => {
    suggested = [];
    draw();
  });
}

function download(name, text, label) {
  return h(
    "a",
    { href: URL.createObjectURL(new Blob([text], { type: "text/csv" })), download: name },
    label,
  );
}
