// The controls change the state and ask for the plots that depend on it.

function onChoice(name, key, redraw) {
  for (const input of document.querySelectorAll(`input[name="${name}"]`)) {
    input.addEventListener("change", () => {
      state[key] = input.value;
      redraw.forEach(ask);
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
function onPick(id, key, first, redraw) {
  const picker = document.getElementById(`pick-${id}`);
  const select = picker.querySelector("select");
  if (first) select.append(option(-1, first));
  shapes.names.forEach((name, i) => select.append(option(i, name)));
  const take = () => {
    state[key] = Number(select.value);
    redraw.forEach(ask);
  };
  select.addEventListener("change", take);
  for (const button of picker.querySelectorAll("button")) {
    button.addEventListener("click", () => {
      const count = select.options.length;
      select.selectedIndex = (select.selectedIndex + Number(button.dataset.step) + count) % count;
      take();
    });
  }
}

function element(tag, more, ...children) {
  const made = Object.assign(document.createElement(tag), more);
  made.append(...children);
  return made;
}

function shapeList() {
  const list = document.getElementById("list");
  const items = shapes.names.map((name, i) => {
    const box = element("input", { type: "checkbox", checked: true });
    const swatch = element("span", { className: "swatch" });
    swatch.setAttribute("aria-hidden", "true");
    const button = (word, act) => {
      const made = element("button", { type: "button", className: word, textContent: word });
      made.setAttribute("aria-label", `${word} ${name}`);
      made.addEventListener("click", act);
      return made;
    };
    const label = element("label", { title: name }, box, swatch, element("span", { textContent: cut(name, 20) }));
    const item = element("li", {}, label, button("mark", () => mark(i)), button("only", () => choose([i])));
    item.dataset.shape = i;
    box.addEventListener("change", () => {
      if (box.checked) state.selected.add(i);
      else state.selected.delete(i);
      listShapes();
      ask("reference");
    });
    return { item, box, swatch, name: name.toLowerCase() };
  });
  list.querySelector("ul").append(...items.map(({ item }) => item));
  list.querySelector("input[type=search]").addEventListener("input", (event) => {
    const wanted = event.target.value.trim().toLowerCase();
    for (const { item, name } of items) item.hidden = !name.includes(wanted);
  });

  // all and none act on what the search has left
  const found = () => everyShape.filter((i) => !items[i].item.hidden);
  const choose = (wanted) => {
    state.selected = new Set(wanted);
    listShapes();
    ask("reference");
  };
  list.querySelector("[data-all]").addEventListener("click", () => choose(found()));
  list.querySelector("[data-none]").addEventListener("click", () => choose([]));
  const every = list.querySelector("[data-every]");
  every.addEventListener("click", () => {
    state.every = !state.every;
    listShapes();
    ["reference", "before", "after"].forEach(ask);
  });

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
    const thinned = stride > 1 && !alone(chosen);
    every.hidden = !thinned && !state.every;
    every.textContent = state.every ? "Draw fewer dots" : "Draw all landmarks";
    list.querySelector(".status").textContent =
      `${chosen.length} of ${shapes.names.length} shapes shown.` +
      (thinned ? ` One landmark in ${stride} is drawn of each.` : "");
  };
}

// one shape is marked in every picture that shows many
function mark(i) {
  state.marked = state.marked === i ? -1 : i;
  listShapes();
  for (const told of marking) told();
  MARKED.forEach(ask);
}
const MARKED = ["reference", "before", "after", "scatter", "ranking"];
const marking = [];

// a choice that stands in several places of the page
function onEverywhere(name, take) {
  const inputs = [...document.querySelectorAll(`[data-everywhere="${name}"]`)];
  for (const input of inputs) {
    input.addEventListener("change", () => {
      for (const other of inputs) {
        if (input.type === "checkbox") other.checked = input.checked;
        else other.value = input.value;
      }
      take(input);
    });
  }
  return inputs;
}

function onColumn() {
  const selects = onEverywhere("column", (select) => {
    state.column = Number(select.value);
    listShapes();
    MARKED.forEach(ask);
  });
  for (const select of selects) {
    select.append(...page.columns.map(({ name }, k) => option(k, name)), option(-1, "specimen"));
    select.value = state.column;
    select.closest("label").hidden = !page.columns.length;
  }
}

function onBox(key) {
  for (const input of onEverywhere(key, (box) => {
    state[key] = box.checked;
    SPATIAL.forEach(ask);
  })) {
    input.checked = state[key];
    input.closest("label").hidden = key === "links" && !shapes.edges;
    const stride = Math.ceil(shapes.landmarks.length / MOST_LABELS);
    if (key === "labels" && stride > 1) input.after(` one in ${stride} of the`);
  }
}

// the arrow keys turn a scene, + and − bring it closer
function onKeys(id) {
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
    Plotly.relayout(plot, { "scene.camera": turned(plot.layout.scene.camera, move) });
  });
}

function turned(camera, [aside, above, closer]) {
  const eye = [camera.eye.x, camera.eye.y, camera.eye.z];
  const length = Math.hypot(...eye);
  const forward = eye.map((x) => x / length);
  const up = [camera.up.x, camera.up.y, camera.up.z];
  const right = cross(up, forward);
  const size = Math.hypot(...right) || 1;
  const moved = forward.map((x, k) => x + (aside * right[k]) / size + above * up[k]);
  const scale = (length * closer) / Math.hypot(...moved);
  const [x, y, z] = moved.map((part) => part * scale);
  return { ...camera, eye: { x, y, z } };
}

// two scenes are seen from the same side
let turning = false;
function turnsWith(plot, twin) {
  plot.on("plotly_relayout", (change) => {
    const camera = change["scene.camera"];
    if (!camera || turning || !twin.layout?.scene) return;
    turning = true;
    Plotly.relayout(twin, { "scene.camera": camera }).finally(() => { turning = false; });
  });
}
