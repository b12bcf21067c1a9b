// Draws the JSON data of the page. Text from the trace is inserted only as text nodes and values of
// attributes, so that no browser interprets it as HTML.
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const PAGE = 25;  // number of events that the list shows at once
const LANE_HEIGHT = 36;  // px
// Converts members to numbers. Integers above 2^53 are text in the JSON. The loss of precision is
// not visible in a drawing.
function asNumbers(holder, ...names) {
  for (const name of names) holder[name] = Number(holder[name]);
}
asNumbers(data, "ticks", "ticksPerSecond");
asNumbers(data.overTime, "start", "width");
asNumbers(data.threadsOverTime, "start", "width");
if (data.overTime.kinds) asNumbers(data.overTime.kinds, "start", "width");
for (const activity of data.activities.shown) {
  asNumbers(activity, "begin", "end");
  activity.at = activity.begin;  // step() and rangeOf() find events and activities by `at`
}
const events = data.singleEvents;
const ticksToSeconds = (ticks) => ticks / data.ticksPerSecond;
const whole = Math.max(data.ticks, 1);
// Minimum length of the visible time window, in ticks.
const shortest = Math.min(whole, Math.max(20, data.ticksPerSecond * 2e-8));
const state = {from: 0, to: whole, selected: null, lane: 0, page: 0, matches: events, home: [0, whole],
  tree: null, node: null, beside: ""};
const LEVELS = ["0", "1 critical", "2 error", "3 warning", "4 information", "5 verbose"];
const levelClass = (level) => level === 1 || level === 2 ? "error" : level === 3 ? "warning" : "";

function element(tag, text, attributes = {}) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

function shape(tag, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

const SERIES = 8;  // colours; the last one is for all other kinds, or providers
const kindsByEvents = [...data.kinds.keys()].sort((a, b) => data.kinds[b].events - data.kinds[a].events);
const seriesOfKind = [];
kindsByEvents.forEach((kind, rank) => { seriesOfKind[kind] = Math.min(rank, SERIES - 1); });

// Returns a square in the colour of a series, or the mark of lost events.
function swatch(className) {
  const made = shape("svg", {viewBox: "0 0 12 12", "aria-hidden": "true"});
  made.append(className === "lost" ? shape("path", {d: "M6 12l-6 -12h12z", class: className})
    : shape("rect", {width: 12, height: 12, class: className}));
  return made;
}

const grouped = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, ",");

const counted = (number, name) => `${grouped(number)} ${name}${Number(number) === 1 ? "" : "s"}`;

function durationText(seconds) {
  for (const [size, unit] of [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]]) {
    if (seconds >= size) return `${Number((seconds / size).toPrecision(3))} ${unit}`;
  }
  return `${Number((seconds * 1e9).toPrecision(3))} ns`;
}

// Formats a time since the start of the file, precise to a thousandth of `span` ticks.
function timeText(ticks, span) {
  const digits = Math.min(9, Math.max(0, Math.ceil(3 - Math.log10(ticksToSeconds(span)))));
  return `+${ticksToSeconds(ticks).toFixed(digits)} s`;
}

function processText(process) {
  if (process === undefined) return "";
  return `${process.pid ?? "?"}${process.name ? " " + process.name : ""}${process.host === undefined ? "" : " on " + data.hosts[process.host]}`;
}

function threadText(thread) {
  return [thread.tid ?? "", thread.name].filter((part) => part !== "").join(" ") || "?";
}

const processOf = (thread) => data.processes[thread.process];

// Returns the first index, and the index after the last one, of the items in `sorted` whose `at` is
// from `from` to `to`.
function rangeOf(sorted, from, to) {
  const firstNot = (isBefore) => {
    let low = 0, high = sorted.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (isBefore(sorted[middle].at)) low = middle + 1; else high = middle;
    }
    return low;
  };
  return [firstNot((at) => at < from), firstNot((at) => at <= to)];
}

// ---- The visible time window.

