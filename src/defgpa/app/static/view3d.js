// One specimen in space: mesh, links, landmarks, where the others have them. Turned by dragging.

import * as THREE from "./three/three.module.min.js";
import { h, oncePerFrame, token } from "./dom.js";
import { wrapCanvas } from "./figures.js";
import { box, hasCoordinates } from "./geometry.js";
import { decimate, findBounds, findReach } from "./meshes.js";

const REACH = 14; // pixels within which a landmark is picked
const MAX_FACES_MOVING = 24_000; // drawn while the view is turned on a slow machine, all meshes
const MAX_FACES_RESTING = 1_000_000; // drawn while it rests
const MARGIN = 1.12; // half of the view, in sizes of what is shown
const SHARPEN_DELAY = 250; // milliseconds without movement until the view is drawn sharply
const SLOW_FRAME = 45; // milliseconds

/** Whether the browser computes pictures without a graphics card: then smooth edges are too dear. */
function isSoftware() {
  const context = document.createElement("canvas").getContext("webgl2");
  const facts = context?.getExtension("WEBGL_debug_renderer_info");
  const name = facts ? context.getParameter(facts.UNMASKED_RENDERER_WEBGL) : "";
  context?.getExtension("WEBGL_lose_context")?.loseContext();
  return /swiftshader|llvmpipe|software/i.test(name);
}

const isVector = (row) => hasCoordinates(row) && row.length === 3;
const vector = (row) => new THREE.Vector3(row[0], row[1], row[2]);

/** The same manners as View2D; a scene may have meshes: [{vertices, faces}]. */
export class View3D {
  constructor(container, handlers = {}) {
    this.handlers = handlers;
    this.canvas = h("canvas", {
      class: "view",
      tabindex: "0",
      role: "img",
      "aria-label": "Specimen",
    });
    this.labels = h("div", { class: "labels", "aria-hidden": "true" });
    this.note = h("p", { class: "note", role: "status", hidden: true });
    container.replaceChildren(this.canvas, this.labels, this.note);
    this.isSlow = isSoftware();
    try {
      this.renderer = new THREE.WebGLRenderer({
        canvas: this.canvas,
        antialias: !this.isSlow,
        alpha: true,
      });
    } catch {
      container.replaceChildren(
        h(
          "p",
          { class: "empty" },
          "This browser cannot draw in 3-D (WebGL is off). Everything else works; try another browser for the pictures.",
        ),
      );
      this.isBroken = true;
      return;
    }
    this.camera = new THREE.OrthographicCamera(-1, 1, 1, -1, -100, 100);
    this.camera.position.set(0, 0, 10);
    this.world = new THREE.Scene();
    this.light = new THREE.DirectionalLight(0xffffff, 2.2);
    this.light.position.set(0.4, 0.8, 3);
    this.world.add(new THREE.HemisphereLight(0xffffff, 0x888888, 1.6), this.light);
    this.turned = new THREE.Group(); // turned by the user
    this.content = new THREE.Group(); // brought to the middle and to unit size
    this.surfaces = new THREE.Group(); // of meshes, which are built only when they change
    this.marks = new THREE.Group(); // landmarks and links
    this.content.add(this.surfaces, this.marks);
    this.sphere = new THREE.SphereGeometry(1, 12, 8);
    this.materials = new Map();
    this.turned.add(this.content);
    this.world.add(this.turned);
    this.zoom = 1;
    this.shift = [0, 0];
    this.draw = oncePerFrame(() => this.paint());
    this.observer = new ResizeObserver(this.draw);
    this.observer.observe(this.canvas);
    this.scene = { points: [] };
    this.turn();
    this.listen();
  }

  destroy() {
    this.observer?.disconnect();
    clearTimeout(this.restTimer);
    if (this.surfaces) {
      this.empty(this.surfaces);
      this.empty(this.marks);
      this.sphere.dispose();
      for (const material of this.materials.values()) {
        material.map?.dispose();
        material.dispose();
      }
    }
    this.renderer?.dispose();
    this.renderer?.forceContextLoss();
    this.canvas.remove();
  }

  turn() {
    this.turned.quaternion.setFromEuler(new THREE.Euler(-1.15, 0.35, 0.25));
  }

