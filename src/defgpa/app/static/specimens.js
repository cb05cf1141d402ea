// Looking at specimens one by one, and correcting them.

import { get, getBuffer } from "./api.js";
import { checkbox, fill, h, number, showMessage, select } from "./dom.js";
import { makeSaveButtons } from "./figures.js";
import { hasCoordinates, rowsOf, transform } from "./geometry.js";
import { SpecimenList } from "./list.js";
import { unpackMesh } from "./meshes.js";
import {
  choose,
  edit,
  isIncluded,
  isLandmarkIncluded,
  listen,
  path,
  pointsOf,
  store,
} from "./store.js";
import { makeView } from "./view.js";

const NAMES = {
  mirrored: "mirrored",
  "exchanged-landmarks": "swapped",
  "misplaced-landmark": "misplaced",
  "far-shape": "far off",
  "other-size": "size",
  "repeated-shape": "copy",
  "unusual-landmark": "unusual",
  "unusual-specimen": "unusual",
};
const options = { names: false, links: true, mean: true, photograph: true, mesh: true };
const photographs = new Map(),
  meshes = new Map();

export async function showSpecimens(main, isEditing) {
  const page = new SpecimenPage(isEditing);
  main.append(page.element);
  await page.start();
  return () => page.stop();
}

class SpecimenPage {
  constructor(isEditing) {
    this.isEditing = isEditing;
    this.left = h("aside", {
      class: "side left",
      "aria-label": isEditing ? "Queue of findings" : "Specimens",
    });
    this.title = h("h2", {});
    this.tools = h("div", { class: "row tight middle", style: { margin: 0 } });
    this.picture = h("div", { class: "picture" });
    this.foot = h("div", { class: "foot" });
    this.right = h("aside", {
      class: "side right",
      "aria-label": isEditing ? "Corrections" : "About the specimen",
    });
    this.element = h(
      "div",
      { class: "specimens" },
      this.left,
      h(
        "section",
        { class: "stage" },
        h("div", { class: "head" }, this.title, this.tools),
        this.picture,
        this.foot,
      ),
      this.right,
    );
    this.linkStart = null;
    this.reason = "";
  }

  async start() {
    const handlers = {
      onpick: (landmark) => this.pick(landmark),
      onkey: (event) => this.onkey(event),
    };
    if (this.isEditing) handlers.onmove = (landmark, point) => this.move(landmark, point);
    this.view = await makeView(this.picture, store.project.dims, handlers);
    window.defgpaView = this.view;
    if (!this.isEditing) {
      this.list = new SpecimenList(this.left, (specimen) => choose(specimen, store.landmark));
      this.list.draw();
    }
    this.stopListening = listen((change) => this.onchange(change));
    this.keys = (event) => {
      if (!event.target.closest("input, select, textarea, canvas, dialog")) this.onkey(event);
    };
    document.addEventListener("keydown", this.keys);
    this.drawTools();
    if (this.isEditing) {
      this.chooseFirst();
      this.drawQueue();
    }
    await this.load(false);
  }

  /** Begin with the worst finding of the specimen that is shown, or else of all. */
  chooseFirst() {
    const queue = store.queue ?? [];
    const first = queue.find(({ specimen }) => specimen === store.specimen) ?? queue[0];
    if (!first || this.hasChosen) return;
    this.hasChosen = true;
    Object.assign(store, { specimen: first.specimen, landmark: first.landmarks[0] ?? null });
  }

  stop() {
    this.stopListening();
    document.removeEventListener("keydown", this.keys);
    this.view.destroy();
    this.list?.stop();
  }

  onchange(change) {
    if (change === "theme") {
      this.show(true);
      this.list?.draw();
    }
    if (change === "choice") {
      this.load(false);
      this.list?.mark();
      if (this.isEditing) this.drawQueue();
    }
    if (change === "edit") {
      if (store.edited?.number === store.specimen) this.keepPlace(store.edited.place);
      this.show(true);
      this.drawRight();
    }
    if (change === "superimposition") {
      if (this.placed === store.project.revision) {
        this.show(true);
        this.drawRight();
      } else this.load(true);
      this.list?.draw();
    }
    if (change === "project") {
      this.list?.draw();
      this.load(true);
    }
    if (change === "choice" || change === "edit") this.hasChosen = true;
    if (change === "queue" && this.isEditing && !this.hasChosen) {
      this.chooseFirst();
      this.load(false);
    }
    if (change === "sizes") {
      if (this.list?.key === "size") this.list.draw();
      this.drawRight();
    }
    if (change === "queue") {
      if (this.isEditing) this.drawQueue();
      this.drawRight();
      this.loadEstimates();
    }
  }

