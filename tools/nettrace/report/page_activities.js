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
// trees, returns the one whose root lasts longest, and in it the innermost activity. Prefers the
// trees in `data` to the trees that makeTree has made of the events in the page.
function homeOf(event) {
  const id = event.event.activityId;
  const among = (id ? nodesOfId.get(id) : nodesOfThread.get(event.thread)) ?? [];
  return among.filter(({node}) => runsAt(node, event.at)).sort((a, b) =>
    Number(a.tree.isMade ?? false) - Number(b.tree.isMade ?? false) ||
    (b.tree.root.end - b.tree.root.begin) - (a.tree.root.end - a.tree.root.begin) ||
    a.tree.number - b.tree.number || b.node.begin - a.node.begin || b.node.index - a.node.index)[0];
}

// ---- Trees of other activities, which are made of the events and activities in the page.

const MADE_NODES = 200;  // maximum number of activities in such a tree
const MADE_DEPTH = 32;   // maximum number of activities from the chosen one to the outermost one

let inPage = null;
// Returns the events and activities of the page, by their activity ids and by their related ids.
function idsInPage() {
  if (inPage) return inPage;
  inPage = {own: new Map(), related: new Map()};
  const add = (map, key, item) => {
    if (!key) return;
    if (!map.has(key)) map.set(key, {events: [], activities: []});
    map.get(key)[item.event ? "events" : "activities"].push(item);
  };
  for (const item of events) {
    add(inPage.own, item.event.activityId, item);
    add(inPage.related, item.event.relatedActivityId, item);
  }
  for (const item of data.activities.shown) {
    add(inPage.own, item.id, item);
    add(inPage.related, item.related, item);
  }
  return inPage;
}

// Returns what the page has of the activity with this id at `time`, or undefined. Its begin and end
// are exact if the page has the activity; else they are the times of its events.
function activityInPage(id, time) {
  const known = idsInPage().own.get(id);
  const activity = known?.activities.filter((one) => runsAt(one, time)).sort((a, b) => b.begin - a.begin)[0];
  let own = known?.events ?? [];
  if (activity) {
    own = own.filter(({at}) => runsAt(activity, at));
  } else {
    // The next start with the id is that of another activity.
    const starts = own.filter(({event}) => event.opcode === 1).map(({at}) => at);
    const from = starts.findLast((at) => at <= time) ?? -Infinity, until = starts.find((at) => at > time) ?? Infinity;
    own = own.filter(({at}) => at >= from && at < until);
  }
  if (!activity && own.length === 0) return undefined;
  const {kind, thread} = activity ?? own[0];
  return {id, kind, thread, begin: activity?.begin ?? own[0].at, end: activity?.end ?? own.at(-1).at, hasEnded: activity !== undefined,
    events: own, outer: activity?.related ?? own.find(({event}) => event.relatedActivityId)?.event.relatedActivityId};
}

// Returns the activities from the outermost one that the page has to the one with this id at `time`.
function pathInPage(id, time) {
  const path = [activityInPage(id, time)];
  while (path[0]?.outer && path.length < MADE_DEPTH && !path.some((one) => one.id === path[0].outer)) {
    const outer = activityInPage(path[0].outer, path[0].begin);
    if (!outer) break;
    path.unshift(outer);
  }
  return path[0] ? path : [];
}

// Returns the length of the time in which at least one of the nodes runs within `outer`.
function timeOf(nodes, outer) {
  let sum = 0, until = outer.begin;
  for (const {begin, end} of nodes.toSorted((a, b) => a.begin - b.begin)) {
    const to = Math.min(end, outer.end);
    sum += Math.max(0, to - Math.max(begin, until));
    until = Math.max(until, to);
  }
  return sum;
}