  reset() {
    this.zoom = 1;
    this.shift = [0, 0];
    this.turn();
    this.draw();
  }

  show(scene, keep = false) {
    if (this.isBroken) return;
    this.scene = scene;
    this.dragged = null;
    if (!keep || !this.frame) this.frameScene();
    if (!keep) {
      this.zoom = 1;
      this.shift = [0, 0];
    }
    this.canvas.setAttribute("aria-label", scene.label ?? "Specimen");
    this.build();
    this.draw();
  }

  /** Find the middle and the size of what is shown, meshes and all. */
  frameScene() {
    const { points, mean, estimates, bounds, meshes = [] } = this.scene;
    const places = [points, mean, estimates, bounds].flatMap((rows) => rows ?? []).filter(isVector);
    this.frame = box([...places, ...meshes.flatMap(findBounds)]);
    if (this.frame.isEmpty) return;
    const { low, high } = this.frame;
    this.middle = low.map((x, k) => (x + high[k]) / 2);
    const distances = places.map((point) => Math.hypot(...point.map((x, k) => x - this.middle[k])));
    const reaches = meshes.map((mesh) => findReach(mesh, this.middle));
    this.size = [...distances, ...reaches].reduce((largest, x) => Math.max(largest, x), 0) || 1;
  }

  /** Turn the view until a landmark is in front; where there is no mesh, all can be seen anyway. */
  face(landmark) {
    const point = this.place(landmark);
    if (!point || !this.surfaces?.children.length) return;
    const outwards = new THREE.Vector3(...point.map((x, k) => x - this.middle[k])).normalize();
    const direction = outwards.clone().applyQuaternion(this.turned.quaternion);
    if (direction.z > 0.5 || !direction.lengthSq()) return;
    const target = new THREE.Vector3(direction.x, direction.y, 0).normalize().multiplyScalar(0.35).setZ(0.94);
    const turn = new THREE.Quaternion().setFromUnitVectors(direction, target.normalize());
    this.turned.quaternion.premultiply(turn);
    this.draw();
  }

  build() {
    this.empty(this.marks);
    if (this.frame.isEmpty) return;
    this.content.scale.setScalar(1 / this.size);
    this.content.position.set(...this.middle.map((x) => -x / this.size));
    const {
      points,
      mean,
      cloud,
      ghosts,
      links,
      selected,
      marked = [],
      excluded = [],
      meshes = [],
    } = this.scene;
    this.buildSurfaces(meshes);
    const radius = this.findRadius(points.length, meshes.length > 0);
    const places = points.map((_, j) => this.place(j));
    const groups = { accent: [], mark: [], unseen: [] };
    places.forEach((point, j) => {
      if (!point || excluded.includes(j)) return;
      const kind = !hasCoordinates(points[j])
        ? "unseen"
        : j === selected || marked.includes(j)
          ? "mark"
          : "accent";
      groups[kind].push([point, j === selected ? radius * 1.5 : radius]);
    });
    for (const name of ["accent", "mark"]) this.addSpheres(groups[name], token(`--${name}`));
    if (meshes.length)
      for (const name of ["accent", "mark"]) {
        const points = groups[name].map(([point]) => point); // those behind a mesh shine through
        this.addDots(points, token(`--${name}`), 0.45, 9, false);
      }
    this.addRings(
      groups.unseen.map(([point]) => point),
      token("--unseen"),
    );
    const { uncertainty } = this.scene;
    if (uncertainty) {
      const halos = [];
      places.forEach((point, j) => {
        if (point && !hasCoordinates(points[j]) && uncertainty[j])
          halos.push([point, Math.max(uncertainty[j], radius)]);
      });
      this.addSpheres(halos, token("--unseen"), 0.15);
    }
    if (mean) this.addDots(mean, token("--faint"), 0.8, 7);
    if (cloud) this.addDots(cloud, token("--mark"), 0.45, 6);
    if (ghosts) this.addDots(ghosts, token("--accent"), 0.4, 5);
    this.addLinks(links ?? [], places, token("--link"));
    if (meshes.length) this.addLinks(links ?? [], places, token("--link"), 0.75, false);
    if (mean) this.addLinks(links ?? [], mean, token("--faint"), 0.45);
  }