let drawing = false;
let drawnChart = "";  // the window and width that the chart shows
function redraw() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    // Reads all widths before the first change, because a browser must lay out the page again to read a width after a
    // change.
    const chartWidth = chart.clientWidth, lanesWidth = byId("times").clientWidth;
    const view = `${state.from} ${state.to} ${chartWidth}`;
    if (view !== drawnChart) drawChart(chartWidth);
    drawnChart = view;
    drawLanes(lanesWidth);
    drawList();
    writeAddress();
  });
}

function setWindow(from, to) {
  const span = Math.min(whole, Math.max(shortest, to - from));
  const middle = (from + to) / 2;
  state.from = Math.min(Math.max(0, middle - span / 2), whole - span);
  state.to = state.from + span;
  state.page = 0;
  redraw();
}

const span = () => state.to - state.from;
const move = (parts) => setWindow(state.from + span() * parts, state.to + span() * parts);
function zoom(factor) {
  const at = state.selected && state.selected.at >= state.from && state.selected.at <= state.to
    ? state.selected.at : (state.from + state.to) / 2;
  setWindow(at - (at - state.from) * factor, at + (state.to - at) * factor);
}

// Calls `start` when a pointer is pressed on `target`, `along` when it moves while pressed, and `end`
// when it is released. Each of these functions receives the position of the pointer: `x` is a fraction
// of the width of `target`; `y` is in pixels.
function onDrag(target, {start, along, end}) {
  let from = null;
  const part = (event) => {
    const box = target.getBoundingClientRect();
    return {x: (event.clientX - box.left) / box.width, y: event.clientY - box.top, width: box.width};
  };
  target.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    from = part(event);
    target.setPointerCapture(event.pointerId);
    start?.(from);
  });
  target.addEventListener("pointermove", (event) => { if (from) along?.(from, part(event)); });
  target.addEventListener("pointerup", (event) => {
    if (from) end?.(from, part(event));
    from = null;
  });
  target.addEventListener("pointercancel", () => { from = null; });
}

const isClick = (from, to) => Math.abs(from.x - to.x) * to.width < 5;

// ---- Events over time.

const chart = byId("chart");
const CHART = {height: 200, top: 34, bottom: 22};

// Returns the times between `from` and `to` at which an axis of `width` pixels has labels, and the
// number of ticks between two labels.
function axisTimes(from, to, width) {
  const about = ticksToSeconds(to - from) / Math.max(2, Math.floor(width / 130));
  const power = 10 ** Math.floor(Math.log10(about));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= about) * data.ticksPerSecond;
  const times = [];
  for (let time = Math.ceil(from / step) * step; time <= to; time += step) times.push(time);
  return [times, step];
}

