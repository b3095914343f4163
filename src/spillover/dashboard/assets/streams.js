// The first page: all streams, and the two ways to begin one.

import { get, inWords, path, send, sendFile } from "./api.js";
import { byId, h, named, replace, show } from "./dom.js";
import { onSubmit, range, required, wholeNumber } from "./forms.js";
import { untilReady } from "./live.js";
import { count, items } from "./words.js";

const PAGE = 1000;
const SHOWN = 100;
let streams = [];
let most = SHOWN;

const go = (stream) => {
  location.href = `/streams/${encodeURIComponent(stream)}`;
};

async function load() {
  let after = "";
  const found = [];
  do {
    const page = await get(path("streams"), { after, limit: PAGE });
    found.push(...page.streams);
    after = page.next;
    streams = found;
    draw();
  } while (after);
}

function draw() {
  const words = byId("search").value.trim().toLowerCase();
  const fitting = streams.filter(({ name }) => name.toLowerCase().includes(words));
  replace(
    byId("count"),
    !streams.length
      ? "There is no stream yet. Begin one with a history file, or without."
      : words
        ? `${fitting.length.toLocaleString("en-US")} of ${count(streams.length, "stream")}`
        : count(streams.length, "stream"),
  );
  replace(
    byId("streams"),
    fitting
      .slice(0, most)
      .map(({ name, seq }) =>
        h(
          "li",
          {},
          h("a", { href: `/streams/${encodeURIComponent(name)}` }, named(name)),
          h("span", { class: "small" }, count(seq, "entry", "entries")),
        ),
      ),
  );
  show(byId("more"), fitting.length > most);
}

byId("search").addEventListener("input", draw);
byId("more").addEventListener("click", () => {
  most += 10 * SHOWN;
  draw();
});

function wireImport() {
  const file = byId("import-file");
  const drop = byId("drop");
  const suggest = () => {
    const name = byId("import-name");
    if (file.files.length && !name.value) name.value = file.files[0].name.replace(/\.[^.]*$/, "");
  };
  file.addEventListener("change", suggest);
  for (const kind of ["dragenter", "dragover"])
    drop.addEventListener(kind, (event) => {
      event.preventDefault();
      drop.classList.add("over");
    });
  for (const kind of ["dragleave", "drop"])
    drop.addEventListener(kind, (event) => {
      event.preventDefault();
      drop.classList.remove("over");
    });
  drop.addEventListener("drop", (event) => {
    file.files = event.dataTransfer.files;
    suggest();
  });
  onSubmit(
    byId("import-form"),
    async () => {
      if (!file.files.length) throw new RangeError("Choose a history file first.");
      const name = required(byId("import-name"), "Give the stream a name.");
      const query = {
        filename: file.files[0].name,
        budget: wholeNumber(byId("import-budget"), "Say how many arms may be chosen in a round, at most."),
        context: items(byId("import-context").value, ","),
        minimise: byId("import-minimise").checked ? "true" : null,
        doses: byId("import-doses").checked ? "true" : null,
        reward_range: range(byId("import-low"), byId("import-high"), "Give both ends of the range, or none."),
      };
      await sendFile(path("streams", name, "import"), query, file.files[0]);
      go(name);
    },
    {
      fields: {
        name: byId("import-name"),
        budget: byId("import-budget"),
        context: byId("import-context"),
        reward_range: byId("import-low"),
      },
    },
  );
}

function wireCreate() {
  onSubmit(
    byId("create-form"),
    async (key) => {
      const name = required(byId("create-name"), "Give the stream a name.");
      const arms = items(required(byId("create-arms"), "Name the arms, one per line."), "\n");
      const settings = {
        arms,
        budget: wholeNumber(byId("create-budget"), "Say how many arms may be chosen in a round, at most."),
        observes: byId("create-observes").value,
      };
      const policy = byId("create-policy").value.trim();
      const context = items(byId("create-context").value, ",");
      const ends = range(byId("create-low"), byId("create-high"), "Give both ends of the range, or none.");
      if (policy) settings.policy = policy;
      if (context.length) settings.context = context;
      if (ends) settings.reward_range = ends;
      if (byId("create-minimise").checked) settings.minimise = true;
      if (byId("create-doses").checked) settings.doses = true;
      await send(path("streams"), { name, settings }, { key });
      go(name);
    },
    {
      fields: {
        name: byId("create-name"),
        arms: byId("create-arms"),
        budget: byId("create-budget"),
        policy: byId("create-policy"),
        context: byId("create-context"),
        reward_range: byId("create-low"),
      },
    },
  );
}

wireImport();
wireCreate();
show(byId("live"), false);
untilReady();
load().catch((error) => replace(byId("count"), inWords(error)));
