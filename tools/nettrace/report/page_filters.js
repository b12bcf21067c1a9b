// ---- Filters of events, and the address of the view.

// Parameters of the address, and the ids of the controls that have their values.
const FILTERS = {level: "filter-level", provider: "filter-provider", kind: "filter-kind", process: "filter-process", thread: "filter-thread",
  field: "filter-field", duration: "filter-duration", search: "search"};

// Parses conditions on fields, such as: Status>=500 Path="/a b". Returns undefined if they are invalid.
function parseConditions(text) {
  const conditions = [];
  let rest = text.trim();
  while (rest !== "") {
    const match = rest.match(/^([^\s=!<>~"]+)(>=|<=|!=|=|<|>|~)(?:"((?:[^"\\]|\\.)*)"|([^\s"]*))(?:\s+|$)/);
    if (!match) return undefined;
    const [all, name, operator, quoted, plain] = match;
    conditions.push({name: name.toLowerCase(), operator, value: quoted === undefined ? plain : quoted.replace(/\\(.)/g, "$1")});
    rest = rest.slice(all.length);
  }
  return conditions;
}

// Returns the condition that selects a value, as parseConditions reads it.
const conditionText = (name, value) => `${name}=${/^[^\s"]+$/.test(value) ? value : `"${value.replace(/["\\]/g, "\\$&")}"`}`;

function meets(text, {operator, value}) {
  if (operator === "~") return text.toLowerCase().includes(value.toLowerCase());
  const isNumber = text.trim() !== "" && value.trim() !== "" && !isNaN(text) && !isNaN(value);
  const order = text === value ? 0 : isNumber ? Number(text) - Number(value) : text < value ? -1 : 1;
  return {"=": order === 0, "!=": order !== 0, "<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}[operator];
}

// Returns whether one of the event's fields meets the condition. The condition has the field's path or the last parts of
// it, in lower case.
function meetsCondition(event, condition) {
  event.fields ??= [...fieldsOf("", event.event.payload ?? {})].map(([name, text]) => [name.toLowerCase(), text]);
  return event.fields.some(([name, text]) => (name === condition.name || name.endsWith("." + condition.name)) && meets(text, condition));
}

// Parses a duration such as 1.5ms, in ticks. Returns undefined if it is invalid.
function parseDuration(text) {
  const match = text.trim().match(/^(\d+(?:\.\d+)?)\s*(ns|us|µs|ms|s|min|h)$/);
  if (!match) return undefined;
  return Number(match[1]) * {ns: 1e-9, us: 1e-6, µs: 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600}[match[2]] * data.ticksPerSecond;
}

// Returns a function that states whether an event belongs to an activity of the page that takes at least `duration`
// ticks.
function belongsToLong(duration) {
  const ofId = new Map(), ofThread = new Map();
  const add = (map, key, {begin, end}) => {
    if (end - begin < duration) return;
    if (!map.has(key)) map.set(key, []);
    map.get(key).push({at: begin, end});
  };
  for (const activity of data.activities.shown) add(ofId, activity.id, activity);
  for (const {nodes, isMade} of trees) {
    if (isMade) continue;
    for (const node of nodes) {
      add(ofId, node.id, node);
      add(ofThread, node.thread, node);
    }
  }
  // Changes the end of each item to the latest end of it and all items before it. One search then finds whether any
  // item covers a time.
  for (const spans of [...ofId.values(), ...ofThread.values()]) {
    spans.sort((a, b) => a.at - b.at);
    for (let i = 1; i < spans.length; ++i) spans[i].end = Math.max(spans[i].end, spans[i - 1].end);
  }
  return ({at, thread, event}) => {
    const spans = event.activityId ? ofId.get(event.activityId) : ofThread.get(thread);
    if (!spans) return false;
    const [, begun] = rangeOf(spans, 0, at);
    return begun > 0 && spans[begun - 1].end >= at;
  };
}

// Returns the filters. Marks those that are invalid, and returns them as if they were empty.
function readFilters() {
  const text = (name) => byId(FILTERS[name]).value;
  const index = (name) => text(name) === "" ? null : Number(text(name));
  const conditions = parseConditions(text("field"));
  const duration = text("duration").trim() === "" ? null : parseDuration(text("duration"));
  for (const [name, isValid] of [["field", conditions !== undefined], ["duration", duration !== undefined]]) {
    byId(FILTERS[name]).setAttribute("aria-invalid", String(!isValid));
  }
  byId("filter-error").textContent = [
    conditions === undefined ? 'Invalid condition on fields; examples: Status>=500, Path="/a b", Text~paid.' : "",
    duration === undefined ? "Invalid duration; examples: 500us, 10ms, 1.5s." : ""].join(" ").trim();
  const provider = index("provider");
  return {level: index("level"), kind: index("kind"), process: index("process"), thread: index("thread"),
    provider: provider === null ? null : data.kinds[provider]?.provider, conditions: conditions ?? [], duration: duration ?? null,
    isLong: typeof duration === "number" ? belongsToLong(duration) : null,
    words: text("search").toLowerCase().split(/\s+/).filter((word) => word !== "")};
}

function passes(event, filters) {
  const {level, kind, process, thread, provider, conditions, isLong, words} = filters;
  // Level 0 means that the level is unknown, so no filter of levels selects such events.
  if (level !== null && !(event.event.level >= 1 && event.event.level <= level)) return false;
  if (kind !== null && event.kind !== kind) return false;
  if (thread !== null && event.thread !== thread) return false;
  if (provider !== null && data.kinds[event.kind].provider !== provider) return false;
  if (process !== null && data.threads[event.thread].process !== process) return false;
  if (!conditions.every((condition) => meetsCondition(event, condition))) return false;
  if (isLong && !isLong(event)) return false;
  if (words.length === 0) return true;
  event.text ??= (JSON.stringify(event.event) + " " + processText(processOf(data.threads[event.thread]))).toLowerCase();
  return words.every((word) => event.text.includes(word));
}

function search() {
  const filters = readFilters();
  const isAll = Object.values(filters).every((value) => value === null || (Array.isArray(value) && value.length === 0));
  state.matches = isAll ? events : events.filter((event) => passes(event, filters));
  const kept = new Set(state.matches);
  for (const lane of lanes) {
    lane.matches = isAll ? lane.events : lane.events.filter((event) => kept.has(event));
    lane.activities = filters.duration === null ? lane.allActivities
      : lane.allActivities.filter(({begin, end}) => end - begin >= filters.duration);
  }
  state.page = 0;
  redraw();
}

// Adds a condition on a field to the filters.
function addCondition(name, value) {
  const box = byId(FILTERS.field);
  box.value = `${box.value.trim()} ${conditionText(name, value)}`.trim();
  search();
}

// ---- The address: its part after "#" has the time window, the filters, the activities and the stacks.

// The time that the page shows first: that of --since and --until, or the whole time without these options.
const home = data.window ? [Number(data.window.from), Math.max(Number(data.window.until), Number(data.window.from) + 1)] : [0, whole];

function writeAddress() {
  const parameters = new URLSearchParams();
  const [from, to] = [Math.round(state.from), Math.round(state.to)];
  if (from !== Math.round(state.home[0]) || to !== Math.round(state.home[1])) {
    parameters.set("from", from);
    parameters.set("until", to);
  }
  for (const [name, id] of Object.entries(FILTERS)) if (byId(id).value !== "") parameters.set(name, byId(id).value);
  for (const [name, value] of Object.entries({...activityParameters(), ...stackParameters()})) parameters.set(name, value);
  const text = parameters.toString();
  // Keeps an address that names a part of the page, such as #losses, if there is no view to store.
  if (text === "" && !location.hash.includes("=")) return;
  if (`#${text}` !== location.hash) history.replaceState(null, "", `#${text}`);
}

function readAddress() {
  if (!location.hash.includes("=")) return false;
  const parameters = new URLSearchParams(location.hash.slice(1));
  for (const [name, id] of Object.entries(FILTERS)) {
    byId(id).value = parameters.get(name) ?? "";
    if (byId(id).selectedIndex === -1) byId(id).value = "";  // not one of the options
  }
  const [from, until] = ["from", "until"].map((name) => Number(parameters.get(name) ?? NaN));
  if (from >= 0 && until >= from) setWindow(from, until); else setWindow(...home);
  readActivityParameters(parameters);
  readStackParameters(parameters);
  search();
  return true;
}

// Returns the id of the part of the page that the address is about.
function partOfAddress() {
  if (location.hash.includes("stacks")) return "stacks";
  return state.tree === null ? "events" : "activities";
}

function makeFilters() {
  const option = (index, text) => element("option", text, {value: index});
  const byCount = (rows) => [...rows.keys()].sort((a, b) => rows[b].events - rows[a].events);
  // The index of a provider's first kind stands for the provider.
  const providers = new Map();
  data.kinds.forEach(({provider}, i) => { if (!providers.has(provider)) providers.set(provider, i); });
  byId("filter-provider").append(...[...providers].map(([name, i]) => option(i, name || "(no name)")));
  byId("filter-kind").append(...byCount(data.kinds).map((i) => option(i, `${data.kinds[i].name} (${data.kinds[i].provider})`)));
  byId("filter-process").append(...byCount(data.processes).map((i) => option(i, processText(data.processes[i]) || "?")));
  byId("filter-thread").append(...byCount(data.threads).map((i) => option(i, placeText(i))));
  for (const id of Object.values(FILTERS)) byId(id).addEventListener("input", search);
  byId("no-filter").addEventListener("click", () => {
    for (const id of Object.values(FILTERS)) byId(id).value = "";
    search();
  });
  addEventListener("hashchange", () => { if (readAddress()) byId(partOfAddress()).scrollIntoView(); });
}