function drawChart(width) {
  const {kinds, lost} = data.overTime;
  // If there is only one provider, the chart shows its kinds of events, which are counted in wider buckets.
  const {start, width: ticks, series} = kinds ?? {...data.overTime, series: data.overTime.providers};
  if (width === 0) return;
  chart.setAttribute("viewBox", `0 0 ${width} ${CHART.height}`);
  const x = (time) => Math.min(1, Math.max(0, time / whole)) * width;
  const parts = series[0]?.counts.length ?? 0;
  const together = Math.max(1, Math.ceil(parts / (width / 3)));
  const sum = (counts, from) => {
    let total = 0;
    for (let i = from; i < Math.min(counts.length, from + together); ++i) total += Number(counts[i]);
    return total;
  };
  const ground = CHART.height - CHART.bottom;
  let most = 0;
  for (let i = 0; i < parts; i += together) {
    most = Math.max(most, series.reduce((total, {counts}) => total + sum(counts, i), 0));
  }
  const paths = series.map(() => "");
  for (let i = 0; i < parts; i += together) {
    const left = x(start + i * ticks);
    const size = Math.max(1, x(start + (i + together) * ticks) - left - 0.5);
    let y = ground;
    series.forEach(({counts}, number) => {
      const height = sum(counts, i) / Math.max(1, most) * (ground - CHART.top);
      if (height > 0) paths[number] += `M${left.toFixed(1)} ${(y - height).toFixed(1)}h${size.toFixed(1)}v${height.toFixed(1)}h-${size.toFixed(1)}z`;
      y -= height;
    });
  }
  const shapes = paths.map((d, number) => shape("path", {d, class: `series-${number}`}));
  const lostTogether = Math.max(1, Math.ceil(lost.length / (width / 3)));
  let lostPath = "";
  for (let i = 0; i < lost.length; i += lostTogether) {
    if (lost.slice(i, i + lostTogether).every((count) => Number(count) === 0)) continue;
    const middle = data.overTime.start + (i + lostTogether / 2) * data.overTime.width;
    lostPath += `M${x(middle).toFixed(1)} 30l-5 -10h10z`;
  }
  shapes.push(shape("path", {d: lostPath, class: "lost"}));
  shapes.push(shape("path", {d: `M0 ${ground + 0.5}H${width}`, class: "axis"}));
  shapes.push(shape("text", {x: 0, y: 13},
    `highest: ${counted(most, "event")} in ${durationText(ticksToSeconds(ticks * together))}`));
  const [times, step] = axisTimes(0, whole, width);
  for (const time of times) {
    if (x(time) > width - 60) continue;
    shapes.push(shape("path", {d: `M${x(time).toFixed(1)} ${ground}v5`, class: "axis"}));
    shapes.push(shape("text", {x: x(time) + 3, y: CHART.height - 5}, timeText(time, step * 1000)));
  }
  if (span() < whole) {
    shapes.push(shape("rect", {x: x(state.from), y: 16, width: Math.max(2, x(state.to) - x(state.from)),
      height: ground - 16, class: "window"}));
  }
  chart.replaceChildren(...shapes);
  chart.setAttribute("aria-label", `Events over time: ${counted(data.events, "event")} of ${counted(data.overTime.providers.length, "provider")} in ` +
    `${durationText(ticksToSeconds(data.ticks))}, ${grouped(data.lost)} lost. The table below has the numbers.`);
}

function makeLegend() {
  const entry = (className, text) => {
    const made = element("li");
    made.append(swatch(className), element("span", text));
    return made;
  };
  const total = (counts) => counts.reduce((sum, count) => sum + Number(count), 0);
  const {kinds, providers} = data.overTime;
  byId("legend").append(
    ...(kinds?.series ?? providers).map(({name, counts}, i) => entry(`series-${i}`, `${name || "(no name)"}: ${grouped(total(counts))}`)),
    ...(Number(data.lost) > 0 ? [entry("lost", `lost events: ${grouped(data.lost)}`)] : []));
  const shown = kindsByEvents.length > SERIES ? SERIES - 1 : kindsByEvents.length;
  byId("kinds-legend").append(
    ...kindsByEvents.slice(0, shown).map((kind, i) => entry(`series-${i}`, kindText(kind) + (providers.length > 1 ? ` (${data.kinds[kind].provider})` : ""))),
    ...(kindsByEvents.length > shown ? [entry(`series-${SERIES - 1}`, "other kinds")] : []));
  onDrag(chart, {
    along: (from, to) => {
      if (!isClick(from, to)) setWindow(Math.min(from.x, to.x) * whole, Math.max(from.x, to.x) * whole);
    },
    end: (from, to) => {
      if (isClick(from, to)) setWindow(to.x * whole - span() / 2, to.x * whole + span() / 2);
    },
  });
}

// ---- The timeline: a lane for each thread.

const lanes = [];