  /** Find the radius of landmarks that are as large in a small view as in a large one. */
  findRadius(count, hasMesh) {
    const pixels = count > 150 ? 3.5 : hasMesh ? 8 : 6;
    const extent = Math.min(this.canvas.clientWidth, this.canvas.clientHeight) || 600;
    return (this.size * 2 * MARGIN * pixels) / extent;
  }

  place(landmark) {
    if (this.dragged?.landmark === landmark) return this.dragged.point;
    const point = this.scene.points[landmark];
    if (hasCoordinates(point)) return point;
    const estimate = this.scene.estimates?.[landmark];
    return hasCoordinates(estimate) ? estimate : null;
  }

  /** Build the surfaces of meshes that are not there yet, each sharp and coarse. */
  buildSurfaces(meshes) {
    const colour = token("--surface");
    const isSame =
      this.surfaceColour === colour &&
      this.builtMeshes?.length === meshes.length &&
      meshes.every((mesh, k) => mesh === this.builtMeshes[k]);
    if (isSame) return;
    this.empty(this.surfaces);
    Object.assign(this, { builtMeshes: [...meshes], surfaceColour: colour });
    for (const mesh of meshes) {
      if (mesh.faces.length) this.surfaces.add(...this.makeSurface(mesh, meshes.length));
      else this.surfaces.add(this.makeCloud(mesh, colour));
    }
    this.showSurfaces(this.isCoarse ?? false);
  }

  /** Make the sharp and the coarse surface of a mesh; they share their vertices. */
  makeSurface(mesh, meshCount) {
    const sharp = new THREE.BufferGeometry();
    sharp.setAttribute("position", new THREE.BufferAttribute(mesh.vertices, 3));
    sharp.setIndex(new THREE.BufferAttribute(mesh.faces, 1));
    sharp.computeVertexNormals();
    const faces = decimate(mesh, MAX_FACES_RESTING / meshCount);
    if (faces.length < mesh.faces.length) sharp.setIndex(new THREE.BufferAttribute(faces, 1));
    const coarse = new THREE.BufferGeometry();
    for (const name of ["position", "normal"]) coarse.setAttribute(name, sharp.getAttribute(name));
    const fewer = decimate(mesh, MAX_FACES_MOVING / meshCount);
    coarse.setIndex(new THREE.BufferAttribute(fewer, 1));
    const colour = token("--surface");
    const material = this.useMaterial(
      `surface ${colour}`,
      () => new THREE.MeshLambertMaterial({ color: colour, side: THREE.DoubleSide }),
    );
    return [sharp, coarse].map((geometry, k) => {
      const surface = new THREE.Mesh(geometry, material);
      Object.assign(surface.userData, { isCoarse: k === 1, faceCount: mesh.faces.length / 3 });
      return surface;
    });
  }

  /** Make the points of a mesh without faces. */
  makeCloud({ vertices }, colour) {
    const geometry = new THREE.BufferGeometry();
    geometry.setAttribute("position", new THREE.BufferAttribute(vertices, 3));
    const material = this.useMaterial(
      `cloud ${colour}`,
      () => new THREE.PointsMaterial({ color: colour, size: 2, sizeAttenuation: false }),
    );
    return new THREE.Points(geometry, material);
  }

  /** Show the sharp or the coarse surfaces, and say so where faces are left out. */
  showSurfaces(isCoarse) {
    let drawn = 0;
    let total = 0;
    for (const surface of this.surfaces.children) {
      if (!surface.isMesh) continue;
      surface.visible = surface.userData.isCoarse === isCoarse;
      if (!surface.visible) continue;
      drawn += surface.geometry.index.count / 3;
      total += surface.userData.faceCount;
    }
    this.note.hidden = drawn === total;
    this.note.textContent = `${drawn.toLocaleString("en")} of ${total.toLocaleString("en")} triangles are drawn${isCoarse ? " while turning" : ""}.`;
  }

