// ---- Stacks: a flame graph, with the outermost caller at the top.

const BOX_HEIGHT = 20;  // px
const LETTER = 6.7;  // px; the width of a letter of the graph's font
const MAX_BOXES = 2000;  // boxes that are drawn at once
const FUNCTION_ROWS = 50;  // rows of the table of functions of a process or thread
const CODES = ["unknown", "user", "kernel"];
const stacks = data.stacks;
// The state of the flame graph. `zoom` and `cursor` are boxes of `graph`. `back` has the keys of the boxes that were
// zoomed to before.
const flames = {view: 0, place: "", words: "", graph: null, zoom: null, cursor: null, back: []};

if (stacks) {
  stacks.functions = stacks.functions.map(([text, code]) => ({text, code: CODES[code]}));
  for (const view of stacks.views) {
    asNumbers(view, "total", "leftOut", "events");
    for (const name of ["self", "below"]) {
      const sums = view[name];
      view[name] = [];
      for (let i = 0; i < sums.length; i += 3) view[name].push({node: sums[i], thread: sums[i + 1], weight: Number(sums[i + 2])});
    }
  }
}

const flameView = () => stacks.views[flames.view];
const processNumber = (thread) => data.threads[thread]?.process ?? -1;

// The names that processes have in the graph, as in the exports of stacks, and a number for each name.
const processNames = data.processes.map(({pid, name}) => name.slice(name.lastIndexOf("/") + 1) || (pid === null ? "unknown process" : `pid ${pid}`));
const nameNumbers = new Map();
processNames.forEach((name, i) => { if (!nameNumbers.has(name)) nameNumbers.set(name, i); });

function sumText(sum) {
  const {unit} = flameView();
  return unit === "ns" ? durationText(sum / 1e9) : counted(sum, unit);
}

const percentText = (part, total) => `${total === 0 ? 0 : Number((part / total * 100).toPrecision(3))} %`;

// Returns whether a sum belongs to the chosen process or thread. Returns true if none is chosen.
function isChosenPlace({thread}) {
  if (flames.place === "") return true;
  const number = Number(flames.place.slice(1));
  return flames.place[0] === "p" ? processNumber(thread) === number : thread === number;
}

// Returns the boxes of the graph: the root first, and each caller before the functions that it calls. A box has three
// sums: of its own events (`self`), of the events in functions that are left out below it (`below`), and of all
// events through it (`total`).
function makeGraph() {
  const view = flameView();
  const boxes = [], ofKey = new Map();
  const add = (key, text, code, parent) => {
    const box = {key, text, code, parent, self: 0, below: 0, total: 0, at: 0, depth: parent ? parent.depth + 1 : 0, children: []};
    parent?.children.push(box);
    boxes.push(box);
    ofKey.set(key, box);
    return box;
  };
  const root = add("", view.name, "whole");
  const boxOf = (thread, node) => {
    const name = processNames[processNumber(thread)] ?? "(others)";
    const keyOf = (number) => `${nameNumbers.get(name) ?? "others"}.${number}`;
    const missing = [];
    for (; node !== 0 && !ofKey.has(keyOf(node)); node = stacks.nodes[2 * node - 2]) missing.push(node);
    let box = ofKey.get(keyOf(node));
    box ??= stacks.hasThreads ? add(keyOf(0), name, "process", root) : root;
    while (missing.length > 0) {
      const number = missing.pop();
      const {text, code} = stacks.functions[stacks.nodes[2 * number - 1]];
      box = add(keyOf(number), text, code, box);
    }
    return box;
  };
  for (const name of ["self", "below"]) {
    for (const sum of view[name]) if (isChosenPlace(sum)) boxOf(sum.thread, sum.node)[name] += sum.weight;
  }
  for (const box of boxes.toReversed()) {
    box.total += box.self + box.below;
    if (box.parent) box.parent.total += box.total;
  }
  for (const box of boxes) {
    box.children.sort((a, b) => b.total - a.total);
    let {at} = box;
    for (const child of box.children) {
      child.at = at;
      at += child.total;
    }
  }
  return {boxes, root, ofKey};
}