function makeLanes() {
  const ofThread = new Map();
  for (const {thread, counts} of data.threadsOverTime.lanes) {
    ofThread.set(thread, {thread, counts: counts.map(Number), events: [], matches: [], activities: [], allActivities: []});
  }
  for (const event of events) ofThread.get(event.thread)?.events.push(event);
  for (const activity of data.activities.shown) ofThread.get(activity.thread)?.allActivities.push(activity);
  const processes = new Map();
  for (const lane of ofThread.values()) {
    const key = data.threads[lane.thread].process ?? -1;
    if (!processes.has(key)) processes.set(key, []);
    processes.get(key).push(lane);
  }
  const box = byId("lanes");
  const times = element("div", undefined, {class: "lane"});
  times.append(element("span", Number(data.lost) > 0 ? "Lost events, time" : "Time"), shape("svg", {id: "times", role: "img"}));
  box.append(times);
  for (const [process, itsLanes] of processes) {
    box.append(element("h3", `Process ${processText(data.processes[process]) || "(others)"}`));
    for (const lane of itsLanes) {
      nest(lane.allActivities);
      lane.most = Math.max(1, ...lane.counts);
      lane.row = element("div", undefined, {class: "lane"});
      lane.svg = shape("svg", {role: "img"});
      lane.name = threadText(data.threads[lane.thread]);
      lane.row.append(element("span", lane.name), lane.svg);
      box.append(lane.row);
      const number = lanes.push(lane) - 1;
      let before = null;
      onDrag(lane.svg, {
        start: () => { before = [state.from, state.to]; },
        along: (from, to) => {
          const moved = (to.x - from.x) * (before[1] - before[0]);
          if (!isClick(from, to)) setWindow(before[0] - moved, before[1] - moved);
        },
        end: (from, to) => { if (isClick(from, to)) clickLane(number, to); },
      });
    }
  }
  const all = data.threads.length;
  byId("lanes-shown").textContent = [
    all > lanes.length ? `${lanes.length} of ${grouped(all)} threads are shown: those with the most events.` : "",
    data.activities.how,
  ].join(" ").trim();
}

// Assigns each activity to one of three levels of its lane, so that activities that overlap in time are drawn below
// each other. Activities on the third level overlap if there are more than three at a time.
function nest(activities) {
  activities.sort((a, b) => a.begin - b.begin || b.end - a.end);
  const ends = [];
  for (const activity of activities) {
    let level = ends.findIndex((end) => end <= activity.begin);
    if (level < 0) level = Math.min(ends.length, 2);
    ends[level] = activity.end;
    activity.level = level;
  }
}

function drawLane(lane, number, width) {
  const x = (time) => (time - state.from) / span() * width;
  const clamped = (time) => Math.min(width, Math.max(0, x(time)));
  const {start, width: ticks} = data.threadsOverTime;
  let density = "";
  // Does not draw the buckets of counts if they are wide and each event has a line, because the
  // lines show more.
  const tells = events.length < data.events || ticks / span() * width < 24;
  const first = tells ? Math.max(0, Math.floor((state.from - start) / ticks)) : lane.counts.length;
  for (let i = first; i < lane.counts.length && start + i * ticks <= state.to; ++i) {
    if (lane.counts[i] === 0) continue;
    const height = 4 + 18 * Math.log1p(lane.counts[i]) / Math.log1p(lane.most);
    density += `M${clamped(start + i * ticks).toFixed(1)} ${LANE_HEIGHT}v-${height.toFixed(1)}H${clamped(start + (i + 1) * ticks).toFixed(1)}v${height.toFixed(1)}z`;
  }
  const [from, to] = rangeOf(lane.matches, state.from, state.to);
  // The paths of each colour: the lines of events, and the bars of activities.
  const marks = Array(SERIES).fill(""), last = Array(SERIES).fill(-1), bars = Array(SERIES).fill("");
  const levelMarks = {error: "", warning: ""};
  for (let i = from; i < to; ++i) {
    const {at: time, kind, event} = lane.matches[i];
    const at = Math.round(x(time) * 2) / 2;
    const levelName = levelClass(event.level);
    // The lines of errors are longer than those of warnings, and these are longer than all others.
    if (levelName !== "" && !levelMarks[levelName].endsWith(`M${at} ${levelName === "error" ? 8 : 12}V${LANE_HEIGHT}`)) {
      levelMarks[levelName] += `M${at} ${levelName === "error" ? 8 : 12}V${LANE_HEIGHT}`;
    }
    const series = seriesOfKind[kind];
    if (at === last[series]) continue;
    last[series] = at;
    marks[series] += `M${at} 16V${LANE_HEIGHT}`;
  }
  let activities = 0;
  const covered = Array.from({length: SERIES}, () => [-1, -1, -1]);
  for (const {begin, end, level, kind} of lane.activities) {
    if (end < state.from || begin > state.to) continue;
    ++activities;
    const left = clamped(begin), right = Math.max(clamped(end), left + 1.5);
    const series = seriesOfKind[kind];
    if (right <= covered[series][level] + 0.2) continue;
    covered[series][level] = right;
    bars[series] += `M${left.toFixed(1)} ${1 + level * 5}H${right.toFixed(1)}v4H${left.toFixed(1)}z`;
  }
  lane.svg.setAttribute("viewBox", `0 0 ${width} ${LANE_HEIGHT}`);
  // Rare kinds are drawn above frequent ones.
  const inColours = (paths, name) => paths.map((d, i) => [d, `${name} series-${i}`]).filter(([d]) => d !== "")
    .map(([d, classes]) => shape("path", {d, class: classes}));
  const shapes = [shape("path", {d: density, class: "density"}), ...inColours(marks, "ticks"),
    ...Object.entries(levelMarks).filter(([, d]) => d !== "").reverse().map(([name, d]) => shape("path", {d, class: `ticks ${name}`})),
    ...inColours(bars, "activity")];
  const selected = state.selected;
  const until = selected?.end ?? selected?.at;
  if (selected && selected.thread === lane.thread && until >= state.from && selected.at <= state.to) {
    const top = selected.level === undefined ? 0 : 1 + selected.level * 5;
    const box = selected.level === undefined ? "" : `H${clamped(until).toFixed(1)}V${LANE_HEIGHT}`;
    shapes.push(shape("path", {d: `M${clamped(selected.at).toFixed(1)} ${LANE_HEIGHT}V${top}${box}`, class: "selected-mark"}));
  }
  lane.svg.replaceChildren(...shapes);
  lane.svg.setAttribute("aria-label", `Thread ${lane.name}: ${counted(to - from, "single event")} in this time, ` +
    `${grouped(activities)} ${activities === 1 ? "activity" : "activities"}`);
  lane.row.classList.toggle("current", number === state.lane);
}