  /** Add hollow marks for landmarks that are missing, as large on the screen as the others. */
  addRings(points, colour) {
    if (!points.length) return;
    const material = this.useMaterial(`ring ${colour}`, () => makeRingMaterial(colour));
    const geometry = new THREE.BufferGeometry().setFromPoints(points.map(vector));
    this.marks.add(new THREE.Points(geometry, material));
  }

  /** Add spheres, [place, radius] each. */
  addSpheres(spheres, colour, opacity = 1) {
    if (!spheres.length) return;
    const material = this.useMaterial(
      `sphere ${colour} ${opacity}`,
      () =>
        new THREE.MeshLambertMaterial({
          color: colour,
          transparent: opacity < 1,
          opacity,
          depthWrite: opacity === 1,
        }),
    );
    const instances = new THREE.InstancedMesh(this.sphere, material, spheres.length);
    const matrix = new THREE.Matrix4();
    spheres.forEach(([point, radius], k) =>
      instances.setMatrixAt(k, matrix.makeScale(radius, radius, radius).setPosition(...point)),
    );
    this.marks.add(instances);
  }

  /** Add discs of one size on the screen, cheap where there are thousands; hidden by meshes or not. */
  addDots(points, colour, opacity, size, isHidden = true) {
    const places = points.filter(isVector);
    if (!places.length) return;
    const material = this.useMaterial(`dot ${colour} ${opacity} ${size} ${isHidden}`, () =>
      makeDotMaterial(colour, opacity, size, isHidden),
    );
    const geometry = new THREE.BufferGeometry().setFromPoints(places.map(vector));
    this.marks.add(new THREE.Points(geometry, material));
  }

  /** Add lines between landmarks, hidden by meshes or not. */
  addLinks(links, places, colour, opacity = 1, isHidden = true) {
    const ends = links
      .filter(([a, b]) => isVector(places[a]) && isVector(places[b]))
      .flatMap(([a, b]) => [vector(places[a]), vector(places[b])]);
    if (!ends.length) return;
    const geometry = new THREE.BufferGeometry().setFromPoints(ends);
    const material = this.useMaterial(
      `line ${colour} ${opacity} ${isHidden}`,
      () =>
        new THREE.LineBasicMaterial({
          color: colour,
          transparent: true,
          opacity,
          depthTest: isHidden,
        }),
    );
    this.marks.add(new THREE.LineSegments(geometry, material));
  }

  /** Return the material of a name, made once: compiling a shader takes longer than a frame. */
  useMaterial(name, make) {
    if (!this.materials.has(name)) this.materials.set(name, make());
    return this.materials.get(name);
  }

  /** Remove everything from a group; materials and the sphere are used again. */
  empty(group) {
    for (const object of [...group.children]) {
      if (object.geometry !== this.sphere) object.geometry.dispose();
      object.dispose?.();
    }
    group.clear();
  }

  paint() {
    if (this.isBroken || !this.canvas.isConnected || !this.canvas.clientWidth) return;
    const width = this.canvas.clientWidth,
      height = this.canvas.clientHeight;
    const isCoarse = Boolean(this.isMoving && this.isSlow && this.surfaces.children.length);
    this.setSharpness(width, height, isCoarse);
    const start = performance.now();
    const reach = MARGIN / this.zoom,
      aspect = width / height;
    const [rx, ry] = aspect > 1 ? [reach * aspect, reach] : [reach, reach / aspect];
    const dx = (-this.shift[0] / width) * 2 * rx,
      dy = (this.shift[1] / height) * 2 * ry;
    Object.assign(this.camera, { left: -rx + dx, right: rx + dx, top: ry + dy, bottom: -ry + dy });
    this.camera.updateProjectionMatrix();
    this.renderer.render(this.world, this.camera);
    if (this.isMoving) this.watchSpeed(start);
    this.paintLabels(width, height);
    this.frames = (this.frames ?? 0) + 1;
  }

  /** Return the picture as SVG, its pixels inside. */
  writeSvg() {
    this.paint();
    return wrapCanvas(this.canvas);
  }

