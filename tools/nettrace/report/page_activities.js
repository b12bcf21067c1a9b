// ---- Activities: their trees, with self time, waiting time and the critical path.

const EVENTS_OF_NODE = 100;  // rows in the table of the events of an activity

const trees = data.trees.map((tree, number) => {
  const nodes = tree.nodes.map(([begin, end, self, waiting, critical, kind, thread, parent, hasEnded, isCritical, id], index) => ({
    begin: Number(begin), end: Number(end), self: Number(self), waiting: Number(waiting), critical: Number(critical),
    kind, thread, parent, hasEnded: hasEnded === 1, isCritical: isCritical === 1, id, index, depth: 0, children: []}));
  for (const node of nodes.slice(1)) {
    node.depth = nodes[node.parent].depth + 1;
    nodes[node.parent].children.push(node);
  }
  const root = data.activities.shown[number];
  root.tree = number;
  return {...tree, number, root, nodes, events: null};
});

// The activities of all trees, by their ids and by their threads.
const nodesOfId = new Map(), nodesOfThread = new Map();
for (const tree of trees) {
  for (const node of tree.nodes) {
    for (const [map, key] of [[nodesOfId, node.id], [nodesOfThread, node.thread]]) {
      if (!map.has(key)) map.set(key, []);
      map.get(key).push({tree, node});
    }
  }
}

const runsAt = (node, time) => node.begin <= time && node.end >= time;

// Returns the tree and the activity in it that an event belongs to, or undefined. Among several
// trees, the longest one is returned; within it, the innermost activity.
function homeOf(event) {
  const id = event.event.activityId;
  const among = (id ? nodesOfId.get(id) : nodesOfThread.get(event.thread)) ?? [];
  return among.filter(({node}) => runsAt(node, event.at)).sort((a, b) =>
    (b.tree.root.end - b.tree.root.begin) - (a.tree.root.end - a.tree.root.begin) ||
    a.tree.number - b.tree.number || b.node.begin - a.node.begin || b.node.index - a.node.index)[0];
}

// Returns the events of the page inside of a tree, for each of its activities.
function eventsInside(tree) {
  if (tree.events) return tree.events;
  tree.events = tree.nodes.map(() => []);
  const ofId = new Map(), ofThread = new Map();
  const add = (map, key, node) => { if (!map.has(key)) map.set(key, []); map.get(key).push(node); };
  for (const node of tree.nodes) {
    add(ofId, node.id, node);
    add(ofThread, node.thread, node);
  }
  // Returns the last of `nodes` that runs at `time`. If none runs, returns the last one that has begun by
  // `time` if `canHaveEnded`, else undefined.
  const nodeAt = (nodes, time, canHaveEnded) => nodes?.findLast((node) => runsAt(node, time)) ??
    (canHaveEnded ? nodes?.findLast((node) => node.begin <= time) : undefined);
  const [from, to] = rangeOf(events, tree.root.begin, tree.root.end);
  for (let i = from; i < to; ++i) {
    const {at, thread, event} = events[i];
    let node;
    if (event.activityId) {
      node = nodeAt(ofId.get(event.activityId), at, true);
      if (!node && event.relatedActivityId) {
        node = nodeAt(ofId.get(event.relatedActivityId), at, true);
        if (node) add(ofId, event.activityId, node);  // an activity whose start the tree lacks
      }
    } else {
      node = nodeAt(ofThread.get(thread), at, false);
    }
    if (node) tree.events[node.index].push(events[i]);
  }
  return tree.events;
}

const ticksText = (ticks) => durationText(ticksToSeconds(ticks));
const exactTime = (ticks) => timeText(ticks, 1e-6 * data.ticksPerSecond);
const kindText = (index) => data.kinds[index].name || "(no name)";
const placeText = (thread) => [processText(processOf(data.threads[thread])), threadText(data.threads[thread])].filter((part) => part !== "").join(", ");

function treeText(tree) {
  return `${kindText(tree.root.kind)}, ${ticksText(tree.root.end - tree.root.begin)}, ${tree.isTypical ? "typical" : "slow"}, ` +
    `at ${exactTime(tree.root.begin)}`;
}