  /** Keep where the mean shape lies in the specimen, as of the revision that is shown. */
  keepPlace(place) {
    this.place = place && { ...place, mean: this.spread(place.mean) };
    this.placed = store.project.revision;
  }

  /** Ask where the mean shape lies in the specimen, and show it. */
  async load(keep) {
    const { specimen } = store;
    if (!keep) Object.assign(this, { place: null, placed: "", estimates: null });
    this.show(keep);
    this.drawRight();
    try {
      const { revision, place } = await get(path(`/specimen?number=${specimen}`));
      if (specimen !== store.specimen) return;
      this.keepPlace(place);
      this.placed = revision;
      await this.loadPicture(specimen);
    } catch (error) {
      showMessage(error.message, "error");
    }
    if (specimen === store.specimen && this.picture.isConnected) {
      this.show(keep || this.hasShown === specimen);
      this.hasShown = specimen;
      if (!keep && this.isEditing && store.landmark !== null) this.view.face?.(store.landmark);
      this.drawRight();
      if (!keep) this.loadEstimates();
    }
  }

  /** Ask where missing landmarks are likely to be; until it is known they stand in the mean shape. */
  async loadEstimates() {
    const { specimen, project } = store;
    if (!project.missing[specimen] || !this.place) return;
    try {
      const { revision, estimates } = await get(path(`/estimates?number=${specimen}`));
      if (specimen !== store.specimen || revision !== store.project.revision || !estimates) return;
      this.estimates = {
        points: this.spread(estimates.points),
        uncertainty: this.spread(estimates.uncertainty),
      };
      this.show(true);
    } catch {
      /* an edit has come meanwhile: asked again after it; or too little is there to estimate from */
    }
  }

  async loadPicture(specimen) {
    const { project } = store;
    const key = `${project.id}/${specimen}`;
    if (project.photographs[specimen] && !photographs.has(key)) {
      const image = new Image();
      image.src = path(`/photograph?number=${specimen}`);
      try {
        await image.decode();
        photographs.set(key, image);
      } catch {
        photographs.set(key, null);
      }
    }
    if (project.meshes[specimen] && !meshes.has(key)) {
      if (meshes.size > 12) meshes.delete(meshes.keys().next().value);
      meshes.set(key, unpackMesh(await getBuffer(path(`/mesh?number=${specimen}`))));
    }
  }

  /** Put landmarks of the analysis at their numbers in the files. */
  spread(rows) {
    const all = Array(store.project.landmarks.length).fill(null);
    store.project.included[1].forEach((j, k) => {
      all[j] = rows[k];
    });
    return all;
  }

  makeScene() {
    const { project, specimen, landmark } = store;
    const key = `${project.id}/${specimen}`,
      points = pointsOf(specimen);
    const item = this.item();
    const image = options.photograph ? photographs.get(key) : null;
    const scene = {
      points,
      names: project.landmarks,
      showNames: options.names,
      links: options.links ? project.links : [],
      selected: landmark,
      marked: item?.specimen === specimen ? item.landmarks : [],
      excluded: project.landmarks.map((_, j) => j).filter((j) => !isLandmarkIncluded(j)),
      label: `Specimen ${project.names[specimen]}`,
      isDown: Boolean(image) && project.info.format !== "tps",
      photograph: image
        ? {
            image,
            scale: project.scales[specimen] ?? 1,
            isUp: project.info.format === "tps",
            flip: project.reflected[specimen] === 1,
          }
        : null,
    };
    if (this.place) {
      const { mean } = this.place;
      if (options.mean) scene.mean = mean;
      scene.estimates = mean.map((point, j) => this.estimates?.points[j] ?? point);
      scene.uncertainty = this.estimates?.uncertainty;
      scene.cloud = landmark === null ? null : this.findCloud(landmark);
    }
    if (options.mesh && meshes.get(key)) scene.meshes = [meshes.get(key)];
    else if (options.mesh && project.faces && project.dims === 3)
      scene.meshes = [
        {
          vertices: store.points.slice(
            specimen * points.length * 3,
            (specimen + 1) * points.length * 3,
          ),
          faces: new Uint32Array(project.faces.flat()),
        },
      ];
    if (project.reflected[specimen] && scene.meshes) scene.meshes = [];
    return scene;
  }