  /** Set the size in pixels, half of it while a slow machine turns a mesh; only where it changes. */
  setSharpness(width, height, isCoarse) {
    const ratio = Math.min(window.devicePixelRatio || 1, 2) / (isCoarse ? 2 : 1);
    const sharpness = `${width} ${height} ${ratio}`;
    if (sharpness === this.sharpness) return;
    Object.assign(this, { sharpness, isCoarse });
    this.renderer.setPixelRatio(ratio);
    this.renderer.setSize(width, height, false);
    this.showSurfaces(isCoarse);
  }

  /** Remember whether frames take long, and draw sharply once nothing has moved for a while. */
  watchSpeed(start) {
    const now = performance.now(),
      between = now - (this.lastFrame ?? start);
    this.lastFrame = now;
    if (between < 1000) this.isSlow = this.isSlow || between > SLOW_FRAME;
    clearTimeout(this.restTimer);
    this.restTimer = setTimeout(() => {
      this.isMoving = false;
      this.lastFrame = undefined;
      this.draw();
    }, SHARPEN_DELAY);
  }

  project(point) {
    this.turned.updateMatrixWorld(true);
    const place = this.content.localToWorld(vector(point)).project(this.camera);
    return [
      ((place.x + 1) / 2) * this.canvas.clientWidth,
      ((1 - place.y) / 2) * this.canvas.clientHeight,
      place.z,
    ];
  }

  /** The point in the plane of the view through a point, below a place on the screen. */
  unproject([x, y], through) {
    const depth = this.content.localToWorld(vector(through)).project(this.camera).z;
    const place = new THREE.Vector3(
      (x / this.canvas.clientWidth) * 2 - 1,
      1 - (y / this.canvas.clientHeight) * 2,
      depth,
    );
    const point = this.content.worldToLocal(place.unproject(this.camera));
    return [point.x, point.y, point.z];
  }

  /** The point of the mesh below a place on the screen, if there is one. */
  snap([x, y]) {
    const meshes = this.surfaces.children.filter(
      (surface) => surface.isMesh && !surface.userData.isCoarse,
    );
    if (!meshes.length) return null;
    const caster = new THREE.Raycaster();
    caster.setFromCamera(
      new THREE.Vector2(
        (x / this.canvas.clientWidth) * 2 - 1,
        1 - (y / this.canvas.clientHeight) * 2,
      ),
      this.camera,
    );
    const [hit] = caster.intersectObjects(meshes, false);
    if (!hit) return null;
    const point = this.content.worldToLocal(hit.point.clone());
    return [point.x, point.y, point.z];
  }

  paintLabels(width, height) {
    const { names, showNames, selected, marked = [] } = this.scene;
    const shown = names
      ? names
          .map((_, j) => j)
          .filter((j) => (showNames || j === selected || marked.includes(j)) && this.place(j))
      : [];
    while (this.labels.children.length > shown.length) this.labels.lastChild.remove();
    shown.forEach((j, k) => {
      const label = this.labels.children[k] ?? this.labels.appendChild(h("span"));
      const [x, y] = this.project(this.place(j));
      label.textContent = names[j] + (hasCoordinates(this.scene.points[j]) ? "" : " (missing)");
      label.style.transform = `translate(${x + 9}px, ${y - 20}px)`;
      label.hidden = x < 0 || y < 0 || x > width || y > height;
    });
  }

  nearest([x, y]) {
    let best = null,
      score = Infinity;
    this.scene.points.forEach((_, j) => {
      const point = this.place(j);
      if (!point) return;
      const [px, py, pz] = this.project(point);
      const distance = Math.hypot(px - x, py - y);
      if (distance < REACH && distance + 20 * pz < score) {
        score = distance + 20 * pz;
        best = j;
      } // in front of others
    });
    return best;
  }

