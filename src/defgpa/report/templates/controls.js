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
    const only = element("button", { type: "button", className: "only", textContent: "only" });
    only.setAttribute("aria-label", `Show only ${name}`);
    const label = element("label", { title: name }, box, swatch, element("span", { textContent: name }));
    const item = element("li", {}, label, only);
    item.dataset.shape = i;
    box.addEventListener("change", () => {
      if (box.checked) state.selected.add(i);
      else state.selected.delete(i);
      chosenChanged();
    });
    only.addEventListener("click", () => choose([i]));
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
    chosenChanged();
  };
  list.querySelector("[data-all]").addEventListener("click", () => choose(found()));
  list.querySelector("[data-none]").addEventListener("click", () => choose([]));

  function chosenChanged() {
    const chosen = [...state.selected].sort((a, b) => a - b);
    const { number } = colouring(chosen);
    items.forEach(({ box, swatch }, i) => {
      box.checked = state.selected.has(i);
      swatch.style.background = box.checked ? `var(--group-${number(i) % 7})` : "transparent";
    });
    list.querySelector(".status").textContent = chosenInWords(chosen.length);
    ask("reference");
  }
  chosenChanged();
}

function chosenInWords(count) {
  const stride = strideOf(count);
  const thinned = stride > 1 && !(count === 1 && shapes.faces)
    ? ` One landmark in ${stride} is drawn of each; fewer shapes are drawn with more of them.`
    : "";
  return `${count} of ${shapes.names.length} shapes shown.${thinned}`;
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