// Makes the tree of the activity with this id at `time`, and returns the tree and the activity in it.
// Returns undefined if the page has nothing of the activity.
function makeTree(id, time) {
  const address = `${id}@${time}`;
  const made = trees.find((tree) => tree.address === address);
  if (made) return {tree: made, node: made.nodes.find((node) => node.id === id)};
  const path = pathInPage(id, time);
  if (path.length === 0) return undefined;
  const nodes = [];
  const add = (activity, parent) => nodes.push({...activity, parent, index: nodes.length, depth: nodes.length === 0 ? 0 : nodes[parent].depth + 1,
    children: [], critical: 0, isCritical: false});
  path.forEach((activity, i) => add(activity, Math.max(0, i - 1)));
  const chosen = nodes.at(-1), ids = new Set(nodes.map((node) => node.id));
  for (let i = 0; i < nodes.length; ++i) {
    const inner = idsInPage().related.get(nodes[i].id);
    for (const item of inner ? [...inner.events, ...inner.activities] : []) {
      const itsId = item.event ? item.event.activityId : item.id;
      if (!itsId || ids.has(itsId) || nodes.length >= MADE_NODES || (nodes[i].hasEnded && !runsAt(nodes[i], item.at))) continue;
      ids.add(itsId);
      add(activityInPage(itsId, item.at), i);
    }
  }
  for (const node of nodes.slice(1).reverse()) {
    const parent = nodes[node.parent];
    parent.children.unshift(node);
    if (parent.hasEnded) continue;
    // The page may lack some of the parent's own events, so its times must include those of its children.
    parent.begin = Math.min(parent.begin, node.begin);
    parent.end = Math.max(parent.end, node.end);
  }
  for (const node of nodes) {
    node.children.sort((a, b) => a.begin - b.begin);
    const all = timeOf(node.children, node);
    node.self = node.end - node.begin - all;
    node.waiting = all - timeOf(node.children.filter(({thread}) => thread === node.thread), node);
  }
  const {begin, end, kind, thread} = nodes[0];
  const tree = {isMade: true, isTypical: false, inside: 0, leftOut: 0, number: trees.length, root: {begin, end, kind, thread, id: nodes[0].id}, nodes,
    events: nodes.map((node) => node.events), address};
  trees.push(tree);
  for (const node of nodes) {
    if (!nodesOfId.has(node.id)) nodesOfId.set(node.id, []);
    nodesOfId.get(node.id).push({tree, node});
  }
  byId("activity-part").hidden = false;
  byId("no-activity").hidden = true;
  let group = byId("made-trees");
  if (!group) {
    group = element("optgroup", undefined, {id: "made-trees", label: "Only the events in this page"});
    byId("activity-of").append(group);
  }
  group.append(element("option", treeText(tree), {value: tree.number}));
  return {tree, node: chosen};
}

// Returns, for each activity of a tree, the events of the page that belong to the activity.
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
  const which = tree.isMade ? "of the events in this page" : tree.isTypical ? "typical" : "slow";
  return `${kindText(tree.root.kind)}, ${ticksText(tree.root.end - tree.root.begin)}, ${which}, ` +
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
  const count = eventsInside(tree).reduce((sum, list) => sum + list.length, 0);
  const notes = [tree.isMade ? `Only the events in this page: ${grouped(count)}. The times are those of these events; other events and activities may be missing.`
    : count >= Number(tree.inside) ? `All ${counted(tree.inside, "event")} inside ${Number(tree.inside) === 1 ? "is" : "are"} in this page.`
    : `${grouped(count)} of ${counted(tree.inside, "event")} inside are in this page.`];
  if (Number(tree.leftOut) > 0) notes.push(`${grouped(tree.leftOut)} more activities inside are left out; the self times include them.`);
  box.replaceChildren(heading, scroll, element("p", notes.join(" "), {class: "note"}));
}

// Shows the self times of two trees by kind: the 20 kinds with the largest differences between the
// trees, in descending order of the difference.
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

// Finds the longest part of an activity's self time without an event on the page. Returns its length
// in ticks, and the name of the event or activity before it.
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
    `${node.hasEnded ? "It took" : tree.isMade ? "Its events in this page took" : "It did not end in this time. It took at least"} ${ticksText(node.end - node.begin)}: ` +
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

// Returns the buttons of an event or activity at `time`. One leads to its tree (`home` if the page has this tree), and
// one to the events with the activity id `id`.
function followButtons(home, id, time) {
  const button = (text, action) => {
    const made = element("button", text, {type: "button"});
    made.addEventListener("click", action);
    return made;
  };
  return [...(home || id ? [button("Follow its activity", () => follow(home ?? makeTree(id, time)))] : []), ...(id ? [button("All events with its activity id", () => {
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
  const {address} = trees[state.tree];
  return {activity: address ?? state.tree, ...(state.node && (state.node.tree !== state.tree || state.node.index !== 0) ?
    {node: (state.node.tree === state.tree ? "" : "beside-") + state.node.index} : {}),
    ...(state.beside === "" ? {} : {beside: state.beside})};
}

function readActivityParameters(parameters) {
  const named = parameters.get("activity") ?? "";
  const [, id, time] = named.match(/^([0-9a-f-]{36})@(\d+)$/) ?? [];
  const tree = id ? makeTree(id, Number(time))?.tree : trees[named === "" ? NaN : Number(named)];
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