// Draws the time axis of the timeline, and the losses in the visible time.
function drawTimes(width) {
  const svg = byId("times");
  const x = (time) => (time - state.from) / span() * width;
  const shapes = [];
  const [times, step] = axisTimes(state.from, state.to, width);
  for (const time of times) {
    shapes.push(shape("path", {d: `M${x(time).toFixed(1)} 24V${LANE_HEIGHT}`, class: "axis"}));
    if (x(time) < width - 70) shapes.push(shape("text", {x: x(time) + 3, y: LANE_HEIGHT - 2}, timeText(time, step * 1000)));
  }
  const {start, width: ticks, lost} = data.overTime;
  let marks = "", sum = 0;
  for (let i = 0; i < lost.length; ++i) {
    const from = start + i * ticks;
    if (Number(lost[i]) === 0 || from + ticks < state.from || from > state.to) continue;
    sum += Number(lost[i]);
    const left = Math.max(0, x(from)), right = Math.min(width, Math.max(x(from + ticks), left + 3));
    marks += `M${left.toFixed(1)} 4H${right.toFixed(1)}v12H${left.toFixed(1)}z`;
  }
  shapes.push(shape("path", {d: marks, class: "lost"}));
  svg.setAttribute("viewBox", `0 0 ${width} ${LANE_HEIGHT}`);
  svg.setAttribute("aria-label", `${counted(sum, "lost event")} in this time`);
  svg.replaceChildren(...shapes);
}

function drawLanes(width) {
  if (width !== 0) {
    drawTimes(width);
    lanes.forEach((lane, number) => drawLane(lane, number, width));
  }
  byId("window").textContent = `${timeText(state.from, span())} to ${timeText(state.to, span())} (${durationText(ticksToSeconds(span()))}) ` +
    `of ${durationText(ticksToSeconds(data.ticks))} since ${data.startTime}`;
}

function clickLane(number, {x, y, width}) {
  const lane = lanes[number];
  state.lane = number;
  const time = state.from + x * span();
  const near = 8 / width * span();
  if (y < 16) {
    const hit = lane.activities.filter(({begin, end}) => begin - near <= time && end + near >= time)
      .sort((a, b) => (a.end - a.begin) - (b.end - b.begin))[0];
    if (hit) { selectActivity(hit); return; }
  }
  const [from, to] = rangeOf(lane.matches, time - near, time + near);
  const hit = lane.matches.slice(from, to).sort((a, b) => Math.abs(a.at - time) - Math.abs(b.at - time))[0];
  if (hit) select(hit); else redraw();
}

