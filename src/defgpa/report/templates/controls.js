// The controls change the state and requestDraw for the plots that depend on it.

function connectChoice(name, key, redraw) {
  for (const input of document.querySelectorAll(`input[name="${name}"]`)) {
    input.addEventListener("change", () => {
      state[key] = input.value;
      redraw.forEach(requestDraw);
    });
  }
}

function option(value, text) {
  const made = document.createElement("option");
  made.value = value;
  made.textContent = text;
  return made;
}

// a list of shapes to step through; with "all shapes" where that makes sense
function connectPicker(id, key, first, redraw) {
  const picker = document.getElementById(`pick-${id}`);
  const select = picker.querySelector("select");
  if (first) select.append(option(-1, first));
  shapes.names.forEach((name, i) => select.append(option(i, name)));
  const selectShape = () => {
    state[key] = Number(select.value);
    redraw.forEach(requestDraw);
  };
  select.addEventListener("change", selectShape);
  for (const button of picker.querySelectorAll("button")) {
    button.addEventListener("click", () => {
      const count = select.options.length;
      select.selectedIndex = (select.selectedIndex + Number(button.dataset.step) + count) % count;
      selectShape();
    });
  }
}

function element(tag, more, ...children) {
  const made = Object.assign(document.createElement(tag), more);
  made.append(...children);
  return made;
}

// the list of specimens; of very many, those that the search finds first
const MAX_LISTED = 300;
function buildShapeList() {
  const list = document.getElementById("list");
  const search = list.querySelector("input[type=search]");
  const everything = list.querySelector("[data-every]");
  const lowerNames = shapes.names.map((name) => name.toLowerCase());
  const items = new Map();
  const matching = () => {
    const wanted = search.value.trim().toLowerCase();
    return allShapes.filter((i) => lowerNames[i].includes(wanted));
  };

  const makeItem = (i) => {
    const name = shapes.names[i];
    const box = element("input", { type: "checkbox", checked: true });
    const swatch = element("span", { className: "swatch" });
    swatch.setAttribute("aria-hidden", "true");
    const button = (word, act) => {
      const made = element("button", { type: "button", className: word, textContent: word });
      made.setAttribute("aria-label", `${word} ${name}`);
      made.addEventListener("click", act);
      return made;
    };
    const label = element("label", { title: name }, box, swatch, element("span", { textContent: shortNames[i] }));
    const item = element("li", {}, label, button("mark", () => mark(i)), button("only", () => choose([i])));
    item.dataset.shape = i;
    box.addEventListener("change", () => {
      if (box.checked) state.selected.add(i);
      else state.selected.delete(i);
      updateShapeList();
      requestDraw("reference");
    });
    return { item, box, swatch };
  };

  const choose = (wanted) => {
    state.selected = new Set(wanted);
    updateShapeList();
    requestDraw("reference");
  };
  // all and none act on what the search has left
  list.querySelector("[data-all]").addEventListener("click", () => choose(matching()));
  list.querySelector("[data-none]").addEventListener("click", () => choose([]));
  everything.addEventListener("click", () => {
    state.every = !state.every;
    updateShapeList();
    ["reference", "before", "after"].forEach(requestDraw);
  });

  const showMatching = () => {
    const listed = matching().slice(0, MAX_LISTED);
    for (const i of listed) if (!items.has(i)) items.set(i, makeItem(i));
    list.querySelector("ul").replaceChildren(...listed.map((i) => items.get(i).item));
  };
  search.addEventListener("input", () => {
    showMatching();
    updateShapeList();
  });
  showMatching();

  // the list as the state has it
  return () => {
    const chosen = [...state.selected].sort((a, b) => a - b);
    const { number } = colouring(chosen);
    items.forEach(({ item, box, swatch }, i) => {
      box.checked = state.selected.has(i);
      swatch.textContent = box.checked ? glyphOf(number(i)) : "";
      swatch.style.color = `var(--group-${Math.max(0, number(i)) % 7})`;
      item.classList.toggle("marked", i === state.marked);
    });
    const stride = strideOf(chosen.length);
    const isThinned = stride > 1 && !isSingleMesh(chosen) && !(showsSurfaces(chosen) && state.colour === "shape");
    everything.hidden = !isThinned && !state.every;
    everything.textContent = state.every ? "Draw fewer dots" : "Draw all landmarks";
    const nMatching = matching().length;
    list.querySelector(".status").textContent =
      `${withCommas(chosen.length)} of ${withCommas(shapes.names.length)} specimens shown.` +
      (isThinned ? ` One landmark in ${stride} is drawn of each.` : "") +
      (nMatching > MAX_LISTED ? ` The first ${MAX_LISTED} of ${withCommas(nMatching)} are listed; search for others.` : "");
  };
}

