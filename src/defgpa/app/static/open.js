// Opening: files dropped or chosen, samples, projects of before; and what is in the files.

import { get, post, upload } from "./api.js";
import { field, fill, h, number, showMessage, select, table } from "./dom.js";
import { changeSettings, hasShapes, listen, openProject, path, store } from "./store.js";

export async function showOpen(main, { go }) {
  const page = h("div", { class: "page" });
  main.append(page);
  const draw = async () => {
    if (store.project) drawProject(page, go);
    else drawStart(page, await get("/api/start"), go);
  };
  await draw();
  const isStart = !store.project; // then the address will change
  return listen((change) => {
    if (
      ["project", "settings", "superimposition", "queue"].includes(change) &&
      store.project &&
      !isStart
    )
      draw();
  });
}

function drawStart(page, { projects, samples, version }, go) {
  const open = async (body) => {
    const { id } = await post("/api/projects", body);
    await openProject(id);
    go(hasShapes() ? "look" : "open", id);
  };
  fill(
    page,
    h("h1", {}, "Look, correct, align, explore"),
    h(
      "p",
      { class: "lead" },
      "Landmarks of many specimens, from the files you have to a corrected, tested and exported study. Everything stays on this machine.",
    ),
    makeDrop(async (files) => {
      const title = chooseTitle(files.map(({ name }) => name));
      const { id } = await post("/api/projects", { title });
      await send(id, files);
      await openProject(id);
      go("open", id);
    }),
    h(
      "div",
      { class: "cards", style: { marginTop: "20px" } },
      h(
        "section",
        { class: "card" },
        h("h2", {}, "Try it on a sample"),
        h(
          "div",
          { class: "choices" },
          samples.map(({ id, title }) =>
            h(
              "button",
              {
                "data-sample": id,
                onclick: () => open({ sample: id }).catch((error) => showMessage(error.message, "error")),
              },
              title,
            ),
          ),
        ),
      ),
      h(
        "section",
        { class: "card" },
        h("h2", {}, "Recent projects"),
        projects.length
          ? h(
              "div",
              { class: "choices recent" },
              projects.map(({ id, title, changed }) =>
                h(
                  "button",
                  { "data-project": id, onclick: () => go("look", id) },
                  title,
                  h("small", {}, `${id} · ${formatTime(changed)}`),
                ),
              ),
            )
          : h("p", { class: "soft" }, "None yet. What you open is kept here, with every edit."),
      ),
    ),
    h("p", { class: "soft", style: { marginTop: "24px" } }, `defgpa ${version}`),
  );
}

const formatTime = (seconds) =>
  new Date(seconds * 1000).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });

/** The folder of the files; otherwise the first that is no picture, mesh or table. */
function chooseTitle(names) {
  const [folder, pathInFolder] = names[0].split("/");
  if (pathInFolder) return folder;
  const isCompanion = (name) =>
    /\.(jpe?g|png|bmp|gif|webp|tiff?|ply|stl|obj|off|vt[kp]|csv|tsv|xlsx|txt)$/i.test(name);
  const files = names.filter((name) => !isCompanion(name));
  const stems = (files.length ? files : names).map((name) => name.replace(/(\.mrk)?\.[^.]*$/, ""));
  let shared = stems[0];
  while (!stems.every((stem) => stem.startsWith(shared))) shared = shared.slice(0, -1);
  return (stems.length > 1 ? shared.replace(/[\s_.-]*\d*$/, "") : shared) || stems[0] || "study";
}

/** Where files are dropped, or chosen by buttons. */
function makeDrop(onfiles, isFirst = true) {
  const passFiles = async (files) => {
    if (!files.length) return;
    try {
      await onfiles(files);
    } catch (error) {
      showMessage(error.message, "error");
    }
  };
  const pick = (isFolder) => {
    const input = h("input", { type: "file", multiple: true, class: "chooser", hidden: true });
    if (isFolder) input.webkitdirectory = true;
    input.addEventListener("change", () =>
      passFiles([...input.files].map((file) => ({ name: file.webkitRelativePath || file.name, file }))),
    );
    return input;
  };
  const files = pick(false),
    folder = pick(true);
  files.id = "choose-files";
  const drop = h(
    "section",
    { class: "drop", "aria-label": "Drop files here" },
    h("h2", {}, isFirst ? "Drop landmark files here" : "Drop more files here"),
    h(
      "p",
      { class: "soft" },
      "TPS, NTS, FCSV, JSON, Morphologika, CSV, PTS, MATLAB, R, meshes and more; a folder or a zip of them; with photographs, meshes and a table of covariates if you have them.",
    ),
    h(
      "div",
      { class: "row" },
      h(
        "button",
        { class: isFirst ? "primary" : "", onclick: () => files.click() },
        "Choose files",
      ),
      h("button", { onclick: () => folder.click() }, "Choose a folder"),
      files,
      folder,
    ),
  );
  drop.addEventListener("dragover", (event) => {
    event.preventDefault();
    drop.classList.add("over");
  });
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", async (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    passFiles(await readDropped(event.dataTransfer));
  });
  return drop;
}