const isMatch = (box) => flames.words !== "" && box.parent !== undefined && box.text.toLowerCase().includes(flames.words.toLowerCase());

// Returns the sum of the events that pass through marked boxes, and the number of these boxes. An event counts once,
// even if it passes through several marked boxes.
function markedSum() {
  let sum = 0, count = 0;
  const isBelow = new Set();
  for (const box of flames.graph.boxes) {
    const matches = isMatch(box);
    if (matches) ++count;
    if (matches && !isBelow.has(box.parent)) sum += box.total;
    if (matches || isBelow.has(box.parent)) isBelow.add(box);
  }
  return [sum, count];
}

// Returns the boxes to draw: the zoomed box and its callers, as wide as the graph, and the boxes below the zoomed box.
// Leaves out boxes that are too narrow, so that about MAX_BOXES are drawn at most.
function boxesIn(width) {
  const {zoom} = flames;
  const above = [];
  for (let box = zoom.parent; box; box = box.parent) above.unshift({box, x: 0, width});
  for (let least = 0.7;; least *= 2) {
    const drawn = [...above], open = [zoom];
    while (open.length > 0 && drawn.length <= MAX_BOXES) {
      const box = open.pop();
      const scale = width / Math.max(1, zoom.total);
      drawn.push({box, x: (box.at - zoom.at) * scale, width: box === zoom ? width : box.total * scale});
      for (const child of box.children) if (child.total * scale >= least) open.push(child);
    }
    if (drawn.length <= MAX_BOXES || least > width) return drawn;
  }
}

// Returns the text `module!function`, or only the function if the text has more than `letters` letters. Cuts the
// function to `letters`.
function shortText(text, letters) {
  const name = text.length > letters ? text.slice(text.indexOf("!") + 1) : text;
  return name.length > letters ? name.slice(0, letters - 1) + "…" : name;
}

function drawFlames() {
  if (!stacks) return;
  const svg = byId("flame-picture"), width = svg.clientWidth;
  if (width === 0) return;
  const drawn = boxesIn(width);
  const shapes = [];
  for (const {box, x, width: size} of drawn) {
    const names = ["box", box.code, ...(isMatch(box) ? ["match"] : []), ...(box === flames.cursor ? ["cursor"] : [])];
    const y = box.depth * BOX_HEIGHT;
    shapes.push(shape("rect", {x: x.toFixed(2), y, width: Math.max(0.7, size - 0.5).toFixed(2), height: BOX_HEIGHT - 1,
      class: names.join(" "), "data-key": box.key}));
    const letters = Math.floor((size - 8) / LETTER);
    if (letters >= 3) shapes.push(shape("text", {x: (x + 4).toFixed(2), y: y + 14, class: names.join(" ")}, shortText(box.text, letters)));
  }
  const height = Math.max(...drawn.map(({box}) => box.depth + 1)) * BOX_HEIGHT;
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("height", height);
  svg.replaceChildren(...shapes);
  byId("flames").setAttribute("aria-label", `Flame graph of ${flameView().name}: ${sumText(flames.graph.root.total)}, ` +
    `${counted(drawn.length, "box").replace("boxs", "boxes")}`);
  drawFlameTexts();
}

function boxText(box) {
  const {root} = flames.graph;
  const own = box.self > 0 ? `, ${sumText(box.self)} itself` : "";
  const below = box.below > 0 ? `, ${sumText(box.below)} in functions that are left out` : "";
  return `${box.text}: ${sumText(box.total)} (${percentText(box.total, root.total)})${own}${below}`;
}

