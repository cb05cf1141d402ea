// Taking away: results, figures, exports, the report; and the study as a script.

import { get } from "./api.js";
import { checkbox, fill, h, showMessage } from "./dom.js";
import { run } from "./progress.js";
import { path, store } from "./store.js";

export async function showTakeAway(main) {
  const work = h("div", {}),
    files = h("section", { class: "card" }),
    scripts = h("div", { class: "stack" });
  const { parts, files: written } = await get(path("/results"));
  const is3D = store.project.dims === 3;
  const chosen = new Set(Object.keys(parts).filter((output) => output !== "slicermorph" || is3D));
  const choices = Object.entries(parts).filter(([output]) => output !== "slicermorph" || is3D);

  const drawFiles = (names) =>
    fill(
      files,
      h("h2", {}, "Written"),
      names.length
        ? [
            h("p", { class: "soft" }, `In ${store.project.folder}/results`),
            h(
              "p",
              {},
              h("a", { href: path("/archive"), download: "", id: "archive" }, "All of it as a zip"),
            ),
            h(
              "ul",
              { class: "files", id: "files" },
              names.map((name) =>
                h(
                  "li",
                  {},
                  h(
                    "a",
                    {
                      href: path(`/results/${name.split("/").map(encodeURIComponent).join("/")}`),
                      download: "",
                    },
                    name,
                  ),
                  name.endsWith(".html")
                    ? [
                        " ",
                        h(
                          "a",
                          {
                            href: path(`/results/${name}?show=1`),
                            target: "_blank",
                            rel: "noopener",
                          },
                          "open",
                        ),
                      ]
                    : null,
                ),
              ),
            ),
          ]
        : h("p", { class: "soft" }, "Nothing yet."),
    );

  const write = async () => {
    const names = await run(work, { kind: "results", parts: [...chosen] });
    if (names) {
      drawFiles(names);
      showMessage("Everything is written.");
    }
  };

  main.append(
    h(
      "div",
      { class: "page" },
      h(
        "div",
        { class: "two" },
        h(
          "div",
          { class: "stack" },
          h(
            "section",
            { class: "card" },
            h("h2", {}, "What to take away"),
            h(
              "div",
              { class: "stack", style: { gap: "8px", margin: "0 0 14px" } },
              choices.map(([output, text]) =>
                checkbox(
                  text,
                  chosen.has(output),
                  (isChosen) => {
                    if (isChosen) chosen.add(output);
                    else chosen.delete(output);
                  },
                  { "data-part": output },
                ),
              ),
            ),
            h("button", { class: "primary", id: "write", onclick: write }, "Write"),
            h("p", {}),
            work,
          ),
          files,
        ),
        scripts,
      ),
    ),
  );
  drawFiles(written);
  try {
    const { python, commands, methods } = await get(path("/scripts"));
    fill(
      scripts,
      box("For the methods section", methods, "words"),
      box("As Python", python),
      box("As commands", commands),
    );
  } catch (error) {
    fill(scripts, h("div", { class: "worry" }, h("p", {}, error.message)));
  }
}

function box(title, text, kind = "") {
  const copy = h(
    "button",
    {
      onclick: async () => {
        try {
          await navigator.clipboard.writeText(text);
          copy.textContent = "Copied";
        } catch {
          getSelection().selectAllChildren(code);
          copy.textContent = "Selected";
        }
        setTimeout(() => {
          copy.textContent = "Copy";
        }, 1500);
      },
    },
    "Copy",
  );
  const code = h("pre", { class: kind, tabindex: "0" }, text);
  return h(
    "section",
    { class: "card" },
    h("div", { class: "row middle" }, h("h2", { style: { margin: 0, flex: 1 } }, title), copy),
    code,
  );
}