// Returns the tree that is shown beside `tree`, or undefined.
function besideOf(tree) {
  if (state.beside === "none") return undefined;
  const chosen = trees[Number(state.beside)];
  if (state.beside !== "" && chosen && chosen !== tree && chosen.root.kind === tree.root.kind) return chosen;
  return trees.find((other) => other !== tree && other.isTypical && other.root.kind === tree.root.kind);
}

function barOf(tree, node) {
  const width = Math.max(1, tree.root.end - tree.root.begin);
  const x = (time) => (time - tree.root.begin) / width * 100;
  const svg = shape("svg", {viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true", class: "bar"});
  svg.append(shape("rect", {x: x(node.begin).toFixed(2), y: node.isCritical ? 0 : 2, width: Math.max(1, x(node.end) - x(node.begin)).toFixed(2),
    height: node.isCritical ? 10 : 6, class: `series-${seriesOfKind[node.kind]}`}));
  return svg;
}

function rowOf(tree, node) {
  const row = element("tr");
  const isChosen = state.node?.tree === tree.number && state.node.index === node.index;
  const heading = element("th", undefined, {scope: "row"});
  const button = element("button", undefined, {type: "button", "data-node": node.index, tabindex: isChosen || (node.index === 0 && state.node?.tree !== tree.number) ? 0 : -1});
  button.append(element("span", `Level ${node.depth + 1}: `, {class: "unseen"}), `${node.isCritical ? "◆ " : ""}${kindText(node.kind)}`);
  if (isChosen) {
    row.className = "selected";
    button.setAttribute("aria-current", "true");
  }
  button.addEventListener("click", () => chooseNode(tree, node));
  heading.style.setProperty("--depth", Math.min(node.depth, 12));
  heading.append(button);
  const bar = element("td");
  bar.append(barOf(tree, node));
  const number = (text) => element("td", text, {class: "number"});
  const isElsewhere = node.index !== 0 && tree.nodes[node.parent].thread !== node.thread;
  row.append(heading, bar, number(ticksText(node.end - node.begin) + (node.hasEnded ? "" : " or more")), number(ticksText(node.self)),
    number(ticksText(node.waiting)), number(node.isCritical ? ticksText(node.critical) : "-"),
    element("td", (isElsewhere ? "→ " : "") + placeText(node.thread)));
  return row;
}

function drawTree(box, tree) {
  box.hidden = !tree;
  if (!tree) return;
  const heading = element("h3", treeText(tree));
  const {nodes} = tree;
  if (nodes.length === 0) {
    box.replaceChildren(heading, element("p", "Its tree is not in this page, because the page is too small. Use a larger --size.", {class: "note"}));
    return;
  }
  const table = element("table");
  table.append(element("caption", `${counted(nodes.length - 1, "activity").replace("activitys", "activities")} inside`));
  const head = element("tr");
  for (const name of ["Activity", "Time", "Duration", "Self", "Waiting", "Critical path", "Process, thread"]) head.append(element("th", name, {scope: "col"}));
  const body = element("tbody");
  // Children follow their parent, in order of time.
  const pending = [nodes[0]];
  while (pending.length > 0) {
    const node = pending.pop();
    if (!byId("only-critical").checked || node.isCritical) body.append(rowOf(tree, node));
    pending.push(...node.children.toReversed());
  }
  table.append(element("thead"), body);
  table.tHead.append(head);
  table.addEventListener("keydown", (event) => {
    const by = {ArrowUp: -1, ArrowDown: 1}[event.key];
    const buttons = [...body.querySelectorAll("button")];
    const next = buttons[buttons.indexOf(document.activeElement) + by];
    if (by === undefined) return;
    event.preventDefault();
    next?.focus();
  });
  const scroll = element("div", undefined, {class: "scroll", role: "region", tabindex: "0", "aria-label": `Tree: ${treeText(tree)}`});
  scroll.append(table);
  const inPage = eventsInside(tree).reduce((sum, list) => sum + list.length, 0);
  const notes = [inPage >= Number(tree.inside) ? `All ${counted(tree.inside, "event")} inside ${Number(tree.inside) === 1 ? "is" : "are"} in this page.`
    : `${grouped(inPage)} of ${counted(tree.inside, "event")} inside are in this page.`];
  if (Number(tree.leftOut) > 0) notes.push(`${grouped(tree.leftOut)} more activities inside are left out; the self times include them.`);
  box.replaceChildren(heading, scroll, element("p", notes.join(" "), {class: "note"}));
}

// Shows the self times of two trees by kind: the 20 kinds with the largest difference, in descending
// order of it.
function drawDifference(tree, other) {
  const box = byId("difference");
  box.hidden = !other || tree.nodes.length === 0 || other.nodes.length === 0;
  if (box.hidden) return;
  const rows = new Map();
  [tree, other].forEach(({nodes}, side) => {
    for (const node of nodes) {
      if (!rows.has(node.kind)) rows.set(node.kind, {count: [0, 0], self: [0, 0]});
      const row = rows.get(node.kind);
      ++row.count[side];
      row.self[side] += node.self;
    }
  });
  const difference = ({self}) => self[0] - self[1];
  box.querySelector("tbody").replaceChildren(...[...rows].sort((a, b) => Math.abs(difference(b[1])) - Math.abs(difference(a[1]))).slice(0, 20).map(([kind, row]) => {
    const made = element("tr");
    const change = difference(row);
    made.append(element("th", kindText(kind), {scope: "row"}), ...[row.count[0], ticksText(row.self[0]), row.count[1], ticksText(row.self[1]),
      (change < 0 ? "−" : "+") + ticksText(Math.abs(change))].map((text) => element("td", String(text), {class: "number"})));
    return made;
  }));
}

// Returns the length in ticks of the longest part of an activity's self time without an event on the
// page, and the name of the event or activity before this part.
function longestQuiet(tree, node) {
  const parts = [...eventsInside(tree)[node.index].map(({at, kind}) => [at, at, kindText(kind)]),
    ...node.children.map(({begin, end, kind}) => [begin, end, kindText(kind)]), [node.end, node.end, ""]].sort((a, b) => a[0] - b[0]);
  let longest = {ticks: 0, after: ""}, until = node.begin, after = "its start";
  for (const [begin, end, name] of parts) {
    if (begin - until > longest.ticks) longest = {ticks: begin - until, after};
    if (end >= until) [until, after] = [end, name];
  }
  return longest;
}

function drawNode() {
  const box = byId("inside");
  const tree = state.node && trees[state.node.tree], node = tree?.nodes[state.node.index];
  box.hidden = !node;
  if (!node) return;
  const list = eventsInside(tree)[node.index];
  const quiet = longestQuiet(tree, node);
  byId("inside-heading").textContent = `${kindText(node.kind)}: ${counted(list.length, "event")}`;
  byId("inside-facts").textContent = `${placeText(node.thread)}. ` +
    `${node.hasEnded ? "It took" : "It did not end in this time. It took at least"} ${ticksText(node.end - node.begin)}: ` +
    `${ticksText(node.self)} itself, ${ticksText(node.waiting)} waiting for others. ` +
    (quiet.ticks > 0 ? `Longest time without an event or another activity: ${ticksText(quiet.ticks)}, after ${quiet.after}. ` : "") +
    `Activity id: ${node.id}.` + (list.length > EVENTS_OF_NODE ? ` The first ${EVENTS_OF_NODE} events are listed.` : "");
  byId("inside-events").tBodies[0].replaceChildren(...list.slice(0, EVENTS_OF_NODE).map((event) => {
    const row = element("tr");
    const heading = element("th", undefined, {scope: "row"});
    const button = element("button", exactTime(event.at), {type: "button"});
    button.addEventListener("click", () => {
      select(event);
      byId("details").scrollIntoView({block: "nearest"});
      byId("details").focus({preventScroll: true});
    });
    heading.append(button);
    const fields = JSON.stringify(event.event.payload ?? {});
    row.append(heading, element("td", `+${ticksText(event.at - node.begin)}`, {class: "number"}), element("td", kindText(event.kind)),
      element("td", LEVELS[event.event.level] ?? "", {class: levelClass(event.event.level)}), element("td", threadText(data.threads[event.thread])),
      element("td", fields.length > 200 ? fields.slice(0, 200) + "…" : fields));
    return row;
  }));
}

function drawActivity() {
  if (trees.length === 0) return;
  const tree = trees[state.tree ?? 0];
  const other = besideOf(tree);
  byId("activity-of").value = tree.number;
  const option = (value, text) => element("option", text, {value});
  byId("beside-it").replaceChildren(option("none", "nothing"),
    ...trees.filter((one) => one !== tree && one.root.kind === tree.root.kind).map((one) => option(one.number, treeText(one))));
  byId("beside-it").value = other?.number ?? "none";
  drawTree(byId("tree"), tree);
  drawTree(byId("tree-beside"), other);
  drawDifference(tree, other);
  drawNode();
}

// Shows the tree with this number. `beside` is the number of the tree beside it, "none", or "" for the
// typical tree of its kind.
function openTree(number, beside = "") {
  state.tree = number;
  state.beside = beside;
  state.node = trees[number].nodes.length > 0 ? {tree: number, index: 0} : null;
  drawActivity();
  writeAddress();
}

function chooseNode(tree, node) {
  state.tree ??= 0;
  state.node = {tree: tree.number, index: node.index};
  const focused = document.activeElement?.closest("#tree, #tree-beside");
  drawActivity();
  if (focused) focused.querySelector(`[data-node="${node.index}"]`)?.focus({preventScroll: true});
  writeAddress();
}

// Shows the tree that an event or activity belongs to, and moves the focus to the activity `node` in it.
function follow({tree, node}) {
  if (state.tree !== tree.number) openTree(tree.number);
  chooseNode(tree, node);
  byId("activities").scrollIntoView();
  byId("tree").querySelector(`[data-node="${node.index}"]`)?.focus({preventScroll: true});
}

// Returns the buttons of an event or activity that lead to its tree and to the events with its id.
function followButtons(home, id) {
  const button = (text, action) => {
    const made = element("button", text, {type: "button"});
    made.addEventListener("click", action);
    return made;
  };
  return [...(home ? [button("Follow its activity", () => follow(home))] : []), ...(id ? [button("All events with its activity id", () => {
    byId("search").value = id;
    setWindow(0, whole);
    search();
    byId("events").scrollIntoView();
  })] : [])];
}

function makeActivities() {
  byId("activity-part").hidden = trees.length === 0;
  byId("no-activity").hidden = trees.length !== 0;
  const groups = new Map();
  for (const tree of trees) {
    if (!groups.has(tree.root.kind)) {
      const kind = data.kinds[tree.root.kind];
      groups.set(tree.root.kind, element("optgroup", undefined, {label: `${kind.name} (${kind.provider})`}));
    }
    groups.get(tree.root.kind).append(element("option", treeText(tree), {value: tree.number}));
  }
  byId("activity-of").append(...groups.values());
  byId("activity-of").addEventListener("change", () => openTree(Number(byId("activity-of").value)));
  byId("beside-it").addEventListener("change", () => {
    state.tree ??= 0;
    state.beside = byId("beside-it").value;
    if (state.node && state.node.tree !== state.tree) state.node = null;
    drawActivity();
    writeAddress();
  });
  byId("only-critical").addEventListener("change", drawActivity);
  byId("show-node").addEventListener("click", () => {
    const node = trees[state.node.tree].nodes[state.node.index];
    const margin = (node.end - node.begin) / 10;
    setWindow(node.begin - margin, node.end + margin);
    byId("timeline").scrollIntoView();
  });
}

// Returns the parameters of the address that state which activities are shown.
function activityParameters() {
  if (state.tree === null) return {};
  return {activity: state.tree, ...(state.node && (state.node.tree !== state.tree || state.node.index !== 0) ?
    {node: (state.node.tree === state.tree ? "" : "beside-") + state.node.index} : {}),
    ...(state.beside === "" ? {} : {beside: state.beside})};
}

function readActivityParameters(parameters) {
  const tree = trees[Number(parameters.get("activity") ?? NaN)];
  state.tree = tree?.number ?? null;
  state.node = null;
  state.beside = tree ? parameters.get("beside") ?? "" : "";
  if (tree) {
    const [, isBeside, index] = (parameters.get("node") ?? "0").match(/^(beside-)?(\d+)$/) ?? [];
    const holder = isBeside ? besideOf(tree) : tree;
    if (holder?.nodes[Number(index)]) state.node = {tree: holder.number, index: Number(index)};
  }
  drawActivity();
}