function drawFlameTexts() {
  const {root} = flames.graph;
  const view = flameView();
  byId("flame-chosen").textContent = boxText(flames.cursor);
  const [sum, count] = markedSum();
  byId("flame-found").textContent = flames.words === "" ? "" : `${counted(count, "box").replace("boxs", "boxes")} marked: ` +
    `${percentText(sum, root.total)} (${sumText(sum)} of ${sumText(root.total)}) have a marked function on their stack.`;
  byId("flame-left-out").textContent = [
    `${counted(view.events, "event")} in this view.`,
    view.leftOut > 0 ? `${sumText(view.leftOut)} (${percentText(view.leftOut, view.total)}) in functions below those of the graph: ` +
      "the page has no room for them, and their callers include them. Use a larger --size." : "",
    stacks.hasThreads ? "" : "The page has no room for the sums by process and thread.",
  ].join(" ").trim();
  byId("flame-back").disabled = flames.zoom === root;
  byId("flame-whole").disabled = flames.zoom === root;
}

// Zooms to a box. Unless `isBack`, a later stepBack() returns to the current box.
function zoomFlames(box, isBack = false) {
  if (box === flames.zoom) return;
  if (!isBack) flames.back.push(flames.zoom.key);
  flames.zoom = flames.cursor = box;
  drawFlames();
  writeAddress();
}

function stepBack() {
  const {ofKey, root} = flames.graph;
  if (flames.zoom !== root) zoomFlames(ofKey.get(flames.back.pop() ?? "") ?? root, true);
}

// Moves the cursor to the caller, the largest callee, or a neighbor that is drawn.
function moveCursor(direction) {
  const {cursor, zoom} = flames;
  let next;
  if (direction === "up") next = cursor.parent;
  if (direction === "down") next = cursor.children[0];
  const beside = cursor.parent?.children ?? [];
  if (direction === "left") next = beside[beside.indexOf(cursor) - 1];
  if (direction === "right") next = beside[beside.indexOf(cursor) + 1];
  if (!next || next.total === 0) return;
  // The graph does not draw the boxes beside the zoomed box, and draws its callers as wide as the graph. Therefore, it
  // zooms to the caller of the box to which the cursor moves.
  if (cursor === zoom && direction !== "down") zoomFlames(next.parent ?? next);
  flames.cursor = next;
  drawFlames();
  byId("flame-picture").querySelector(".cursor")?.scrollIntoView({block: "nearest"});
}

// Shows the functions of the chosen process or thread, or the table of the whole view.
function drawFunctions() {
  document.querySelectorAll("#stack-tables > *").forEach((table, i) => { table.hidden = flames.place !== "" || i !== flames.view; });
  byId("functions-here").hidden = flames.place === "";
  if (flames.place === "") return;
  const rows = new Map(), {boxes, root} = flames.graph;
  for (const box of boxes) {
    if (!CODES.includes(box.code)) continue;
    if (!rows.has(box.text)) rows.set(box.text, {self: 0, total: 0});
    const row = rows.get(box.text);
    row.self += box.self;
    let above = box.parent;
    while (above && above.text !== box.text) above = above.parent;
    if (!above) row.total += box.total;
  }
  const sorted = [...rows].sort(([, a], [, b]) => b.self - a.self || b.total - a.total).slice(0, FUNCTION_ROWS);
  byId("functions-here").querySelector("caption").textContent = `Functions by self: ${flameView().name} of ` +
    `${byId("flame-place").selectedOptions[0].textContent.trim()}, ${sumText(root.total)}` +
    (sorted.length < rows.size ? `: the largest ${sorted.length} of ${grouped(rows.size)}` : "");
  byId("functions-here").querySelector("tbody").replaceChildren(...sorted.map(([text, {self, total}]) => {
    const row = element("tr");
    const shown = (sum) => flameView().unit === "ns" ? durationText(sum / 1e9) : grouped(sum);
    row.append(element("th", text, {scope: "row"}), ...[self, total].flatMap((sum) => [
      element("td", shown(sum), {class: "number", "data-value": sum}),
      element("td", percentText(sum, root.total), {class: "number", "data-value": sum})]));
    return row;
  }));
}