/** The files of a drop, those in folders too. */
async function readDropped(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.length) return [...transfer.files].map((file) => ({ name: file.name, file }));
  const files = [];
  const addEntry = async (entry, prefix) => {
    if (entry.isFile)
      files.push({
        name: prefix + entry.name,
        file: await new Promise((resolve, reject) => entry.file(resolve, reject)),
      });
    else {
      const reader = entry.createReader();
      for (;;) {
        const batch = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
        if (!batch.length) break;
        for (const child of batch) await addEntry(child, `${prefix}${entry.name}/`);
      }
    }
  };
  for (const entry of entries) await addEntry(entry, "");
  return files;
}

async function send(id, files) {
  const progress = h("progress", { max: files.length, value: 0 });
  const note = h(
    "p",
    { class: "message" },
    `Reading ${files.length} file${files.length > 1 ? "s" : ""} `,
    progress,
  );
  document.getElementById("messages").append(note);
  try {
    for (const { name, file } of files) {
      if (/(^|\/)\./.test(name)) continue; // hidden files
      await upload(id, name, file);
      progress.value += 1;
    }
  } finally {
    note.remove();
  }
}

function drawProject(page, go) {
  const { project } = store;
  const { info } = project;
  fill(
    page,
    h("h1", {}, project.title),
    h("p", { class: "lead" }, `Kept in ${project.folder}. The original files are never changed.`),
    project.problem &&
      h(
        "div",
        { class: "worry", role: "alert" },
        h("h3", {}, "These files cannot be read as they are"),
        h("p", {}, project.problem),
        makeFixes(project),
      ),
    store.problem &&
      h(
        "div",
        { class: "worry", role: "alert" },
        h("h3", {}, "These specimens cannot be superimposed as they are"),
        h("p", {}, store.problem),
        h("p", {}, "Exclude or correct them in Look and Correct."),
        /too few landmarks/.test(store.problem) && makeFixes(project, ["incomplete"]),
      ),
    project.notes.length > 0 &&
      h(
        "div",
        { class: "worry" },
        project.notes.map((note) => h("p", {}, note)),
      ),
    info &&
      info.likely_missing !== null &&
      h(
        "div",
        { class: "worry" },
        h(
          "p",
          {},
          `Some landmarks have ${number(info.likely_missing)} in all coordinates, as programs write missing ones. Is that meant?`,
        ),
        h(
          "button",
          {
            onclick: () =>
              changeSettings({
                reading: { ...project.settings.reading, missing: info.likely_missing },
              }),
          },
          "Yes, they are missing",
        ),
      ),
    h(
      "div",
      { class: "two" },
      h(
        "div",
        { class: "stack" },
        info &&
          h(
            "section",
            { class: "card" },
            h("h2", {}, "What is in it"),
            describe(project, info),
            h("p", {}),
            h(
              "div",
              { class: "row" },
              h("button", { class: "primary", onclick: () => go("look") }, "Look at the specimens"),
              store.queue?.length
                ? h(
                    "button",
                    { onclick: () => go("correct") },
                    `${store.queue.length} thing${store.queue.length > 1 ? "s" : ""} worth a look`,
                  )
                : store.queue
                  ? h("span", { class: "soft" }, "Nothing looks wrong.")
                  : null,
            ),
          ),
        makeDrop(async (files) => {
          await send(project.id, files);
          await openProject(project.id);
        }, !hasShapes()),
      ),
      h(
        "section",
        { class: "card" },
        h("h2", {}, "Files"),
        project.files.length
          ? table(
              ["file", "what", "bytes", ""],
              project.files.map((file) => [
                file.name,
                file.role,
                file.size,
                h(
                  "button",
                  {
                    class: "quiet",
                    "aria-label": `Remove ${file.name}`,
                    onclick: () => remove(file.name),
                  },
                  "Remove",
                ),
              ]),
            )
          : h("p", { class: "soft" }, "None yet."),
        describeCompanions(project),
        h("h2", { style: { marginTop: "14px" } }, "How they are read"),
        makeReading(project.settings.reading),
      ),
    ),
  );
}

/** Say how many specimens have a photograph or a mesh. */
function describeCompanions({ photographs = [], meshes = [] }) {
  const count = (flags, noun) => {
    const total = flags.filter(Boolean).length;
    return total ? `${total} ${noun}${total > 1 ? "s" : ""}` : "";
  };
  const words = [count(photographs, "photograph"), count(meshes, "mesh").replace(/hs$/, "hes")];
  const text = words.filter(Boolean).join(" and ");
  return text && h("p", { class: "soft" }, `${text} shown with their landmarks.`);
}