// Selects the next (`direction` 1) or previous (-1) item of the current lane. Moves the time window
// to the item if it is not visible. `kind` is "matches" for events, or "activities".
function step(direction, kind) {
  const lane = lanes[state.lane];
  if (!lane || lane[kind].length === 0) return;
  const among = lane[kind];
  const {selected} = state;
  let index = among.indexOf(selected);
  if (index >= 0) {
    index += direction;
  } else {
    // Starts at the selected item if it is visible in this lane, else at the bounds of the window.
    const isHere = selected && selected.thread === lane.thread && selected.at >= state.from && selected.at <= state.to;
    const [from, to] = isHere ? rangeOf(among, selected.at, selected.at) : rangeOf(among, state.from, state.to);
    index = direction > 0 ? from : to - 1;
  }
  const next = among[Math.min(among.length - 1, Math.max(0, index))];
  if (next.at < state.from || next.at > state.to) setWindow(next.at - span() / 2, next.at + span() / 2);
  if (kind === "activities") selectActivity(next); else select(next);
}

function changeLane(by) {
  state.lane = Math.min(lanes.length - 1, Math.max(0, state.lane + by));
  lanes[state.lane]?.row.scrollIntoView({block: "nearest"});
  redraw();
}

// ---- Buttons and keys of the timeline.

function makeControls() {
  const actions = {
    "zoom-in": () => zoom(0.5), "zoom-out": () => zoom(2), earlier: () => move(-0.5), later: () => move(0.5),
    whole: () => setWindow(0, whole), "previous-event": () => step(-1, "matches"), "next-event": () => step(1, "matches"),
    "previous-activity": () => step(-1, "activities"), "next-activity": () => step(1, "activities"),
  };
  for (const [id, action] of Object.entries(actions)) byId(id).addEventListener("click", action);
  const keys = {
    "+": actions["zoom-in"], "=": actions["zoom-in"], "-": actions["zoom-out"], ArrowLeft: () => move(-0.25),
    ArrowRight: () => move(0.25), Home: actions.whole, ArrowUp: () => changeLane(-1), ArrowDown: () => changeLane(1),
    n: actions["next-event"], p: actions["previous-event"],
    N: actions["next-activity"], P: actions["previous-activity"],
  };
  byId("lanes").addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || !Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    keys[event.key]();
  });
}

// ---- The list of events, and the details of an event.

function drawList() {
  let listed = state.matches;
  if (byId("in-window").checked) {
    const [from, to] = rangeOf(listed, state.from, state.to);
    listed = listed.slice(from, to);
  }
  const first = Math.min(state.page * PAGE, Math.max(0, listed.length - 1));
  const part = listed.slice(first, first + PAGE);
  byId("found").textContent = listed.length === 0 ? `None of ${grouped(events.length)} single events.`
    : `${grouped(first + 1)} to ${grouped(first + part.length)} of ${grouped(listed.length)} that match, of ` +
      `${grouped(events.length)} single events.`;
  const focused = document.activeElement?.dataset?.index;
  const rows = part.map((event) => {
    const thread = data.threads[event.thread];
    const row = element("tr");
    const heading = element("th", undefined, {scope: "row"});
    const index = events.indexOf(event);
    const button = element("button", timeText(event.at, 1e-6 * data.ticksPerSecond), {type: "button", "data-index": index});
    button.addEventListener("click", () => {
      select(event);
      byId("details").scrollIntoView({block: "nearest"});
    });
    heading.append(button);
    const name = element("td", data.kinds[event.kind].name);
    name.prepend(swatch(`series-${seriesOfKind[event.kind]}`));
    row.append(heading, name, element("td", data.kinds[event.kind].provider),
      element("td", processText(processOf(thread))), element("td", threadText(thread)),
      element("td", LEVELS[event.event.level] ?? String(event.event.level ?? ""), {class: levelClass(event.event.level)}));
    if (event === state.selected) {
      row.className = "selected";
      button.setAttribute("aria-current", "true");
    }
    return row;
  });
  const body = byId("list").tBodies[0];
  body.replaceChildren(...rows);
  if (focused !== undefined) body.querySelector(`[data-index="${focused}"]`)?.focus({preventScroll: true});
  byId("previous-page").disabled = first === 0;
  byId("next-page").disabled = first + PAGE >= listed.length;
}