// Shows the chosen view, zoomed to the box with this key, or the whole graph if there is no such box.
function showFlames(key = "") {
  flames.graph = makeGraph();
  flames.zoom = flames.cursor = flames.graph.ofKey.get(key) ?? flames.graph.root;
  flames.back = [];
  byId("flame-view").value = flames.view;
  byId("flame-place").value = flames.place;
  byId("flame-search").value = flames.words;
  drawFlames();
  drawFunctions();
}

// Adds the processes and threads of all views to the list from which the user chooses.
function makePlaces() {
  const threads = new Set(stacks.views.flatMap(({self, below}) => [...self, ...below].map(({thread}) => thread)));
  const ofProcess = new Map();
  for (const thread of threads) {
    const process = processNumber(thread);
    if (!ofProcess.has(process)) ofProcess.set(process, []);
    ofProcess.get(process).push(thread);
  }
  for (const [process, itsThreads] of [...ofProcess].sort(([a], [b]) => a - b)) {
    byId("flame-place").append(element("option", processText(data.processes[process]) || "(others)", {value: `p${process}`}));
    byId("flame-place").append(...itsThreads.sort((a, b) => a - b).map((thread) =>
      element("option", `\u00a0\u00a0${threadText(data.threads[thread])}`, {value: `t${thread}`})));
  }
}

function makeFlames() {
  if (!stacks) return;
  byId("flame-view").append(...stacks.views.map(({name}, i) => element("option", name, {value: i})));
  byId("flame-place").closest(".pair").hidden = !stacks.hasThreads;
  if (stacks.hasThreads) makePlaces();
  const change = (id, event, apply) => byId(id).addEventListener(event, () => { apply(byId(id).value); writeAddress(); });
  change("flame-view", "change", (value) => { flames.view = Number(value); showFlames(); });
  change("flame-place", "change", (value) => { flames.place = value; showFlames(); });
  change("flame-search", "input", (value) => { flames.words = value.trim(); drawFlames(); });
  const whole = () => { zoomFlames(flames.graph.root); flames.back = []; };
  byId("flame-back").addEventListener("click", stepBack);
  byId("flame-whole").addEventListener("click", whole);
  const keys = {
    ArrowUp: () => moveCursor("up"), ArrowDown: () => moveCursor("down"), ArrowLeft: () => moveCursor("left"),
    ArrowRight: () => moveCursor("right"), Enter: () => zoomFlames(flames.cursor), Escape: stepBack, Backspace: stepBack, Home: whole,
  };
  byId("flames").addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || !Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    keys[event.key]();
  });
  const picture = byId("flame-picture");
  const boxAt = (target) => flames.graph.ofKey.get(target.getAttribute("data-key") ?? "none");
  picture.addEventListener("click", ({target}) => {
    const box = boxAt(target);
    if (box) zoomFlames(box);
  });
  picture.addEventListener("pointerover", ({target}) => {
    const box = boxAt(target);
    if (box && !target.firstChild) target.append(shape("title", {}, boxText(box)));
  });
  showFlames();
}

// Returns the parameters of the address that state what the graph shows.
function stackParameters() {
  if (!stacks) return {};
  const {view, place, words, zoom} = flames;
  return {...(view === 0 ? {} : {stacks: view}), ...(place === "" ? {} : {"stacks-of": place}),
    ...(words === "" ? {} : {"stacks-search": words}), ...(zoom.key === "" ? {} : {"stacks-zoom": zoom.key})};
}

function readStackParameters(parameters) {
  if (!stacks) return;
  const view = Number(parameters.get("stacks") ?? 0);
  flames.view = stacks.views[view] ? view : 0;
  const place = parameters.get("stacks-of") ?? "";
  flames.place = [...byId("flame-place").options].some(({value}) => value === place) ? place : "";
  flames.words = parameters.get("stacks-search") ?? "";
  showFlames(parameters.get("stacks-zoom") ?? "");
}