  /** Where the other specimens have a landmark, in the coordinates of this one. */
  findCloud(landmark) {
    const { included, dims } = store.project;
    const k = included[1].indexOf(landmark);
    if (k < 0 || !store.superimposed) return null;
    const m = included[1].length;
    return included[0]
      .filter((i) => i !== store.specimen)
      .map((i) => {
        const [point] = rowsOf(store.superimposed, 1, dims, included[0].indexOf(i) * m + k);
        return hasCoordinates(point) ? transform(point, this.place) : null;
      });
  }

  show(keep) {
    if (!store.points) return;
    this.title.textContent = store.project.names[store.specimen];
    this.view.isLinking = this.isLinking;
    this.view.show(this.makeScene(), keep);
    const keys = [
      ["measured", "landmark"],
      store.project.missing[store.specimen] > 0 && ["missing", "missing, at its estimated place"],
      options.mean && [store.project.dims === 3 ? "mean dot" : "mean", "mean shape"],
      store.landmark !== null && ["cloud", "the same landmark in the others"],
    ].filter(Boolean);
    fill(
      this.foot,
      keys.map(([kind, text]) => h("span", { class: "key" }, h("i", { class: kind }), text)),
    );
  }

  drawTools() {
    const setOption = (name) => (value) => {
      options[name] = value;
      this.show(true);
    };
    const { project } = store;
    fill(
      this.tools,
      checkbox("Names", options.names, setOption("names")),
      checkbox("Links", options.links, setOption("links")),
      checkbox("Mean", options.mean, setOption("mean")),
      project.photographs.some(Boolean) &&
        checkbox("Photograph", options.photograph, setOption("photograph")),
      (project.meshes.some(Boolean) || project.faces) &&
        checkbox("Mesh", options.mesh, setOption("mesh")),
      h(
        "button",
        {
          class: "icon",
          title: "Fit the specimen into the view",
          "aria-label": "Fit the specimen into the view",
          onclick: () => this.view.reset(),
        },
        "⤢",
      ),
      makeSaveButtons("specimen", () => this.view),
    );
  }

  item() {
    if (!this.isEditing || !store.queue) return null;
    return (
      store.queue.find(
        (item) =>
          item.specimen === store.specimen &&
          (store.landmark === null ||
            !item.landmarks.length ||
            item.landmarks.includes(store.landmark)),
      ) ?? null
    );
  }

  drawQueue() {
    const items = store.queue;
    const current = this.item();
    fill(
      this.left,
      h(
        "div",
        { class: "head" },
        h("h2", { style: { margin: 0 } }, "Worth a look"),
        h(
          "small",
          {},
          items === null
            ? "Looking …"
            : items.length
              ? `${items.length}, the worst first`
              : "Nothing looks wrong any more.",
        ),
        select(
          store.project.names.map((name, i) => [i, name]),
          store.specimen,
          (value) => choose(Number(value)),
          { "aria-label": "Specimen", id: "specimen" },
        ),
      ),
      h(
        "ul",
        { class: "queue" },
        (items ?? []).map((item, k) =>
          h(
            "li",
            {},
            h(
              "button",
              {
                "aria-current": item === current ? "true" : null,
                "data-item": k,
                onclick: () => choose(item.specimen, item.landmarks[0] ?? null),
              },
              h(
                "span",
                { class: `kind${item.finding.startsWith("unusual") ? " mild" : ""}` },
                NAMES[item.finding] ?? item.finding,
              ),
              h("strong", {}, store.project.names[item.specimen]),
              h("small", {}, item.text),
            ),
          ),
        ),
      ),
    );
    this.left.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
  }

  drawRight() {
    fill(
      this.right,
      this.isEditing ? this.makeActions() : null,
      this.makeFacts(),
      this.makeLandmarks(),
      this.isEditing ? this.makeLog() : null,
    );
  }