  listen() {
    const where = (event) => {
      const area = this.canvas.getBoundingClientRect();
      return [event.clientX - area.left, event.clientY - area.top];
    };
    let start = null;
    this.canvas.addEventListener("pointerdown", (event) => {
      const at = where(event),
        landmark = this.nearest(at);
      start = {
        at,
        last: at,
        landmark,
        isMoved: false,
        isPan: event.shiftKey || event.button === 1 || event.button === 2,
      };
      this.canvas.setPointerCapture(event.pointerId);
      if (landmark !== null) this.handlers.onpick?.(landmark);
    });
    this.canvas.addEventListener("contextmenu", (event) => event.preventDefault());
    this.canvas.addEventListener("pointermove", (event) => {
      const at = where(event);
      if (!start) {
        this.canvas.style.cursor = this.nearest(at) !== null ? "pointer" : "grab";
        return;
      }
      if (!start.isMoved && Math.hypot(at[0] - start.at[0], at[1] - start.at[1]) < 4) return;
      start.isMoved = true;
      const step = [at[0] - start.last[0], at[1] - start.last[1]];
      start.last = at;
      if (start.landmark !== null && this.handlers.onmove && !this.isLinking) {
        const through = this.place(start.landmark);
        this.dragged = {
          landmark: start.landmark,
          point: this.snap(at) ?? this.unproject(at, through),
        };
        this.build();
      } else if (start.isPan) this.shift = [this.shift[0] + step[0], this.shift[1] + step[1]];
      else this.rotate(step[0], step[1]);
      this.draw();
    });
    this.canvas.addEventListener("pointerup", () => {
      if (start?.isMoved && this.dragged) {
        const { landmark, point } = this.dragged;
        this.scene.points[landmark] = point;
        this.dragged = null;
        this.handlers.onmove(landmark, point);
      }
      start = null;
    });
    this.canvas.addEventListener("pointercancel", () => {
      start = null;
      this.dragged = null;
    });
    this.canvas.addEventListener("dblclick", () => this.reset());
    this.canvas.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        this.zoom = Math.max(0.2, Math.min(40, this.zoom * Math.exp(-event.deltaY * 0.0015)));
        this.draw();
      },
      { passive: false },
    );
    this.canvas.addEventListener("keydown", (event) => this.onkey(event));
  }

  rotate(dx, dy) {
    const turn = new THREE.Quaternion().setFromEuler(new THREE.Euler(dy * 0.008, dx * 0.008, 0));
    this.turned.quaternion.premultiply(turn);
    this.isMoving = true;
    this.draw();
  }

  onkey(event) {
    const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const { selected } = this.scene;
    if (event.key in arrows) {
      event.preventDefault();
      const [dx, dy] = arrows[event.key];
      const isMoving =
        event.altKey &&
        selected !== null &&
        selected !== undefined &&
        this.handlers.onmove &&
        this.place(selected);
      if (!isMoving) {
        this.rotate(dx * 12, dy * 12);
        return;
      }
      const [x, y] = this.project(this.place(selected)),
        step = event.shiftKey ? 10 : 1;
      const point = this.unproject([x + dx * step, y + dy * step], this.place(selected));
      this.scene.points[selected] = point;
      this.build();
      this.draw();
      clearTimeout(this.keyTimer);
      this.keyTimer = setTimeout(() => this.handlers.onmove(selected, point), 350);
    } else if (event.key === "+" || event.key === "-") {
      this.zoom *= event.key === "+" ? 1.25 : 0.8;
      this.draw();
    } else this.handlers.onkey?.(event);
  }
}

function makeRingMaterial(colour) {
  const map = drawTexture((context) => {
    context.strokeStyle = colour;
    context.lineWidth = 10;
    context.arc(32, 32, 24, 0, 7);
    context.stroke();
  });
  return new THREE.PointsMaterial({
    map,
    size: 14,
    sizeAttenuation: false,
    transparent: true,
    alphaTest: 0.3,
    depthTest: false,
  });
}

function makeDotMaterial(colour, opacity, size, isHidden) {
  const map = drawTexture((context) => {
    context.fillStyle = colour;
    context.arc(32, 32, 30, 0, 7);
    context.fill();
  });
  return new THREE.PointsMaterial({
    map,
    size: size * Math.min(window.devicePixelRatio || 1, 2),
    sizeAttenuation: false,
    transparent: true,
    opacity,
    depthWrite: false,
    depthTest: isHidden,
  });
}

/** Draw a picture of 64 × 64 pixels for a material. */
function drawTexture(draw) {
  const picture = document.createElement("canvas");
  picture.width = picture.height = 64;
  draw(picture.getContext("2d"));
  const texture = new THREE.CanvasTexture(picture);
  texture.colorSpace = THREE.SRGBColorSpace;
  return texture;
}