function describe(project, info) {
  const total = info.shapes * info.landmarks;
  const groups = project.columns.group ?? [];
  const counts = Object.entries(
    groups.reduce((all, group) => ({ ...all, [group]: (all[group] ?? 0) + 1 }), {}),
  );
  const facts = [
    ["specimens", info.shapes],
    ["landmarks", info.landmarks],
    ["dimensions", info.dimension],
    ["missing landmarks", `${info.missing} of ${total}`],
    ["units", info.units],
    info.format && ["format", info.format],
    info.space && ["anatomical system", info.space],
    counts.length && ["groups", counts.map(([name, count]) => `${name} ${count}`).join(", ")],
    Object.keys(project.columns).length && ["columns", Object.keys(project.columns).join(", ")],
    info.incomplete.length && ["left out, unfinished", info.incomplete.join(", ")],
  ].filter(Boolean);
  return h(
    "dl",
    { class: "facts" },
    facts.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, String(value))]),
  );
}

/** Choices of how files are read. */
function makeReading(reading) {
  const choose = (key, text, choices) =>
    field(
      text,
      select(
        choices.map(([value, words]) => [JSON.stringify(value), words]),
        JSON.stringify(reading[key] ?? choices[0][0]),
        (value) => changeSettings({ reading: { ...reading, [key]: JSON.parse(value) } }),
        { id: `read-${key}` },
      ),
    );
  const type = (key, text, kind) =>
    field(
      text,
      h("input", {
        type: kind,
        id: `read-${key}`,
        value: String(reading[key] ?? ""),
        placeholder: "as the files say",
        onchange: ({ target }) => {
          const { [key]: _, ...others } = reading;
          const value = kind === "number" ? Number(target.value) : target.value.trim();
          changeSettings({ reading: target.value.trim() ? { ...others, [key]: value } : others });
        },
      }),
    );
  return h(
    "div",
    { class: "row" },
    choose("dimension", "Dimensions", [
      [null, "as the files say"],
      [2, "2"],
      [3, "3"],
    ]),
    choose("names", "Names of specimens", [
      ["auto", "as the files say"],
      ["id", "ID"],
      ["image", "image"],
      ["file", "file"],
    ]),
    choose("missing", "Missing landmarks", [
      ["marked", "as they are marked"],
      ["negative", "also negative coordinates"],
      ...(typeof reading.missing === "number" ? [[reading.missing, number(reading.missing)]] : []),
    ]),
    h(
      "details",
      { open: Object.keys(reading).some((key) => !["dimension", "names", "missing"].includes(key)) },
      h("summary", {}, "More"),
      h(
        "div",
        { class: "row" },
        choose("match", "Landmarks", [
          ["auto", "as the files say"],
          ["label", "by their labels"],
          ["position", "by their order"],
        ]),
        choose("incomplete", "Unfinished specimens", [
          ["error", "refused"],
          ["drop", "left out"],
        ]),
        choose("on_mismatch", "Wrong counts", [
          ["error", "refused"],
          ["warn", "taken as they are"],
        ]),
        choose("weights", "Likelihoods", [
          ["likelihood", "weights"],
          ["none", "not used"],
        ]),
        choose("layout", "Order of the axes", [
          ["auto", "as the files say"],
          ...["nmd", "mdn", "dmn"].map((axes) => [axes, axes]),
        ]),
        type("variable", "Variable", "text"),
        type("format", "Format", "text"),
        type("curve_points", "Points of each curve", "number"),
        type("min_likelihood", "Least likelihood", "number"),
      ),
    ),
  );
}

/** Ways to read files that were refused. */
function makeFixes(project, keys = ["incomplete", "on_mismatch", "match"]) {
  const { reading } = project.settings;
  const fixes = [
    ["incomplete", "drop", "Leave unfinished specimens out"],
    ["on_mismatch", "warn", "Take wrong counts as they are"],
    ["match", "position", "Match landmarks by their order"],
  ];
  return h(
    "div",
    { class: "row" },
    fixes
      .filter(([key, value]) => keys.includes(key) && reading[key] !== value)
      .map(([key, value, text]) =>
        h(
          "button",
          { onclick: () => changeSettings({ reading: { ...reading, [key]: value } }) },
          text,
        ),
      ),
  );
}

async function remove(name) {
  try {
    await post(path("/files/remove"), { revision: store.project.revision, name });
    await openProject(store.project.id);
  } catch (error) {
    showMessage(error.message, "error");
  }
}