  makeActions() {
    const { landmark, specimen, project } = store;
    const item = this.item();
    const isMissing = landmark !== null && !hasCoordinates(pointsOf(specimen)[landmark]);
    const button = (text, key, work, isOff = false, action = "") =>
      h(
        "button",
        {
          onclick: work,
          disabled: isOff,
          "data-action": action,
          class: item?.remedy === action && action ? "suggested" : "",
        },
        text,
        h("kbd", {}, key),
      );
    return h(
      "section",
      { "aria-label": "Corrections" },
      item
        ? h(
            "div",
            { class: "worry" },
            h("p", {}, h("strong", {}, project.names[item.specimen]), ` ${item.text}`),
          )
        : null,
      h(
        "p",
        { class: "soft" },
        landmark === null
          ? "Click a landmark to correct it; drag it to move it."
          : [
              "Landmark ",
              h("strong", {}, project.landmarks[landmark]),
              isMissing ? " (missing: drag the ring to place it)" : "",
            ],
      ),
      h(
        "div",
        { class: "actions" },
        button(
          "Mark missing",
          "M",
          () => this.act("set missing"),
          landmark === null || isMissing,
          "set missing",
        ),
        button(
          this.nameSwap(item),
          "S",
          () => this.act("swap"),
          landmark === null && !(item?.remedy === "swap"),
          "swap",
        ),
        button("Reflect specimen", "R", () => this.act("reflect"), false, "reflect"),
        isIncluded(specimen)
          ? button(
              "Exclude specimen",
              "X",
              () => this.act("exclude specimen"),
              false,
              "exclude specimen",
            )
          : button(
              "Include specimen",
              "X",
              () => this.act("include specimen"),
              false,
              "include specimen",
            ),
        landmark === null || isLandmarkIncluded(landmark)
          ? button(
              "Exclude landmark",
              "L",
              () => this.act("exclude landmark"),
              landmark === null,
              "exclude landmark",
            )
          : button(
              "Include landmark",
              "L",
              () => this.act("include landmark"),
              false,
              "include landmark",
            ),
        button("Accept as it is", "A", () => this.act("accept"), !item, "accept"),
        h(
          "button",
          {
            "aria-pressed": String(Boolean(this.isLinking)),
            class: this.isLinking ? "suggested" : "",
            "data-action": "link",
            onclick: () => {
              this.isLinking = !this.isLinking;
              this.linkStart = null;
              this.show(true);
              this.drawRight();
            },
          },
          this.isLinking ? "Stop drawing links" : "Draw links",
        ),
        h(
          "button",
          { onclick: () => this.next(1), disabled: !store.queue?.length, "data-action": "next" },
          "Next finding",
          h("kbd", {}, "J"),
        ),
      ),
      this.isLinking
        ? h(
            "p",
            { class: "soft" },
            "Click two landmarks to join them, or to remove the line between them.",
          )
        : null,
      h(
        "label",
        { class: "field", style: { marginTop: "10px" } },
        h("span", {}, "Reason (kept with the edit)"),
        h("input", {
          type: "text",
          value: this.reason,
          maxlength: 500,
          id: "reason",
          oninput: (event) => {
            this.reason = event.target.value;
          },
        }),
      ),
    );
  }

  /** Word the button that swaps: the pair of the finding, or what has to be clicked. */
  nameSwap(item) {
    if (this.swapStart !== undefined && this.swapStart !== null) return "… with which?";
    if (item?.remedy !== "swap") return "Swap with …";
    return `Swap ${item.landmarks.map((j) => store.project.landmarks[j]).join(" and ")}`;
  }