// Yields a table row [path, text] for each leaf of a JSON value. An array without objects or arrays is
// a leaf, too.
function* fieldsOf(name, value) {
  if (value === null || typeof value !== "object") {
    yield [name, value === null ? "-" : String(value)];
  } else if (Array.isArray(value) && value.every((item) => item === null || typeof item !== "object")) {
    yield [name, JSON.stringify(value)];
  } else {
    const members = Object.entries(value);
    if (members.length === 0) yield [name, "{}"];
    for (const [key, item] of members) yield* fieldsOf(name === "" ? key : `${name}.${key}`, item);
  }
}

function showDetails(title, groups, buttons) {
  const box = byId("details");
  const parts = [element("h3", title, {id: "details-heading"})];
  if (buttons.length > 0) {
    const controls = element("div", undefined, {class: "controls"});
    controls.append(...buttons);
    parts.push(controls);
  }
  for (const [caption, value] of groups) {
    const table = element("table");
    table.append(element("caption", caption));
    const body = element("tbody");
    for (const [name, text] of fieldsOf("", value)) {
      const row = element("tr");
      row.append(element("th", name, {scope: "row"}), element("td", text));
      if (caption === "Fields") {
        const button = element("button", "=", {type: "button", title: "Show only events with this value", "aria-label": `Show only events with this value of ${name}`});
        button.addEventListener("click", () => addCondition(name, text));
        const cell = element("td");
        cell.append(button);
        row.append(cell);
      }
      body.append(row);
    }
    table.append(body);
    parts.push(table);
  }
  box.replaceChildren(...parts);
  box.scrollTop = 0;
}

function choose(chosen) {
  state.selected = chosen;
  const number = lanes.findIndex((lane) => lane.thread === chosen.thread);
  if (number >= 0) state.lane = number;
  redraw();
}

function select(event) {
  choose(event);
  const {payload, ...rest} = event.event;
  const process = processOf(data.threads[event.thread]);
  const groups = payload === undefined ? [] : [["Fields", payload]];
  if (process?.name) rest.process = process.name;
  for (const [key, value] of Object.entries(rest)) {
    if (value === null || (typeof value === "object" && Object.keys(value).length === 0)) delete rest[key];
  }
  const fields = JSON.stringify(payload ?? {});
  byId("chosen").textContent = `Chosen: ${data.kinds[event.kind].name} at ${timeText(event.at, 1e-6 * data.ticksPerSecond)}, ` +
    `${threadText(data.threads[event.thread])}: ${fields.length > 200 ? fields.slice(0, 200) + "…" : fields}`;
  showDetails(data.kinds[event.kind].name, [...groups, ["Event", rest]],
    followButtons(homeOf(event), event.event.activityId, event.at));
}

function selectActivity(activity) {
  choose(activity);
  const kind = data.kinds[activity.kind];
  const thread = data.threads[activity.thread];
  const duration = durationText(ticksToSeconds(activity.end - activity.begin));
  const [begin, end] = [activity.begin, activity.end].map((ticks) => timeText(ticks, 1e-6 * data.ticksPerSecond));
  const related = activity.related === undefined ? {} : {relatedActivityId: activity.related};
  byId("chosen").textContent = `Chosen: ${kind.name}, an activity of ${duration}, from ${begin} to ${end}, ${threadText(thread)}` +
    (activity.related === undefined ? "" : `, related to ${activity.related}`);
  showDetails(`${kind.name}, an activity`, [["Activity", {
    duration, begin, end, provider: kind.provider, activityId: activity.id, ...related,
    process: processText(processOf(thread)), thread: threadText(thread),
  }]], followButtons(trees[activity.tree]?.nodes.length > 0 ? {tree: trees[activity.tree], node: trees[activity.tree].nodes[0]} : undefined, activity.id, activity.at));
}

