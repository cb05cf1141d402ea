// A shape of the morphospace: in 2-D on its deformation grid, in 3-D with links and mesh.

import { post } from "./api.js";
import { h } from "./dom.js";
import { makeSaveButtons } from "./figures.js";
import { unpackMesh } from "./meshes.js";
import { path, store } from "./store.js";
import { makeView } from "./view.js";

/** Links between landmarks that are analysed, by their numbers in the analysis. */
export function getAnalysedLinks() {
  const numbers = new Map(store.project.included[1].map((j, k) => [j, k]));
  return store.project.links
    .filter(([a, b]) => numbers.has(a) && numbers.has(b))
    .map(([a, b]) => [numbers.get(a), numbers.get(b)]);
}

export class ShapeView {
  constructor() {
    this.picture = h("div", { class: "picture" });
    this.element = h("div", { class: "shape" }, this.picture);
    this.saveButtons = makeSaveButtons("shape", () => this.view);
    this.isFirst = true;
    this.withMesh = false;
  }

  async start() {
    this.view = await makeView(this.picture, store.project.dims);
    return this;
  }

  stop() {
    this.view.destroy();
  }

  /** Show a drawing of the server: points, mean, perhaps a grid. */
  draw({ points, mean, grid }, meshes = []) {
    this.last = [{ points, mean, grid }, meshes];
    this.view.show(
      {
        points,
        mean: grid ? null : mean,
        grid,
        meshes,
        links: getAnalysedLinks(),
        names: store.project.included[1].map((j) => store.project.landmarks[j]),
        bounds: mean,
        label: "The shape at this place",
      },
      !this.isFirst,
    );
    this.isFirst = false;
  }

  redraw() {
    if (this.last) this.draw(...this.last);
  }

  /** Ask for a shape and show it; of several requests only the last is shown. */
  async ask(body) {
    this.wanted = body;
    if (this.isAsking) return;
    this.isAsking = true;
    try {
      while (this.wanted) {
        const next = this.wanted;
        this.wanted = null;
        const drawn = await post(path("/shape"), next);
        const meshes = this.withMesh
          ? [unpackMesh(await post(path("/shape"), { ...next, mesh: true }))]
          : [];
        if (this.picture.isConnected) this.draw(drawn, meshes);
        this.answer = drawn;
      }
    } finally {
      this.isAsking = false;
    }
  }
}

/** Between two drawings, so far along. */
export function blend(a, b, t) {
  const mix = (p, q) => p.map((x, k) => (Array.isArray(x) ? mix(x, q[k]) : x + t * (q[k] - x)));
  return {
    points: mix(a.points, b.points),
    mean: a.mean,
    grid: a.grid ? mix(a.grid, b.grid) : undefined,
  };
}