  makeFacts() {
    const { project, specimen } = store;
    const facts = [
      ["number", `${specimen + 1} of ${project.names.length}`],
      store.sizes && ["centroid size", number(store.sizes[specimen])],
      store.distances &&
        isIncluded(specimen) && [
          "distance from the mean",
          number(store.distances[project.included[0].indexOf(specimen)]),
        ],
      ["missing landmarks", project.missing[specimen]],
      !isIncluded(specimen) && ["excluded", "yes"],
      ...Object.entries(project.columns).map(([name, values]) => [name, values[specimen] ?? "–"]),
    ].filter(Boolean);
    return h(
      "section",
      {},
      h("h3", {}, "About the specimen"),
      h(
        "dl",
        { class: "facts" },
        facts.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, String(value))]),
      ),
      !this.isEditing &&
        h(
          "div",
          { class: "row", style: { marginTop: "12px" } },
          h(
            "button",
            {
              onclick: () =>
                this.act(isIncluded(specimen) ? "exclude specimen" : "include specimen"),
            },
            isIncluded(specimen) ? "Exclude" : "Include again",
          ),
        ),
    );
  }

  makeLandmarks() {
    const { project, specimen, landmark } = store;
    const points = pointsOf(specimen);
    return h(
      "section",
      {},
      h(
        "label",
        { class: "field" },
        h("span", {}, "Landmark"),
        select(
          [
            ["", "none selected"],
            ...project.landmarks.map((name, j) => [
              j,
              name +
                (hasCoordinates(points[j]) ? "" : " (missing)") +
                (isLandmarkIncluded(j) ? "" : " (excluded)"),
            ]),
          ],
          landmark ?? "",
          (value) => this.pick(value === "" ? null : Number(value)),
          { id: "landmark" },
        ),
      ),
      landmark !== null &&
        hasCoordinates(points[landmark]) &&
        h("small", {}, `at (${points[landmark].map((x) => number(x)).join(", ")})`),
    );
  }

  makeLog() {
    const { edits, undone } = store.project.log;
    return h(
      "section",
      {},
      h("h3", {}, `Edits (${edits.length})`),
      edits.length + undone.length
        ? h(
            "ol",
            { class: "log", reversed: true },
            [...undone].map((text) => h("li", { class: "undone" }, text)),
            [...edits].reverse().map(({ text }) => h("li", {}, text)),
          )
        : h(
            "p",
            { class: "soft" },
            "None. The original files are never changed: edits are kept beside them, with undo and redo.",
          ),
    );
  }

  pick(landmark) {
    if (this.isLinking && landmark !== null) {
      this.link(landmark);
      return;
    }
    if (
      this.swapStart !== undefined &&
      this.swapStart !== null &&
      landmark !== null &&
      landmark !== this.swapStart
    ) {
      const pair = [this.swapStart, landmark];
      this.swapStart = null;
      this.send({ action: "swap", specimen: store.specimen, landmarks: pair });
      return;
    }
    store.landmark = landmark;
    this.show(true);
    this.drawRight();
  }

  link(landmark) {
    if (this.linkStart === null) {
      this.linkStart = landmark;
      store.landmark = landmark;
      this.show(true);
      return;
    }
    const pair = [this.linkStart, landmark];
    this.linkStart = null;
    if (pair[0] === pair[1]) return;
    const isLinked = store.project.links.some(
      (link) => link.includes(pair[0]) && link.includes(pair[1]),
    );
    this.send({ action: isLinked ? "unlink" : "link", landmarks: pair });
  }

  move(landmark, point) {
    this.send({ action: "move", specimen: store.specimen, landmarks: [landmark], to: point });
  }

  send(change) {
    const item = this.item();
    const finding = change.specimen === store.specimen && item ? item.finding : "";
    const sent = edit({
      reason: this.reason,
      ...(finding && !change.finding ? { finding } : {}),
      ...change,
    });
    this.reason = "";
    return sent;
  }

  async act(action) {
    const { specimen, landmark } = store;
    const item = this.item();
    if (action === "swap") {
      if (item?.remedy === "swap") await this.send({ action, specimen, landmarks: item.landmarks });
      else {
        this.swapStart = landmark;
        this.drawRight();
      }
    } else if (action === "accept") {
      if (item) {
        await this.send({
          action,
          specimen: item.specimen,
          landmarks: item.landmarks,
          finding: item.finding,
        });
      }
    } else if (action.endsWith("landmark")) await this.send({ action, landmarks: [landmark] });
    else if (action === "set missing") await this.send({ action, specimen, landmarks: [landmark] });
    else await this.send({ action, specimen });
  }

  next(step) {
    if (!this.isEditing) {
      const order = this.list.order;
      const k = order.indexOf(findSpecimenIn(order, store.specimen)) + step;
      if (order[k] !== undefined) choose(order[k], store.landmark);
      return;
    }
    const items = store.queue ?? [];
    if (!items.length) return;
    const k = items.indexOf(this.item());
    const item = items[(k + step + items.length) % items.length];
    choose(item.specimen, item.landmarks[0] ?? null);
  }

  onkey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const key = event.key.toLowerCase();
    const { landmark, project } = store;
    const m = project.landmarks.length;
    const keys = {
      j: () => this.next(1),
      k: () => this.next(-1),
      "]": () => this.pick(((landmark ?? -1) + 1) % m),
      "[": () => this.pick(((landmark ?? 0) - 1 + m) % m),
      escape: () => {
        this.swapStart = null;
        this.isLinking = false;
        this.pick(null);
      },
    };
    if (this.isEditing) {
      const hasLandmark = landmark !== null;
      Object.assign(keys, {
        m: () => hasLandmark && this.act("set missing"),
        delete: () => hasLandmark && this.act("set missing"),
        s: () => (hasLandmark || this.item()?.remedy === "swap") && this.act("swap"),
        r: () => this.act("reflect"),
        x: () => this.act(isIncluded(store.specimen) ? "exclude specimen" : "include specimen"),
        l: () =>
          hasLandmark &&
          this.act(isLandmarkIncluded(landmark) ? "exclude landmark" : "include landmark"),
        a: () => this.act("accept"),
      });
    }
    if (keys[key]) {
      event.preventDefault();
      keys[key]();
    }
  }
}

const findSpecimenIn = (order, specimen) => (order.includes(specimen) ? specimen : order[0]);