const withCommas = (count) => count.toLocaleString("en");

// one shape is marked in every picture that shows many
function mark(i) {
  state.marked = state.marked === i ? -1 : i;
  updateShapeList();
  for (const update of markListeners) update();
  MARKED.forEach(requestDraw);
}
const MARKED = ["reference", "before", "after", "scatter", "ranking"];
const markListeners = [];

// a choice that stands in several places of the page
function connectShared(name, take) {
  const inputs = [...document.querySelectorAll(`[data-everywhere="${name}"]`)];
  for (const input of inputs) {
    input.addEventListener("change", () => {
      for (const twin of inputs) {
        if (input.type === "checkbox") twin.checked = input.checked;
        else twin.value = input.value;
      }
      take(input);
    });
  }
  return inputs;
}

function connectColumns() {
  const selects = connectShared("column", (select) => {
    state.column = Number(select.value);
    updateShapeList();
    MARKED.forEach(requestDraw);
  });
  for (const select of selects) {
    select.append(...page.columns.map(({ name }, k) => option(k, name)), option(-1, "specimen"));
    select.value = state.column;
    select.closest("label").hidden = !page.columns.length;
  }
}

function connectCheckbox(key) {
  for (const input of connectShared(key, (box) => {
    state[key] = box.checked;
    SPATIAL.forEach(requestDraw);
  })) {
    input.checked = state[key];
    input.closest("label").hidden = key === "links" && !shapes.links;
    const stride = Math.ceil(shapes.landmarks.length / MAX_LABELS);
    if (key === "labels" && stride > 1) input.after(` one in ${stride} of the`);
  }
}

// the arrow keys turn a scene, + and − bring it closer
function connectKeys(id) {
  const plot = document.getElementById(`plot-${id}`);
  plot.tabIndex = 0;
  plot.addEventListener("keydown", (event) => {
    const move = {
      ArrowLeft: [-0.15, 0, 1], ArrowRight: [0.15, 0, 1],
      ArrowUp: [0, 0.15, 1], ArrowDown: [0, -0.15, 1],
      "+": [0, 0, 0.9], "=": [0, 0, 0.9], "-": [0, 0, 1.1],
    }[event.key];
    if (!move || !plot.layout?.scene) return;
    event.preventDefault();
    Plotly.relayout(plot, { "scene.camera": turnCamera(plot.layout.scene.camera, move) });
  });
}

function turnCamera(camera, [aside, above, closer]) {
  const eye = [camera.eye.x, camera.eye.y, camera.eye.z];
  const length = Math.hypot(...eye);
  const forward = eye.map((x) => x / length);
  const up = [camera.up.x, camera.up.y, camera.up.z];
  const right = cross(up, forward);
  const size = Math.hypot(...right) || 1;
  const moved = forward.map((x, k) => x + (aside * right[k]) / size + above * up[k]);
  const scale = (length * closer) / Math.hypot(...moved);
  const [x, y, z] = moved.map((coordinate) => coordinate * scale);
  return { ...camera, eye: { x, y, z } };
}

// two scenes are seen from the same side
let turning = false;
function turnTogether(plot, twin) {
  plot.on("plotly_relayout", (change) => {
    const camera = change["scene.camera"];
    if (!camera || turning || !twin.layout?.scene) return;
    turning = true;
    Plotly.relayout(twin, { "scene.camera": camera }).finally(() => { turning = false; });
  });
}

// every figure as a file of its own
function connectDownloads() {
  for (const button of document.querySelectorAll("[data-save]")) {
    button.addEventListener("click", () => {
      const plot = document.getElementById(`plot-${button.dataset.save}`);
      const { width, height } = plot.getBoundingClientRect();
      const format = button.dataset.format;
      Plotly.downloadImage(plot, {
        format, width, height, scale: format === "png" ? 3 : 1, filename: `${document.title} ${button.dataset.save}`,
      });
    });
  }
  for (const button of document.querySelectorAll("[data-copy]")) {
    button.addEventListener("click", async () => {
      await navigator.clipboard?.writeText(document.getElementById(button.dataset.copy).textContent);
      button.textContent = "Copied";
    });
  }
}
