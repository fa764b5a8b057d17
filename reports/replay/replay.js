/* Draws what reports/replay has packed: a network over time. Times are in ns, rates in bit/s, sizes in bytes.
   A direction of a link is a number: 2 i is link i's from a to b, 2 i + 1 the one back. */
"use strict";
(() => {
const SHORTEST_NS = 1000, TIMES_ZOOMED = 4, FLASH_MS = 450, REFRESH_MS = 1000;
const COLLAPSED_FROM = 128, BOTH_SIDES_TO = 700, LISTED = 300;
const [SEND, RECEIVE, ENQUEUE, TRANSMIT, DROP] = [0, 1, 2, 3, 4];
const HOPS = ["leaves the host", "arrives", "is enqueued", "leaves", "is dropped"];
const id = name => document.getElementById(name);
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const whole = d3.format(","), fine = d3.format(",.3f"), coarse = d3.format(".3~s");
const us = ns => `${fine(ns / 1e3)} µs`;
const bps = rate => rate >= 1e17 ? "no limit" : `${d3.format(",.3f")(rate / 1e9)} Gb/s`;
const bytes = count => `${whole(count)} B`;
const percent = share => `${d3.format(".1f")(100 * share)} %`;
const escape = text => String(text).replace(/[&<>"]/g, c => ({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})[c]);

/* -- recorded data ---------------------------------------------------------------------------------------------- */

async function unpacked(content) {
  const stream = new Blob([content]).stream().pipeThrough(new DecompressionStream("gzip"));
  const raw = await new Response(stream).arrayBuffer();
  const length = new DataView(raw).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(raw, 4, length)));
  const types = {u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, i4: Int32Array, f4: Float32Array, f8: Float64Array};
  const arrays = {};
  for (const [name, [kind, offset, count]] of Object.entries(head.arrays))
    arrays[name] = new types[kind](raw, 4 + length + offset, count);
  return new Recording(head, arrays);
}

class Recording {
  constructor(head, arrays) {
    Object.assign(this, {head, arrays});
    const network = head.network;
    this.nodes = network.nodes.map(([name, tier, part], i) => ({i, name, tier, part, host: i < network.hosts, out: []}));
    this.links = network.links.map(([a, b, rate, delay, aPort, bPort]) => ({a, b, rate, delay, aPort, bPort}));
    this.byPort = new Map();
    this.links.forEach((link, i) => {
      this.nodes[link.a].out.push(2 * i);
      this.nodes[link.b].out.push(2 * i + 1);
      this.byPort.set(`${link.a}:${link.aPort}`, 2 * i).set(`${link.b}:${link.bPort}`, 2 * i + 1);
    });
    const rows = used => {
      const found = new Int32Array(2 * this.links.length).fill(-1);
      (used || []).forEach((direction, row) => { found[direction] = row; });
      return found;
    };
    this.linkRow = rows(arrays.link);
    this.queueRow = rows(arrays.queue);
    this.linkTimes = arrays.link_time || [];
    this.queueTimes = arrays.queue_time || [];
    this.end = Math.max(head.end_ns, 1);
    this.qps = new Map(Array.from(arrays.rate_qp || [], (qp, i) => [qp, i]));
    this.failures = this.links.map(() => []);
    for (const [time, link, up] of head.changes) if (up !== null) this.failures[link].push([time, up]);
    this.failures.forEach(list => list.sort((x, y) => x[0] - y[0]));
    this.changeTimes = Float64Array.from(head.changes, change => change[0]).sort();
    this.mostSwitch = this.nodes.reduce((most, node) => node.host ? most : Math.max(most, this.mostQueued(node)), 0);
    this.packetCount = Math.max((arrays.packet_first || [0]).length - 1, 0);
    this.flowCount = arrays.flow.length;
  }

  from(direction) { const link = this.links[direction >> 1]; return direction & 1 ? link.b : link.a; }
  to(direction) { return this.from(direction ^ 1); }
  isPod(part) { return part < this.head.network.pods; }
  partName(part) { return this.isPod(part) ? `pod ${part}` : `plane ${part - this.head.network.pods}`; }
  label(direction) { return `${this.nodes[this.from(direction)].name} → ${this.nodes[this.to(direction)].name}`; }

  /* The interval that contains a time; intervals end at their times. */
  interval(time) { return Math.min(d3.bisectLeft(this.linkTimes, time), this.linkTimes.length - 1); }
  counted(direction, interval, name) {
    const row = this.linkRow[direction];
    const values = this.arrays[`link_${name}`];
    return row < 0 || interval < 0 || !values ? 0 : values[row * this.linkTimes.length + interval];
  }
  busy(direction, interval) {
    if (interval < 0) return 0;
    return this.counted(direction, interval, "busy_ns") / this.arrays.link_interval[interval];
  }
  rate(direction, interval) {
    return interval < 0 ? 0 : this.counted(direction, interval, "tx_bytes") * 8e9 / this.arrays.link_interval[interval];
  }
  /* Queues may have more samples than links, but hosts have no samples of queues. */
  depth(direction, time) {
    const row = this.queueRow[direction], sample = d3.bisectRight(this.queueTimes, time) - 1;
    if (this.queueTimes.length && !this.nodes[this.from(direction)].host)
      return row < 0 || sample < 0 ? 0 : this.arrays.queue_depth[row * this.queueTimes.length + sample];
    return this.counted(direction, this.interval(time), "depth_bytes");
  }
  queued(node, time) { return d3.sum(node.out, direction => this.depth(direction, time)); }
  /* The largest total queue of all ports of a switch at any time. */
  mostQueued(node) {
    const [values, row, times] = this.queueTimes.length ? [this.arrays.queue_depth, this.queueRow, this.queueTimes.length] : [this.arrays.link_depth_bytes || [], this.linkRow, this.linkTimes.length];
    const rows = node.out.map(direction => row[direction]).filter(at => at >= 0);
    let most = 0;
    for (let i = 0; i < times; i++) {
      let sum = 0;
      for (const at of rows) sum += values[at * times + i];
      most = Math.max(most, sum);
    }
    return most;
  }
  failed(link, time) {
    let up = true;
    for (const [when, state] of this.failures[link]) if (when <= time) up = state;
    return !up;
  }

  /* Directions of links on shortest paths from one node to another. */
  ways(source, destination) {
    const distance = new Int32Array(this.nodes.length).fill(-1), found = new Set();
    distance[destination] = 0;
    for (let layer = [destination]; layer.length;) {
      const next = [];
      for (const node of layer) for (const direction of this.nodes[node].out) {
        const there = this.to(direction);
        if (distance[there] < 0) { distance[there] = distance[node] + 1; if (!this.nodes[there].host || there === source) next.push(there); }
      }
      layer = next;
    }
    const pending = [source], seen = new Set(pending);
    while (pending.length) {
      const node = pending.pop();
      for (const direction of this.nodes[node].out) {
        const there = this.to(direction);
        if (distance[there] !== distance[node] - 1 || (this.nodes[there].host && there !== destination)) continue;
        found.add(direction);
        if (!seen.has(there)) { seen.add(there); pending.push(there); }
      }
    }
    return found;
  }

  flow(i) {
    const of = {i};
    for (const name of ["flow", "qp", "source", "destination", "size_bytes", "start_ns", "first_sent_ns", "delivered_ns",
      "completed_ns", "fct_ns", "slowdown", ...this.head.counts.map(([name]) => name)]) of[name] = this.arrays[name][i];
    return of;
  }
  under(flow, time) { return flow.start_ns <= time && (flow.completed_ns < 0 || time <= flow.completed_ns); }

  /* A packet's events, with those of pipelines between its hops. */
  packet(i) {
    const a = this.arrays, events = [];
    for (let e = a.packet_first[i]; e < a.packet_first[i + 1]; e++)
      events.push({time: a.event_time[e], node: a.event_node[e], kind: a.event_kind[e], port: a.event_port[e], depth: a.event_depth[e], text: this.head.texts[a.event_text[e]]});
    return {i, psn: a.packet_psn[i], bytes: a.packet_bytes[i], events};
  }
  /* The place of a packet: {direction, share} on a link, {node} in a switch, {node, dropped}, or null. */
  whereabouts(i, time) {
    const a = this.arrays, first = a.packet_first[i], end = a.packet_first[i + 1];
    if (end === first || time < a.event_time[first] || time > a.event_time[end - 1] + SHORTEST_NS) return null;
    let last = -1, next = -1;
    for (let e = first; e < end; e++) {
      if (a.event_kind[e] > DROP) continue;
      if (a.event_time[e] <= time) last = e;
      else { next = e; break; }
    }
    if (last < 0) return null;
    const node = a.event_node[last], kind = a.event_kind[last], since = a.event_time[last];
    if (kind === DROP) return time - since <= SHORTEST_NS ? {node, dropped: true} : null;
    if (kind === SEND || kind === TRANSMIT) {
      const direction = this.byPort.get(`${node}:${a.event_port[last] || 1}`), link = this.links[direction >> 1];
      const arrives = next >= 0 && a.event_kind[next] === RECEIVE;  // otherwise the link lost it
      const until = arrives ? a.event_time[next] : since + link.delay + a.packet_bytes[i] * 8e9 / link.rate;
      return time > until ? null : {direction, share: until > since ? (time - since) / (until - since) : 1};
    }
    return kind === RECEIVE && this.nodes[node].host ? null : {node};
  }
}

/* -- layout ------------------------------------------------------------------------------------------------------- */

/* Whether a mark is a collapsed pod or plane instead of a node. */
const isPart = mark => mark.part !== undefined;

/* Marks (a node, or a pod or plane that is closed) and lines (a link, or all links between two marks of which one is closed).
   Pods stand side by side, planes in the uppermost row. */
class Layout {
  constructor(recording, open) {
    const nodes = recording.nodes, tiers = d3.max(nodes, node => node.tier);
    const pods = new Map(), planes = new Map();
    for (const node of nodes) if (node.part >= 0) {
      const parts = recording.isPod(node.part) ? pods : planes;
      parts.set(node.part, [...(parts.get(node.part) || []), node]);
    }
    const loose = nodes.filter(node => node.part < 0);
    this.marks = [];
    this.markOf = new Array(nodes.length);
    const single = node => ({nodes: [node], node});
    const row = (marks, tier, x, width) =>
      marks.forEach((mark, i) => this.add({...mark, x: x + (i + .5) * width / marks.length, y: tiers - tier, room: width / marks.length}));
    const ofTier = (members, tier) => members.filter(node => node.tier === tier).map(single);
    let x = 0;
    for (const [part, members] of pods) {
      const width = open.has(part) ? d3.max(d3.range(tiers + 1), tier => ofTier(members, tier).length) : 2;
      if (open.has(part)) for (let tier = 0; tier <= tiers; tier++) row(ofTier(members, tier), tier, x, width);
      else this.add({nodes: members, part, x: x + 1, y: tiers - .5, room: 2});
      x += width + 1;
    }
    const widest = d3.max(d3.range(tiers + 1), tier => ofTier(loose, tier).length) || 1;
    this.width = pods.size ? x - 1 : widest;
    this.height = Math.max(pods.size && ![...pods.keys()].some(part => open.has(part)) ? tiers - .5 : tiers, 1);
    const above = [...planes].flatMap(([part, members]) => open.has(part) ? members.map(single) : [{nodes: members, part}]);
    for (let tier = 0; tier <= tiers; tier++) row([...ofTier(loose, tier), ...(tier === tiers ? above : [])], tier, 0, this.width);
    this.lines = [];
    this.lineOf = new Array(recording.links.length);
    const known = new Map(), parallel = new Map();
    recording.links.forEach((link, i) => {
      const a = this.markOf[link.a], b = this.markOf[link.b];
      if (a === b) return;
      const bundled = isPart(a) || isPart(b);
      const key = `${this.marks.indexOf(a)}:${this.marks.indexOf(b)}`;
      let line = bundled ? known.get(key) : undefined;
      if (!line) {
        const nth = parallel.get(key) || 0;
        parallel.set(key, nth + 1);
        line = {a, b, there: [], back: [], links: [], bend: this.bend(a, b, nth)};
        known.set(key, line);
        this.lines.push(line);
      }
      line.there.push(2 * i);
      line.back.push(2 * i + 1);
      line.links.push(i);
      this.lineOf[i] = line;
    });
  }
  add(mark) {
    this.marks.push(mark);
    for (const node of mark.nodes) this.markOf[node.i] = mark;
  }
  /* Links within a tier bend around the nodes between their ends, and parallel links around each other. */
  bend(a, b, nth) {
    const between = a.y === b.y && this.marks.some(mark => mark.y === a.y && (mark.x - a.x) * (mark.x - b.x) < 0);
    return (between ? -.3 : 0) + (nth ? .12 * nth : 0);
  }
}

/* -- the page ------------------------------------------------------------------------------------------------------ */

class Page {
  constructor() {
    this.time = 0;
    this.window = null;
    this.open = null;
    this.selected = null;
    this.playing = false;
    this.zoomed = d3.zoomIdentity;
    this.canvas = id("network");
    this.theme();
    const again = () => { this.theme(); this.resize(); };
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
    addEventListener("resize", again);
    id("time").addEventListener("input", () => this.seek(+id("time").value));
    id("play").addEventListener("click", () => this.play(!this.playing));
    id("in").addEventListener("click", () => this.zoom(1 / TIMES_ZOOMED));
    id("out").addEventListener("click", () => this.zoom(TIMES_ZOOMED));
    id("all").addEventListener("click", () => this.show(0, this.recording.end));
    id("find").addEventListener("change", () => this.find(id("find").value));
    id("pods").addEventListener("click", () => this.togglePods());
    id("inspector").addEventListener("click", event => this.follow(event));
    this.canvas.addEventListener("click", event => this.pick(event));
    this.canvas.addEventListener("keydown", event => this.key(event));
    d3.select(this.canvas).call(d3.zoom().scaleExtent([1, 60]).on("zoom", () => { this.zoomed = d3.event.transform; this.draw(); }));
  }

  /* Show another recording of the same network: the first one, or a later one of a run in progress. */
  load(recording) {
    if (this.recording && ["scenario", "variant", "seed"].some(key => this.recording.head[key] !== recording.head[key])) { location.reload(); return; }
    const first = !this.recording, atEnd = first || this.time >= this.recording.end;
    const whole = first || (this.window[0] === 0 && this.window[1] === this.recording.end);
    const known = first ? 0 : this.recording.flowCount;
    this.recording = recording;
    const head = recording.head, parts = new Set(recording.nodes.map(node => node.part).filter(part => part >= 0));
    if (first) this.open = head.network.hosts >= COLLAPSED_FROM ? new Set() : parts;
    this.parts = parts;
    document.querySelector("h1").textContent = head.title;
    id("pods").hidden = !parts.size;
    id("about").textContent = `${head.variant}, seed ${head.seed}, ${head.world} world: ${whole_(head.network.hosts, "host")}, `
      + `${whole_(recording.nodes.length - head.network.hosts, "switch", "switches")}, ${whole_(recording.flowCount, "flow")}, ${us(head.end_ns)}, ${head.ended}`
      + (head.joined > 1 ? `; each interval of links, and each sample of queues, is ${head.joined} recorded ones` : "") + (head.joined_rates > 1 ? `; each interval of rates is ${head.joined_rates}` : "") + (head.left_out ? `; the last ${head.left_out} packets of the trace are left out` : "");
    if (first || recording.flowCount !== known) this.names();
    this.arrange();
    if (whole) this.window = [0, recording.end];
    this.show(...this.window);
    if (first) this.resize();
    else this.legend();
    this.seek(head.live && atEnd ? recording.end : this.time);
    this.inspect();
  }

  names() {
    const r = this.recording;
    this.targets = new Map();
    r.nodes.forEach(node => this.targets.set(node.name, ["node", node.i]));
    this.parts.forEach(part => this.targets.set(r.partName(part), ["part", part]));
    r.links.forEach((link, i) => this.targets.set(`${r.nodes[link.a].name} – ${r.nodes[link.b].name}${this.targets.has(`${r.nodes[link.a].name} – ${r.nodes[link.b].name}`) ? ` (${link.aPort})` : ""}`, ["link", i]));
    for (let i = 0; i < r.flowCount; i++) this.targets.set(`flow ${r.arrays.flow[i]}${this.targets.has(`flow ${r.arrays.flow[i]}`) ? ` qp ${r.arrays.qp[i]}` : ""}`, ["flow", i]);
    if (r.packetCount) this.targets.set("packet 0", ["packet", 0]);
    d3.select("#names").html("").selectAll("option").data([...this.targets.keys()].slice(0, 10000)).enter().append("option").attr("value", name => name);
  }

  arrange() {
    this.layout = new Layout(this.recording, this.open);
    id("pods").textContent = this.open.size ? "close pods" : "open pods";
  }

  theme() {
    const steps = ["--idle", "--low", "--busy", "--hot", "--full"].map(css);
    const scale = d3.scaleLinear().domain([0, .05, .5, .8, 1]).range(steps);
    this.busyColours = d3.range(33).map(i => scale(i / 32));
    this.colours = {};
    for (const name of ["text", "paper", "rule", "faint", "queue", "pause", "drop", "flow", "idle", "link", "box"]) this.colours[name] = css(`--${name}`);
  }
  busyColour(share) { return this.busyColours[Math.ceil(Math.min(share, 1) * 32)]; }

  resize() {
    const box = this.canvas.getBoundingClientRect(), ratio = devicePixelRatio || 1;
    this.size = [box.width, box.height];
    this.canvas.width = box.width * ratio;
    this.canvas.height = box.height * ratio;
    this.ratio = ratio;
    this.strip();
    this.legend();
    this.inspect();
    this.draw();
  }

  /* Time */

  seek(time) {
    this.time = Math.max(0, Math.min(time, this.recording.end));
    if (this.time < this.window[0] || this.time > this.window[1]) {
      const span = this.window[1] - this.window[0], begin = Math.max(0, Math.min(this.time - span / 2, this.recording.end - span));
      this.show(begin, begin + span);
      return;
    }
    id("time").value = this.time;
    const r = this.recording, i = r.interval(this.time);
    id("now").textContent = us(this.time) + (i < 0 ? "" : `, interval ${fine((r.linkTimes[i] - r.arrays.link_interval[i]) / 1e3)}–${fine(r.linkTimes[i] / 1e3)} µs`);
    this.update();
  }
  show(begin, end) {
    const most = this.recording.end, span = Math.min(Math.max(end - begin, Math.min(SHORTEST_NS, most)), most);
    begin = Math.max(0, Math.min(begin, most - span));
    this.window = [begin, begin + span];
    Object.assign(id("time"), {min: Math.floor(begin), max: Math.ceil(begin + span)});
    if (this.time < begin || this.time > begin + span) this.time = begin;
    this.strip();
    this.inspect();
    this.seek(this.time);
  }
  zoom(factor) {
    const [begin, end] = this.window, span = (end - begin) * factor, share = (this.time - begin) / (end - begin);
    this.show(this.time - share * span, this.time + (1 - share) * span);
  }
  play(on) {
    this.playing = on;
    id("play").textContent = on ? "❚❚" : "▶";
    id("play").setAttribute("aria-label", on ? "Pause" : "Play");
    if (!on) return;
    if (this.time >= this.window[1]) this.seek(this.window[0]);
    let before = performance.now();
    const step = now => {
      if (!this.playing) return;
      const [begin, end] = this.window;
      const time = this.time + (end - begin) * (now - before) / 1e3 / +id("speed").value;
      before = now;
      this.seek(Math.min(time, end));
      if (time >= end) this.play(false);
      else requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }
  key(event) {
    const span = this.window[1] - this.window[0];
    const does = {" ": () => this.play(!this.playing), ArrowRight: () => this.seek(this.time + span / 100), ArrowLeft: () => this.seek(this.time - span / 100),
      "+": () => this.zoom(1 / TIMES_ZOOMED), "-": () => this.zoom(TIMES_ZOOMED), Escape: () => this.select(null)}[event.key];
    if (does) { event.preventDefault(); does(); }
  }

  /* The whole run: the hosts' sending rate, and the shown window. */
  strip() {
    if (!this.recording) return;
    const r = this.recording, svg = d3.select("#strip"), width = svg.node().clientWidth || 800, height = 56;
    const x = d3.scaleLinear().domain([0, r.end / 1e3]).range([30, width - 40]);
    if (this.stripFor !== r || this.stripWidth !== width) {
      this.stripFor = r;
      this.stripWidth = width;
      const sent = Array.from(r.linkTimes, (time, i) => [time, d3.sum(r.nodes.filter(node => node.host), node => r.rate(node.out[0], i))]);
      const y = d3.scaleLinear().domain([0, d3.max(sent, point => point[1]) || 1]).range([height - 18, 2]);
      svg.html("");
      svg.append("path").attr("class", "area").attr("d", d3.area().x(point => x(point[0] / 1e3)).y0(y(0)).y1(point => y(point[1])).curve(d3.curveStepBefore)([[0, sent.length ? sent[0][1] : 0], ...sent]));
      svg.append("g").attr("transform", `translate(0,${height - 18})`).call(d3.axisBottom(x).ticks(Math.max(width / 110, 2)).tickSizeOuter(0).tickFormat(value => `${whole(value)} µs`));
      this.brush = d3.brushX().extent([[30, 0], [width - 40, height - 18]]).on("end", () => {
        if (!d3.event.sourceEvent) return;
        const chosen = d3.event.selection;
        if (chosen) this.show(x.invert(chosen[0]) * 1e3, x.invert(chosen[1]) * 1e3);
        else this.seek(x.invert(d3.mouse(svg.node())[0]) * 1e3);
      });
      svg.append("g").attr("class", "brush").call(this.brush);
      svg.append("line").attr("class", "cursor").attr("y1", 0).attr("y2", height - 18).attr("pointer-events", "none");
    }
    const all = this.window[0] <= 0 && this.window[1] >= r.end;
    svg.select(".brush").call(this.brush.move, all ? null : this.window.map(time => x(time / 1e3)));
    this.stripX = x;
  }

  /* Selection */

  find(text) {
    const wanted = text.trim(), packet = wanted.match(/^packet (\d+)$/);
    const target = this.targets.get(wanted) || (packet && +packet[1] < this.recording.packetCount ? ["packet", +packet[1]] : null);
    if (target) { this.select(target); id("find").value = ""; }
  }
  select(target) {
    const r = this.recording;
    this.selected = target;
    this.path = null;
    if (target && target[0] === "flow") {
      const flow = r.flow(target[1]);
      this.path = flow.destination >= 0 ? r.ways(flow.source, flow.destination) : new Set(r.nodes[flow.source].out);
    } else if (target && target[0] === "packet") {
      const events = r.packet(target[1]).events;
      this.path = new Set(events.filter(e => e.kind === SEND || e.kind === TRANSMIT).map(e => r.byPort.get(`${e.node}:${e.port || 1}`)));
      if (events.length && (this.time < events[0].time || this.time > events[events.length - 1].time)) this.seek(events[0].time);
    }
    if (target) for (const node of this.members(target)) this.reveal(node);
    this.inspect();
    this.draw();
  }
  members([kind, i]) {
    if (kind === "node") return [i];
    if (kind === "link") return [this.recording.links[i].a, this.recording.links[i].b];
    if (kind === "flow") return [this.recording.arrays.source[i], this.recording.arrays.destination[i]].filter(node => node >= 0);
    return [];
  }
  reveal(node) {
    const part = this.recording.nodes[node].part;
    if (part >= 0 && !this.open.has(part)) { this.open.add(part); this.arrange(); }
  }
  togglePods() {
    this.open = this.open.size ? new Set() : new Set(this.parts);
    this.arrange();
    this.draw();
  }
  follow(event) {
    const link = event.target.closest("a[data-to]");
    if (!link) return;
    const [kind, value] = link.dataset.to.split(":");
    if (kind === "time") this.seek(+value);
    else if (kind === "close") { this.open.delete(+value); this.arrange(); this.select(["part", +value]); }
    else this.select([kind, +value]);
  }
  pick(event) {
    const [x, y] = [event.offsetX, event.offsetY];
    for (const dot of this.dots || []) if (Math.hypot(dot.x - x, dot.y - y) < 6) return this.select(["packet", dot.packet]);
    let best = null, nearest = 14;
    for (const mark of this.layout.marks) {
      const [mx, my] = this.at(mark), away = Math.hypot(mx - x, my - y) - this.radius(mark);
      if (away < Math.min(nearest, 6)) { nearest = away; best = mark; }
    }
    if (best && isPart(best)) { this.open.add(best.part); this.arrange(); return this.select(["part", best.part]); }
    if (best) return this.select(["node", best.node.i]);
    let line = null;
    nearest = 7;
    for (const each of this.layout.lines) for (let share = .02; share < 1; share += .02) {
      const [lx, ly] = this.along(each, share), away = Math.hypot(lx - x, ly - y);
      if (away < nearest) { nearest = away; line = each; }
    }
    return this.select(line ? ["link", this.worst(line)] : null);
  }
  /* The currently busiest link of a line. */
  worst(line) {
    const r = this.recording, interval = r.interval(this.time), most = link => Math.max(r.busy(2 * link, interval), r.busy(2 * link + 1, interval));
    return line.links.reduce((best, link) => most(link) > most(best) ? link : best);
  }

  /* The picture */

  at(mark) {
    const [width, height] = this.size, margin = 34;
    const x = margin + mark.x / this.layout.width * (width - 2 * margin), y = margin + mark.y / this.layout.height * (height - 2 * margin - 14);
    return this.zoomed.apply([x, y]);
  }
  radius(mark) {
    const room = mark.room / this.layout.width * (this.size[0] - 68) * this.zoomed.k;
    return isPart(mark) ? Math.min(mark.y ? 26 : 16, Math.max(6, room * .42)) : Math.min(13, Math.max(1.6, room * .4));
  }
  curve(line, side) {
    const [x0, y0] = this.at(line.a), [x1, y1] = this.at(line.b), length = Math.hypot(x1 - x0, y1 - y0) || 1;
    const nx = (y1 - y0) / length * side, ny = -(x1 - x0) / length * side;
    const up = line.a.y === line.b.y ? line.bend * Math.min(length, 400) : 0, aside = line.a.y === line.b.y ? 0 : line.bend * length;
    return [x0 + nx, y0 + ny, (x0 + x1) / 2 + nx + aside, (y0 + y1) / 2 + ny + up, x1 + nx, y1 + ny];
  }
  along(line, share, side = 0) {
    const [x0, y0, cx, cy, x1, y1] = this.curve(line, side), rest = 1 - share;
    return [rest * rest * x0 + 2 * rest * share * cx + share * share * x1, rest * rest * y0 + 2 * rest * share * cy + share * share * y1];
  }

  update() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => { this.waiting = 0; this.draw(); this.numbers(); });
  }

  draw() {
    if (!this.size || !this.recording) return;
    const r = this.recording, c = this.canvas.getContext("2d"), interval = r.interval(this.time);
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    c.clearRect(0, 0, ...this.size);
    this.lines(c, interval);
    for (const mark of this.layout.marks) this.mark(c, mark, interval);
    this.packets(c);
    const x = this.stripX && this.stripX(this.time / 1e3);
    if (x) d3.selectAll("#strip .cursor").attr("x1", x).attr("x2", x);
  }

  lines(c, interval) {
    const r = this.recording, changes = d3.bisectRight(r.changeTimes, this.time);
    const of = [r, interval, changes, this.layout, this.zoomed, this.size, this.path, this.selected, this.colours];
    if (!this.drawn || of.some((each, i) => each !== this.drawn.of[i])) this.drawn = {of, ...this.newLines(interval)};
    c.save();
    c.setTransform(1, 0, 0, 1, 0, 0);
    c.drawImage(this.drawn.picture, 0, 0);
    c.restore();
    this.flash(c, this.drawn.marks);
  }
  /* An image of the lines and their marks. There are thousands, and they do not change for many frames. */
  newLines(interval) {
    const r = this.recording, {lines} = this.layout, both = lines.length <= BOTH_SIDES_TO, strokes = new Map();
    const picture = document.createElement("canvas"), c = picture.getContext("2d");
    Object.assign(picture, {width: this.canvas.width, height: this.canvas.height});
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    const stroke = (style, line, side) => {
      const key = JSON.stringify(style);
      if (!strokes.has(key)) strokes.set(key, {...style, path: new Path2D()});
      const {path} = strokes.get(key), [x0, y0, cx, cy, x1, y1] = this.curve(line, side);
      path.moveTo(x0, y0);
      path.quadraticCurveTo(cx, cy, x1, y1);
    };
    const marks = [];
    for (const line of lines) {
      const broken = line.links.every(link => r.failed(link, this.time));
      const sides = both && line.links.length === 1 ? [[line.there, 1.4], [line.back, -1.4]] : [[[...line.there, ...line.back], 0]];
      for (const [directions, side] of sides) {
        const share = d3.max(directions, direction => r.busy(direction, interval)), on = this.path && directions.some(direction => this.path.has(direction));
        if (broken) stroke({alpha: 1, width: 1, colour: this.colours.faint, dash: [3, 5]}, line, side);
        else stroke({alpha: this.path && !on ? .18 : 1, width: on ? 4 : share > .5 ? 2.6 : 1.6, colour: this.busyColour(share), dash: []}, line, side);
      }
      for (const direction of [...line.there, ...line.back]) {
        if (r.counted(direction, interval, "paused_ns")) marks.push(["pause", line, direction]);
        if (r.counted(direction, interval, "dropped")) marks.push(["drop", line, direction]);
      }
      if (line.links.some(link => r.failed(link, this.time))) marks.push(["broken", line, 0]);
    }
    const chosen = this.selected && this.selected[0] === "link" && this.layout.lineOf[this.selected[1]];
    if (chosen) stroke({alpha: .35, width: 9, colour: this.colours.flow, dash: []}, chosen, 0);
    for (const {alpha, width, colour, dash, path} of strokes.values()) {
      c.setLineDash(dash);
      c.globalAlpha = alpha;
      c.lineWidth = width;
      c.strokeStyle = colour;
      c.stroke(path);
    }
    return {picture, marks};
  }
  flash(c, marks) {
    const still = !this.playing || matchMedia("(prefers-reduced-motion: reduce)").matches;
    const phase = still ? .6 : performance.now() % FLASH_MS / FLASH_MS;
    for (const [what, line, direction] of marks) {
      if (what === "broken") {
        const [x, y] = this.along(line, .5);
        c.fillStyle = this.colours.paper; c.fillRect(x - 8, y - 8, 16, 16);
        c.strokeStyle = this.colours.drop; c.lineWidth = 2.4;
        c.beginPath(); c.moveTo(x - 5, y - 5); c.lineTo(x + 5, y + 5); c.moveTo(x + 5, y - 5); c.lineTo(x - 5, y + 5); c.stroke();
        continue;
      }
      const [x, y] = this.along(line, direction & 1 ? .8 : .2);
      c.strokeStyle = this.colours[what];
      c.globalAlpha = 1 - .7 * phase;
      c.lineWidth = 2.2;
      c.beginPath();
      if (what === "drop") c.arc(x, y, 3 + 7 * phase, 0, 7);
      else { c.moveTo(x - 2.5, y - 5); c.lineTo(x - 2.5, y + 5); c.moveTo(x + 2.5, y - 5); c.lineTo(x + 2.5, y + 5); }
      c.stroke();
      c.globalAlpha = 1;
    }
  }

  mark(c, mark, interval) {
    const r = this.recording, [x, y] = this.at(mark), size = this.radius(mark), chosen = this.selected;
    if (x < -30 || y < -30 || x > this.size[0] + 30 || y > this.size[1] + 30) return;
    const switches = mark.nodes.filter(node => !node.host), hosts = mark.nodes.filter(node => node.host);
    c.lineWidth = 1;
    c.strokeStyle = this.colours.faint;
    c.beginPath();
    if (switches.length) {
      const queued = d3.max(switches, node => r.queued(node, this.time)), wide = isPart(mark) ? size * 1.3 : size;
      const share = r.mostSwitch ? Math.sqrt(queued / r.mostSwitch) : 0;
      c.fillStyle = this.colours.box;
      c.fillRect(x - wide, y - size, 2 * wide, 2 * size);
      c.fillStyle = this.colours.queue;
      c.fillRect(x - wide, y + size - 2 * size * share, 2 * wide, 2 * size * share);
      c.rect(x - wide, y - size, 2 * wide, 2 * size);
      if (hosts.length) {
        c.fillStyle = this.busyColour(d3.max(hosts, node => this.hostShare(node, interval)));
        c.fillRect(x - wide, y + size + 2, 2 * wide, 4);
      }
    } else {
      c.fillStyle = this.busyColour(this.hostShare(mark.node, interval));
      c.arc(x, y, size, 0, 7);
      c.fill();
    }
    c.stroke();
    const on = chosen && (chosen[0] === "part" ? mark.part === chosen[1] : this.members(chosen).some(node => chosen[0] !== "link" && this.layout.markOf[node] === mark));
    if (on) {
      c.strokeStyle = this.colours.flow;
      c.lineWidth = 3;
      c.strokeRect(x - size - 4, y - size - 4, 2 * size + 8, 2 * size + 8);
    }
    const name = isPart(mark) ? r.partName(mark.part) : mark.node.name;
    const gap = isPart(mark) && mark.y ? 1 : 0, room = (mark.room + gap) / this.layout.width * this.size[0] * this.zoomed.k;
    if (room > 7 * name.length || on) {
      c.fillStyle = this.colours.text;
      c.font = "11px system-ui, sans-serif";
      c.textAlign = "center";
      c.fillText(name, x, switches.length && (!isPart(mark) || !mark.y) ? y - size - 5 : y + size + 15);
    }
  }
  /* The larger one of a host's sending and receiving rates, as a share of its link. */
  hostShare(node, interval) { return Math.max(this.recording.busy(node.out[0], interval), this.recording.busy(node.out[0] ^ 1, interval)); }

  packets(c) {
    const r = this.recording;
    this.dots = [];
    for (let i = 0; i < r.packetCount; i++) {
      const where = r.whereabouts(i, this.time);
      if (!where) continue;
      let x, y;
      if (where.direction !== undefined) {
        const line = this.layout.lineOf[where.direction >> 1];
        if (!line) continue;
        [x, y] = this.along(line, where.direction & 1 ? 1 - where.share : where.share);
      } else [x, y] = this.at(this.layout.markOf[where.node]);
      const chosen = this.selected && this.selected[0] === "packet" && this.selected[1] === i;
      c.fillStyle = where.dropped ? this.colours.drop : this.colours.flow;
      c.strokeStyle = this.colours.paper;
      c.lineWidth = 1.5;
      c.beginPath();
      c.arc(x, y, chosen ? 7 : 4, 0, 7);
      c.fill();
      c.stroke();
      this.dots.push({packet: i, x, y});
    }
  }

  legend() {
    if (!this.recording) return;
    id("legend").innerHTML = `<span><i class="scale"></i>links and hosts: busy, 0 to 100 % and more</span><span><i class="queue"></i>switches: total queue; full box = ${bytes(this.recording.mostSwitch)} (square-root scale)</span>`
      + `<span><b class="pause">‖</b> paused</span><span><b class="drop">◯</b> dropped</span><span><b class="drop">✕</b> link down</span>`
      + (this.recording.packetCount ? `<span>● packets of the traced flow</span>` : "");
  }

  /* Numbers and plots of the selection */

  inspect() {
    if (!this.recording || !this.window) return;
    const [kind, i] = this.selected || ["run", 0];
    const r = this.recording, parts = {
      run: () => [r.head.title, []],
      node: () => this.aboutNode(r.nodes[i]),
      part: () => [r.partName(i).replace(/^p/, "P"), []],
      link: () => this.aboutLink(i),
      flow: () => this.aboutFlow(r.flow(i)),
      packet: () => [`Packet ${i}`, []],
    };
    const [title, plots] = parts[kind]();
    id("inspector").innerHTML = `<h2 id="what">${escape(title)}</h2><div id="numbers"></div>${plots.map((plot, n) => `<h3>${escape(plot.title)}</h3><svg class="plot" data-plot="${n}"></svg>`).join("")}<div id="more"></div>`;
    this.scales = [];
    plots.forEach((plot, n) => this.plot(d3.select(`.plot[data-plot="${n}"]`), plot));
    this.numbers();
  }
  over(direction, of) {
    const r = this.recording;
    return begun(Array.from(r.linkTimes, (time, i) => [time, of(direction, i)]));
  }
  waited(directions) {
    const r = this.recording, times = r.queueTimes.length ? r.queueTimes : r.linkTimes;
    const [begin, end] = [d3.bisectLeft(times, this.window[0]), d3.bisectRight(times, this.window[1]) + 1];
    return Array.from(times.slice(Math.max(begin - 1, 0), end), time => [time, d3.sum(directions, direction => r.depth(direction, time))]);
  }
  aboutLink(i) {
    const r = this.recording, plots = [];
    const sides = [2 * i, 2 * i + 1];
    if (r.linkTimes.length) plots.push({title: "busy (%)", steps: true, series: sides.map(direction => ({name: r.label(direction), points: this.over(direction, (d, at) => 100 * r.busy(d, at))}))});
    plots.push({title: "waiting (bytes)", series: sides.map(direction => ({name: r.label(direction), points: this.waited([direction])}))});
    return [`${r.nodes[r.links[i].a].name} – ${r.nodes[r.links[i].b].name}`, plots];
  }
  aboutNode(node) {
    const r = this.recording, up = node.out[0], plots = [];
    if (!node.host) plots.push({title: "waiting in all ports (bytes)", series: [{name: node.name, points: this.waited(node.out)}]});
    else if (r.linkTimes.length) plots.push({title: "rate (Gb/s)", steps: true, series: [
      {name: "sends", points: this.over(up, (d, at) => r.rate(d, at) / 1e9)}, {name: "receives", points: this.over(up ^ 1, (d, at) => r.rate(d, at) / 1e9)}]});
    return [node.name, plots];
  }
  aboutFlow(flow) {
    const r = this.recording, a = r.arrays, row = r.qps.get(flow.qp), plots = [];
    if (row !== undefined) {
      const rows = d3.range(a.rate_first[row], a.rate_first[row + 1]);
      const limits = rows.map(at => [a.rate_time[at], a.rate_rate_limit_bps[at] / 1e9]).filter(point => point[1] < 1e8);
      const throughput = begun(rows.map(at => [a.rate_time[at], a.rate_throughput_bps[at] / 1e9]));
      plots.push({title: "throughput and rate limit (Gb/s)", steps: true, series: [{name: "throughput", points: throughput}, ...(limits.length ? [{name: "rate limit", points: begun(limits), extra: true}] : [])]});
      const windows = rows.map(at => [a.rate_time[at], a.rate_window_bytes[at]]).filter(point => point[1] < 1e15);
      if (windows.length) plots.push({title: "window (bytes)", steps: true, series: [{name: "window", points: begun(windows)}]});
    }
    return [`Flow ${flow.flow}`, plots];
  }

  plot(svg, {series, steps}) {
    const width = svg.node().clientWidth || 360, height = 120, [begin, end] = this.window;
    const x = d3.scaleLinear().domain([begin / 1e3, end / 1e3]).range([44, width - 8]);
    const inside = series.map(each => thinned(each.points, begin, end, width, steps));
    const y = d3.scaleLinear().domain([0, d3.max(inside, points => d3.max(points, point => point[1])) || 1]).nice().range([height - 20, 14]);
    const line = d3.line().x(point => Math.max(44, Math.min(x(point[0] / 1e3), width - 8))).y(point => y(point[1])).curve(steps ? d3.curveStepBefore : d3.curveStepAfter);
    const colours = [css("--busy"), css("--hot")];
    svg.append("g").attr("transform", `translate(0,${height - 20})`).call(d3.axisBottom(x).ticks(4).tickSizeOuter(0));
    svg.append("g").attr("transform", "translate(44,0)").call(d3.axisLeft(y).ticks(4).tickFormat(coarse).tickSizeOuter(0));
    inside.forEach((points, n) => {
      svg.append("path").attr("class", series[n].extra ? "line extra" : "line").attr("stroke", colours[n % 2]).attr("d", line(points));
      svg.append("text").attr("x", 50 + n * width / 2.2).attr("y", 10).style("fill", colours[n % 2]).text(series[n].name);
    });
    svg.append("line").attr("class", "cursor").attr("y1", 14).attr("y2", height - 20);
    svg.on("click", () => this.seek(x.invert(d3.mouse(svg.node())[0]) * 1e3));
    this.scales.push(x);
  }

  /* The values at this time. */
  numbers() {
    const at = this.time / 1e3;
    const scales = this.scales;
    d3.selectAll(".plot .cursor").each(function (_, n) { d3.select(this).attr("x1", scales[n](at)).attr("x2", scales[n](at)); });
    if (!id("numbers")) return;
    const [kind, i] = this.selected || ["run", 0], r = this.recording;
    id("numbers").innerHTML = {
      run: () => this.ofRun(), node: () => this.ofNode(r.nodes[i]), part: () => this.ofPart(i), link: () => this.ofLink(i), flow: () => this.ofFlow(r.flow(i)), packet: () => this.ofPacket(i),
    }[kind]();
  }
  row(name, key, ...values) { return `<tr><td>${escape(name)}</td>${values.map(value => `<td data-key="${key}">${value}</td>`).join("")}</tr>`; }
  to(kind, i, text) { return `<a data-to="${kind}:${i}" role="button" tabindex="0">${escape(text)}</a>`; }

  ofLink(i) {
    const r = this.recording, interval = r.interval(this.time), sides = [2 * i, 2 * i + 1], link = r.links[i];
    const each = of => sides.map(of), counted = name => each(direction => whole(r.counted(direction, interval, name)));
    const state = r.failed(i, this.time) ? `<p class="bad">This link is down.</p>` : "";
    const rates = r.head.changes.filter(change => change[1] === i && change[3] !== null && change[0] <= this.time);
    const of = direction => rates.filter(change => change[4] === null || change[4] === direction).reduce((_, change) => change[3], link.rate);
    const rate = of(0) === of(1) ? bps(of(0)) : sides.map(direction => `${escape(r.label(direction))} ${bps(of(direction & 1))}`).join(", ");
    return `${state}<p class="note">${rate}, ${us(link.delay)}; ${this.to("node", link.a, r.nodes[link.a].name)}, ${this.to("node", link.b, r.nodes[link.b].name)}</p>
      <table><thead><tr><th>in this interval</th>${sides.map(direction => `<th>${escape(r.label(direction))}</th>`).join("")}</tr></thead><tbody>
      ${r.linkTimes.length ? this.row("busy", "busy", ...each(direction => percent(r.busy(direction, interval)))) + this.row("sent (B)", "tx_bytes", ...counted("tx_bytes")) + this.row("rate", "rate", ...each(direction => bps(r.rate(direction, interval)))) : ""}
      ${this.row("waiting now (B)", "depth", ...each(direction => whole(r.depth(direction, this.time))))}
      ${r.linkTimes.length ? this.row("paused (ns)", "paused_ns", ...counted("paused_ns")) + (r.arrays.link_marked ? this.row("marked", "marked", ...counted("marked")) : "") + this.row("dropped", "dropped", ...counted("dropped")) : ""}</tbody></table>`;
  }
  ofNode(node) {
    const r = this.recording, interval = r.interval(this.time);
    if (!node.host) {
      const rows = node.out.slice(0, LISTED).map(direction => `<tr><td>${this.to("link", direction >> 1, r.nodes[r.to(direction)].name)}</td><td data-key="depth">${whole(r.depth(direction, this.time))}</td><td>${percent(r.busy(direction, interval))}</td><td>${whole(r.counted(direction, interval, "dropped"))}</td></tr>`);
      return `<p>Waiting in all ports: <b data-key="queued">${whole(r.queued(node, this.time))}</b> B${this.closer(node.part)}</p><table><thead><tr><th>port to</th><th>waiting (B)</th><th>busy</th><th>dropped</th></tr></thead><tbody>${rows.join("")}</tbody></table>`;
    }
    const up = node.out[0];
    return `<table><tbody>${this.row("sends", "sends", bps(r.rate(up, interval)))}${this.row("receives", "receives", bps(r.rate(up ^ 1, interval)))}${this.row("link", "link", this.to("link", up >> 1, r.label(up)))}</tbody></table>`
      + this.flows(flow => flow.source === node.i || flow.destination === node.i);
  }
  closer(part) { return part >= 0 ? ` · ${this.to("close", part, `close ${this.recording.partName(part)}`)}` : ""; }
  ofPart(part) {
    const r = this.recording, interval = r.interval(this.time), members = r.nodes.filter(node => node.part === part), hosts = members.filter(node => node.host);
    const ofHosts = hosts.length ? `${this.row("hosts", "hosts", whole(hosts.length))}${this.row("they send", "sends", bps(d3.sum(hosts, node => r.rate(node.out[0], interval))))}
      ${this.row("they receive", "receives", bps(d3.sum(hosts, node => r.rate(node.out[0] ^ 1, interval))))}` : "";
    return `<p>${this.open.has(part) ? this.to("close", part, "close it") : this.to("node", members[0].i, "open it")}</p><table><tbody>${ofHosts}${this.row("waiting in its switches (B)", "queued", whole(d3.sum(members.filter(node => !node.host), node => r.queued(node, this.time))))}</tbody></table>`;
  }
  ofRun() {
    const r = this.recording, interval = r.interval(this.time), hosts = r.nodes.filter(node => node.host);
    const ports = d3.range(2 * r.links.length), most = ports.map(direction => [r.depth(direction, this.time), direction]).filter(each => each[0]).sort((x, y) => y[0] - x[0]).slice(0, 5);
    return `<table><tbody>${this.row("hosts send", "sends", bps(d3.sum(hosts, node => r.rate(node.out[0], interval))))}${this.row("waiting in switches (B)", "queued", whole(d3.sum(r.nodes, node => node.host ? 0 : r.queued(node, this.time))))}</tbody></table>
      ${most.length ? `<h3>Where most waits now</h3><table><tbody>${most.map(([depth, direction]) => `<tr><td>${this.to("link", direction >> 1, r.label(direction))}</td><td>${bytes(depth)}</td></tr>`).join("")}</tbody></table>` : ""}${this.flows(() => true)}
      ${r.packetCount ? `<p>${this.to("packet", 0, `${whole(r.packetCount)} packets of a traced flow`)}</p>` : ""}`;
  }
  /* Flows in progress come first. */
  flows(fits) {
    const r = this.recording, found = [];
    for (let i = 0; i < r.flowCount; i++) {
      const flow = {i, source: r.arrays.source[i], destination: r.arrays.destination[i], start_ns: r.arrays.start_ns[i], completed_ns: r.arrays.completed_ns[i]};
      if (fits(flow) && r.under(flow, this.time)) found.push(flow);
    }
    const name = node => node < 0 ? "a group" : r.nodes[node].name;
    const rows = found.slice(0, 12).map(({i, source, destination}) => `<tr><td>${this.to("flow", i, `flow ${r.arrays.flow[i]}`)}</td><td class="text">${escape(name(source))} → ${escape(name(destination))}</td><td>${bytes(r.arrays.size_bytes[i])}</td></tr>`);
    return `<h3><span data-key="under_way">${whole(found.length)}</span> ${found.length === 1 ? "flow" : "flows"} under way</h3><table><tbody>${rows.join("")}</tbody></table>`;
  }
  ofFlow(flow) {
    const r = this.recording, time = (name, key) => this.row(name, key, flow[key] < 0 ? "not yet" : this.to("time", flow[key], us(flow[key])));
    const node = (name, i) => this.row(name, name, i < 0 ? "a group" : this.to("node", i, r.nodes[i].name));
    return `<table><tbody>${node("from", flow.source)}${node("to", flow.destination)}${this.row("size", "size_bytes", bytes(flow.size_bytes))}${time("starts", "start_ns")}${time("first sent", "first_sent_ns")}${time("delivered", "delivered_ns")}${time("acknowledged", "completed_ns")}
      ${this.row("completion time", "fct_ns", isNaN(flow.fct_ns) ? "–" : us(flow.fct_ns))}${this.row("slowdown", "slowdown", isNaN(flow.slowdown) ? "–" : fine(flow.slowdown))}${r.head.counts.map(([name, words]) => this.row(words, name, whole(flow[name]))).join("")}</tbody></table>`;
  }
  ofPacket(i) {
    const r = this.recording, packet = r.packet(i), hops = [];
    for (const event of packet.events) {
      if (event.kind > DROP) { if (hops.length) hops[hops.length - 1].does.push(event.text); continue; }
      hops.push({...event, does: []});
    }
    let on = -1;
    hops.forEach((hop, n) => { if (hop.time <= this.time) on = n; });
    const told = hop => `${r.nodes[hop.node].name} ${HOPS[hop.kind]}${hop.kind === DROP ? ` (${hop.text})` : ""}${hop.kind === ENQUEUE ? ` at port ${hop.port} behind ${bytes(hop.depth)}` : ""}${hop.kind === TRANSMIT ? ` by port ${hop.port}` : ""}`;
    const list = hops.map((hop, n) => `<li${n === on ? ' class="on"' : ""}>${this.to("time", hop.time, us(hop.time))} ${escape(told(hop))}${hop.does.length ? `<ul>${hop.does.map(text => `<li>${escape(text)}</li>`).join("")}</ul>` : ""}</li>`);
    return `<p>${i > 0 ? this.to("packet", i - 1, "‹ before") : ""} ${i + 1 < r.packetCount ? this.to("packet", i + 1, "next ›") : ""} of ${whole(r.packetCount)}</p>
      <table><tbody>${packet.psn >= 0 ? this.row("PSN", "psn", whole(packet.psn)) : ""}${this.row("size", "bytes", bytes(packet.bytes))}</tbody></table><ol id="hops">${list.join("")}</ol>`;
  }
}

const whole_ = (count, one, several = `${one}s`) => `${whole(count)} ${count === 1 ? one : several}`;

/* Points at the ends of intervals, and at the begin of the first one. */
function begun(points) {
  if (!points.length) return points;
  const [[first, value]] = points, width = points.length > 1 ? points[1][0] - first : first;
  return [[Math.max(first - width, 0), value], ...points];
}

/* The points in a window of time; if a pixel has several, the largest of them. */
function thinned(points, begin, end, width, steps) {
  const time = d3.bisector(point => point[0]), first = Math.max(time.left(points, begin) - 1, 0), last = time.right(points, end) + (steps ? 1 : 0);
  const inside = points.slice(first, last), each = Math.ceil(inside.length / (2 * width));
  if (each < 2) return inside;
  return d3.range(0, inside.length, each).map(i => inside.slice(i, i + each).reduce((most, point) => point[1] > most[1] ? point : most));
}

/* -- from the page itself, or from the process that watches a run --------------------------------------------------- */

/* Repeats until the process has ended. There are no data before its network is built. */
async function watch(page) {
  id("about").textContent = "The network is being set up.";
  for (;;) {
    const answer = await fetch("data").catch(() => null);
    if (!answer) { id("about").textContent += " The process has ended."; return; }
    if (answer.ok) page.load(await unpacked(await answer.arrayBuffer()));
    await new Promise(done => setTimeout(done, REFRESH_MS));
  }
}

async function begin() {
  const page = new Page(), kept = id("data").textContent.trim();
  window.replay = page;
  if (!kept) return watch(page);
  page.load(await unpacked(Uint8Array.from(atob(kept), c => c.charCodeAt(0))));
  const asked = () => {
    const of = new URLSearchParams(location.hash.slice(1));
    if (of.has("show")) page.find(of.get("show"));
    if (of.has("window")) page.show(...of.get("window").split("-").map(Number));
    if (of.has("t")) page.seek(+of.get("t"));
  };
  addEventListener("hashchange", asked);
  asked();
}
begin();
})();