function makeList() {
  const turn = (by) => { state.page = Math.max(0, state.page + by); redraw(); };
  byId("in-window").addEventListener("change", () => { state.page = 0; redraw(); });
  byId("previous-page").addEventListener("click", () => turn(-1));
  byId("next-page").addEventListener("click", () => turn(1));
}

// ---- Durations.

function drawHistogram() {
  const svg = byId("histogram");
  const row = data.durations[byId("histogram-of").value];
  const width = svg.clientWidth;
  if (!row || width === 0) return;
  // Number of bars for each power of 2 of the duration.
  const parts = 4;
  const barOf = (nanoseconds) => Math.floor(Math.log2(Math.max(1, Number(nanoseconds))) * parts);
  const counts = new Map();
  for (const [from, to, count] of row.buckets) {
    const bar = barOf((Number(from) + Number(to)) / 2);
    counts.set(bar, (counts.get(bar) ?? 0) + Number(count));
  }
  const bars = [...counts.keys()];
  const first = Math.min(...bars), last = Math.max(...bars) + 1;
  const most = Math.max(...counts.values());
  const ground = 178, top = 24;
  const x = (bar) => (bar - first) / Math.max(parts, last - first) * (width - 10);
  let d = "";
  for (const [bar, count] of counts) {
    const height = Math.max(1, count / most * (ground - top));
    d += `M${x(bar).toFixed(1)} ${ground}v-${height.toFixed(1)}H${(x(bar + 1) - 1).toFixed(1)}v${height.toFixed(1)}z`;
  }
  const shapes = [shape("path", {d, class: "series-0"}), shape("path", {d: `M0 ${ground + 0.5}H${width}`, class: "axis"}),
    shape("text", {x: 0, y: 13}, `highest: ${grouped(most)}`)];
  let free = -1;
  for (let bar = first; bar <= Math.max(last, first + parts); ++bar) {
    if (x(bar) < free || x(bar) > width - 60) continue;
    shapes.push(shape("path", {d: `M${x(bar).toFixed(1)} ${ground}v5`, class: "axis"}));
    shapes.push(shape("text", {x: x(bar) + 2, y: 196}, durationText(2 ** (bar / parts) / 1e9)));
    free = x(bar) + 80;
  }
  svg.setAttribute("viewBox", `0 0 ${width} 200`);
  svg.replaceChildren(...shapes);
  svg.setAttribute("aria-label", `Histogram of ${counted(row.ended, "duration")} from ${durationText(row.min / 1e9)} to ` +
    `${durationText(row.max / 1e9)}; the table above has its percentiles.`);
}

function makeHistogram() {
  const choices = data.durations.map((row, i) => [row, i]).filter(([row]) => row.ended > 0)
    .sort((a, b) => b[0].ended - a[0].ended);
  if (choices.length === 0) return;
  byId("histogram-part").hidden = false;
  byId("histogram-of").append(...choices.map(([row, i]) => {
    const kind = data.kinds[row.kind];
    return element("option", kind ? `${kind.name} (${kind.provider})` : "(others)", {value: i});
  }));
  byId("histogram-of").addEventListener("change", drawHistogram);
}

// ---- Tables that can be sorted.

function makeSortable(table) {
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    const button = element("button", heading.textContent, {type: "button"});
    heading.replaceChildren(button);
    button.addEventListener("click", () => {
      const isNumber = heading.classList.contains("number");
      const before = heading.getAttribute("aria-sort");
      const down = before === null ? isNumber : before === "ascending";
      for (const other of headings) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", down ? "descending" : "ascending");
      const value = (row) => isNumber ? Number(row.cells[column].dataset.value) : row.cells[column].textContent;
      const compare = isNumber ? (a, b) => value(a) - value(b)
        : (a, b) => value(a).localeCompare(value(b), undefined, {numeric: true});
      const rows = [...table.tBodies[0].rows].sort((a, b) => down ? compare(b, a) : compare(a, b));
      table.tBodies[0].append(...rows);
    });
  });
}

