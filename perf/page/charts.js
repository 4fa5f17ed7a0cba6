// SPDX-License-Identifier: BSD-3-Clause
// Draws the charts of a page: each <figure data-chart="N"> has entry N of `charts`. Numbers and
// names come from there alone, and reach the page as text or as pixels.
const CELL_STEPS = 63, CELL_FIRST = "?".charCodeAt(0);
const charts = [];

function colour(name) {
	return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function seriesColour(place) {
	return colour("--c" + place % 6);
}

// "#rrggbb" with an opacity.
function faded(hex, share) {
	return hex + Math.round(255 * share).toString(16).padStart(2, "0");
}

// Four figures that matter, and no exponent where none is needed.
function shown(value) {
	if (value == null)
		return "";
	const size = Math.abs(value);
	if (size >= 1e9 || (size > 0 && size < 1e-3))
		return value.toExponential(2);
	if (size >= 1e4)
		return Math.round(value).toLocaleString("en");
	return String(Number(value.toPrecision(4)));
}

// For a cell of a matrix: 15.4, 1203, 12k.
function brief(value) {
	if (value == null)
		return "n/a";
	if (value >= 1e4)
		return Math.round(value / 1e3) + "k";
	return value >= 100 ? String(Math.round(value)) : String(Number(value.toPrecision(3)));
}

// Of a share its place on the axis: how many tenths of tenths are left above.
function tail(share) {
	return -Math.log10(1 - share);
}

function tailName(place) {
	const share = 1 - Math.pow(10, -place);
	return "p" + Number((100 * share).toFixed(Math.max(0, Math.round(place) - 1)));
}

function tailTicks(min, max) {
	const ticks = min < 0.2 ? [0] : [];
	ticks.push(tail(0.5));
	for (let nines = 1; nines <= max + 1e-9; nines++)
		ticks.push(nines);
	return ticks;
}

function ends(values) {
	let low = Infinity, high = -Infinity;
	for (const value of values) {
		if (value != null && value < low)
			low = value;
		if (value != null && value > high)
			high = value;
	}
	return low <= high ? [low, high] : [1, 2];
}

// A margin beside the outermost points, in the measure of the scale.
function range(values, log, zero) {
	let [low, high] = ends(values);
	if (log) {
		low = low > 0 ? low : Math.min(1e-3, high / 10);
		return [low / Math.pow(high / low, 0.05) * 0.98, high * Math.pow(high / low, 0.05) * 1.02];
	}
	const margin = (high - low || Math.abs(high) || 1) * 0.06;
	return [zero && low >= 0 ? 0 : low - margin, high + margin];
}

// Round numbers of a logarithmic scale; of a short one those of an even scale.
function logTicks(min, max) {
	const decades = Math.log10(max / min), ticks = [];
	if (decades < 0.7) {
		const rough = (max - min) / 5, ten = Math.pow(10, Math.floor(Math.log10(rough)));
		const step = ten * [1, 2, 5, 10].find((of) => of * ten >= rough);
		for (let tick = Math.ceil(min / step); tick * step <= max; tick++)
			ticks.push(tick * step);
		return ticks;
	}
	const steps = decades > 3 ? [1] : decades > 1.5 ? [1, 3] : [1, 2, 5];
	for (let power = Math.floor(Math.log10(min)); power <= Math.log10(max); power++) {
		for (const step of steps) {
			const tick = step * Math.pow(10, power);
			if (tick >= min && tick <= max)
				ticks.push(tick);
		}
	}
	return ticks;
}

// Of numbers that count things no fractions.
const WHOLE_STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000];

function axis(description, side) {
	const made = {
		label: description.label, stroke: colour("--text"), labelSize: 24,
		grid: {stroke: colour("--line"), width: 1}, ticks: {stroke: colour("--line"), width: 1},
		values: (plot, splits) => splits.map(shown),
	};
	if (side === "y")
		made.size = 64;
	if (description.scale === "tail") {
		made.splits = (plot, place, min, max) => tailTicks(min, max);
		made.values = (plot, splits) => splits.map(tailName);
	} else if (description.ticks) {
		made.splits = () => description.ticks.map((name, place) => place);
		made.values = (plot, splits) => splits.map((place) => description.ticks[place]);
	} else if (description.scale === "log") {
		made.splits = (plot, place, min, max) => logTicks(min, max);
		made.filter = (plot, splits) => splits; // uPlot's own names tens only
	} else if (description.whole) {
		made.incrs = WHOLE_STEPS;
	}
	return made;
}

function scale(description, values, zero) {
	const log = description.scale === "log";
	const between = description.ticks ? [-0.5, description.ticks.length - 0.5] :
		range(values, log, zero);
	return {time: false, distr: log ? 3 : 1, log: 10, range: () => between};
}

// Beside a point, where no label is yet: right and above of it, else another corner. The first one,
// if all are taken.
function putLabel(plot, text, left, top, taken) {
	const context = plot.ctx, ratio = devicePixelRatio || 1, height = 12 * ratio;
	context.font = height + "px system-ui, sans-serif";
	const width = context.measureText(text).width, area = plot.bbox;
	const boxes = [[7, -6], [7, 14], [-7, -6], [-7, 14]].map(([x, y]) => {
		const begin = left + x * ratio - (x < 0 ? width : 0), base = top + y * ratio;
		return {begin, end: begin + width, top: base - height, base};
	}).filter((box) => box.begin >= area.left && box.end <= area.left + area.width &&
		box.top >= area.top && box.base <= area.top + area.height);
	const free = boxes.find((box) => taken.every((other) => box.end < other.begin ||
		box.begin > other.end || box.base < other.top || box.top > other.base));
	const box = free || boxes[0];
	if (!box)
		return;
	taken.push(box);
	context.fillStyle = colour("--text");
	context.textAlign = "left";
	context.textBaseline = "alphabetic";
	context.fillText(text, box.begin, box.base);
}

// Lines, intervals and labels of points as they were given, whatever order x has.
function strokeSeries(plot, series, place, taken) {
	const context = plot.ctx, ratio = devicePixelRatio || 1, base = seriesColour(place);
	const at = (n) => [plot.valToPos(series.x[n], "x", true), plot.valToPos(series.y[n], "y", true)];
	context.save();
	context.beginPath();
	context.rect(plot.bbox.left, plot.bbox.top, plot.bbox.width, plot.bbox.height);
	context.clip();
	context.strokeStyle = context.fillStyle = base;
	context.lineWidth = 2 * ratio;
	context.beginPath();
	for (let n = 0; !series.points && n < series.x.length; n++) {
		if (series.x[n] != null && series.y[n] != null)
			context.lineTo(...at(n));
	}
	context.stroke();
	for (let n = 0; n < series.x.length; n++) {
		if (series.x[n] == null || series.y[n] == null)
			continue;
		const [left, top] = at(n);
		context.beginPath();
		context.arc(left, top, 4 * ratio, 0, 2 * Math.PI);
		context.fill();
		if (series.low && series.low[n] != null) {
			const bottom = plot.valToPos(series.low[n], "y", true);
			const end = plot.valToPos(series.high[n], "y", true);
			context.beginPath();
			for (const edge of [bottom, end]) {
				context.moveTo(left - 5 * ratio, edge);
				context.lineTo(left + 5 * ratio, edge);
			}
			context.moveTo(left, bottom);
			context.lineTo(left, end);
			context.stroke();
		}
		if (series.labels && series.labels[n] != null) {
			putLabel(plot, series.labels[n], left, top, taken);
			context.fillStyle = base;
		}
	}
	context.restore();
}

function level(plot, value) {
	const top = plot.valToPos(value, "y", true), context = plot.ctx;
	context.save();
	context.strokeStyle = colour("--faint");
	context.lineWidth = devicePixelRatio || 1;
	context.setLineDash([6, 4]);
	context.beginPath();
	context.moveTo(plot.bbox.left, top);
	context.lineTo(plot.bbox.left + plot.bbox.width, top);
	context.stroke();
	context.restore();
}

function rises(values) {
	return values.every((value, n) => n === 0 || (value != null && value > values[n - 1]));
}

function allOf(chart, names) {
	return [].concat(...chart.series.map((series) =>
		[].concat(...names.map((name) => series[name] || []))));
}

// "106 (95.3 to 120)", of the curve at `place`, behind which its interval's ends are.
function shownWithin(plot, place, at, value) {
	const high = plot.data[place + 1][at], low = plot.data[place + 2][at];
	return shown(value) + (low == null || high == null ? "" :
		` (${shown(low)} to ${shown(high)})`);
}

// An interval is hidden with its curve.
function hideTogether(plot, place, change) {
	if (place == null || change.show == null)
		return;
	for (let end = place + 1; plot.series[end] && plot.series[end].class === "interval"; end++)
		plot.setSeries(end, {show: change.show});
}

// Series whose x rises share one cursor, which shows all of them; their intervals are bands.
function alignedCurves(chart, width, scales, axes, draw) {
	const xs = [...new Set(allOf(chart, ["x"]))].sort((a, b) => a - b);
	const data = [xs], series = [{label: chart.x.label,
		value: (plot, value) => value == null ? "" :
			chart.x.scale === "tail" ? tailShown(value) : shown(value)}];
	const bands = [];
	const spread = (of, name) => {
		const places = new Map(of.x.map((x, n) => [x, of[name][n]]));
		return xs.map((x) => places.has(x) ? places.get(x) : undefined);
	};
	chart.series.forEach((of, place) => {
		const base = seriesColour(place);
		data.push(spread(of, "y"));
		series.push({label: of.name, stroke: base, width: 2, spanGaps: false,
			points: {show: of.x.length < 40}, value: (plot, value, at, n) =>
				value == null || !of.low ? shown(value) : shownWithin(plot, at, n, value)});
		if (!of.low)
			return;
		for (const name of ["high", "low"]) {
			data.push(spread(of, name));
			series.push({label: name, class: "interval", stroke: faded(base, 0.35), width: 1,
				points: {show: false}});
		}
		bands.push({series: [data.length - 2, data.length - 1], fill: faded(base, 0.18)});
	});
	return [{width, height: 320, scales, axes, series, bands,
		hooks: {draw: draw, setSeries: [hideTogether]}, cursor: {y: false}}, data];
}

function tailShown(place) {
	return "p" + Number((100 - 100 * Math.pow(10, -place)).toPrecision(7));
}

function freeCurves(chart, width, scales, axes, draw) {
	const [low, high] = ends(allOf(chart, ["x"]));
	const hooks = {draw: [...draw, (plot) => {
		const taken = []; // by labels
		chart.series.forEach((of, place) => {
			if (plot.series[place + 1].show)
				strokeSeries(plot, of, place, taken);
		});
	}]};
	const series = [{label: chart.x.label}, ...chart.series.map((of, place) => ({
		label: of.name, stroke: seriesColour(place), paths: () => null, points: {show: false}}))];
	return [{width, height: 360, scales, axes, series, hooks, cursor: {show: false},
		legend: {live: false}}, [[low, high], ...chart.series.map(() => [null, null])]];
}

function drawCurves(figure, chart, width) {
	if (chart.x.scale === "tail") {
		chart.x.scaled = chart.x.scaled || chart.series.forEach((of) => {
			of.x = of.x.map(tail);
		}) || true;
	}
	const scales = {
		x: scale(chart.x, allOf(chart, ["x"]), false),
		y: scale(chart.y, allOf(chart, ["y", "low", "high"]).concat(chart.level ?? []), true),
	};
	chart.x.whole = allOf(chart, ["x"]).every(Number.isInteger);
	const draw = chart.level == null ? [] : [(plot) => level(plot, chart.level)];
	const aligned = chart.series.every((of) => !of.points && !of.labels && rises(of.x));
	const make = aligned ? alignedCurves : freeCurves;
	const [options, data] = make(chart, width, scales, [axis(chart.x), axis(chart.y, "y")], draw);
	return new uPlot(options, data, figure);
}

// The cells of the heat map, under the lines, and the cuts.
function paintCells(plot, chart) {
	const context = plot.ctx, base = colour("--c0");
	const edge = (row) => plot.valToPos(
		chart.low * Math.pow(chart.high / chart.low, row / chart.rows), "y", true);
	const edges = Array.from({length: chart.rows + 1}, (_, row) => edge(row));
	const shades = Array.from({length: CELL_STEPS + 1}, (_, part) =>
		faded(base, 0.04 + 0.66 * part / CELL_STEPS));
	context.save();
	for (let column = 0; column < chart.columns; column++) {
		const left = plot.valToPos(chart.edges[column], "x", true);
		const right = plot.valToPos(chart.edges[column + 1], "x", true);
		for (let row = 0; row < chart.rows; row++) {
			const part = chart.cells.charCodeAt(column * chart.rows + row) - CELL_FIRST;
			if (part <= 0)
				continue;
			context.fillStyle = shades[part];
			context.fillRect(left, edges[row + 1], right - left + 0.5,
				edges[row] - edges[row + 1] + 0.5);
		}
	}
	context.strokeStyle = colour("--bad");
	context.lineWidth = 2 * (devicePixelRatio || 1);
	for (const cut of chart.cuts) {
		const left = plot.valToPos(cut, "x", true);
		context.beginPath();
		context.moveTo(left, plot.bbox.top);
		context.lineTo(left, plot.bbox.top + plot.bbox.height);
		context.stroke();
	}
	context.restore();
}

function drawCourse(figure, chart, width) {
	const edges = chart.edges, last = edges[chart.columns];
	const xs = Array.from({length: chart.columns}, (_, n) => (edges[n] + edges[n + 1]) / 2);
	const series = [{label: chart.x_label, value: (plot, value) => shown(value)}];
	chart.lines.forEach((of, place) => series.push({label: of.name, stroke: seriesColour(place + 1),
		width: 1.5, points: {show: false}, value: (plot, value) => shown(value)}));
	return new uPlot({
		width, height: 320, series, cursor: {y: false},
		scales: {
			x: {time: false, range: () => [edges[0], last]},
			y: {distr: 3, log: 10, range: () => [chart.low, chart.high]},
		},
		axes: [axis({label: chart.x_label, scale: "linear"}),
			axis({label: chart.y_label, scale: "log"}, "y")],
		hooks: {drawAxes: [(plot) => paintCells(plot, chart)]},
	}, [xs, ...chart.lines.map((of) => of.y)], figure);
}

// Of a name that is too wide its end, which tells neighbours apart.
function fitted(context, name, room) {
	if (context.measureText(name).width <= room)
		return name;
	let from = 1;
	while (from < name.length && context.measureText("\u2026" + name.slice(from)).width > room)
		from++;
	return "\u2026" + name.slice(from);
}

function marksOf(chart) {
	const marks = new Map(), {texts, places} = chart.marks;
	for (let n = 0; n < places.length; n += 2)
		marks.set(places[n], texts[places[n + 1]]);
	return marks;
}

// From light to dark, with both ends named.
function matrixKey(chart, low, high) {
	const lacks = chart.values.some((value, n) =>
		value == null && n % (chart.names.length + 1) !== 0);
	const key = document.createElement("p"), bar = document.createElement("span");
	const base = colour("--c0");
	bar.className = "bar";
	bar.style.background = `linear-gradient(to right, ${faded(base, 0.08)}, ${faded(base, 0.98)})`;
	key.className = "key";
	key.append(shown(low) + " " + chart.unit, bar, shown(high) + " " + chart.unit +
		"; from the process of the row to that of the column" +
		(lacks ? "; grey: not known" : ""));
	return key;
}

// A frame is around what stands out.
function drawMatrix(figure, chart, width) {
	const count = chart.names.length, ratio = devicePixelRatio || 1;
	const canvas = document.createElement("canvas"), tip = document.createElement("div");
	const context = canvas.getContext("2d"), marks = marksOf(chart);
	const [low, high] = ends(chart.values), base = colour("--c0"), bad = colour("--bad");
	const back = colour("--back"), text = colour("--text"), lacking = colour("--line");
	context.font = "12px system-ui, sans-serif";
	const widest = Math.max(...chart.names.map((name) => context.measureText(name).width));
	const room = Math.min(150, width / 4, Math.max(24, Math.ceil(widest) + 10));
	const cell = Math.max(3, Math.min(44, Math.floor((width - room - 10) / count)));
	const side = cell * count, font = Math.min(12, Math.max(6, cell - 1));
	const share = (value) => high > low ? Math.log(value / low) / Math.log(high / low) : 0;
	canvas.width = (side + room + 4) * ratio;
	canvas.height = (side + room + 4) * ratio;
	canvas.style.width = side + room + 4 + "px";
	context.scale(ratio, ratio);
	context.textBaseline = "middle";
	context.font = font + "px system-ui, sans-serif";
	context.fillStyle = text;
	const step = Math.ceil(8 / cell); // names of so many lines collide
	chart.names.forEach((whole, n) => {
		if (n % step !== 0)
			return;
		const name = fitted(context, whole, room - 10), upright = count <= 100 &&
			context.measureText(name).width < cell - 2;
		context.textAlign = "right";
		context.fillText(name, room - 6, room + (n + 0.5) * cell);
		context.save();
		context.translate(room + (n + 0.5) * cell, room - 6);
		context.textAlign = upright ? "center" : "left";
		context.rotate(upright ? 0 : -Math.PI / 2);
		context.fillText(name, 0, upright ? -4 : 0);
		context.restore();
	});
	context.textAlign = "center";
	context.font = "11px system-ui, sans-serif";
	chart.values.forEach((value, n) => {
		const left = room + n % count * cell, top = room + Math.floor(n / count) * cell;
		if (value == null && n % (count + 1) === 0)
			return;
		context.fillStyle = value == null ? lacking : faded(base, 0.08 + 0.9 * share(value));
		context.fillRect(left, top, cell - 1, cell - 1);
		if (cell >= 34) {
			context.fillStyle = value != null && share(value) > 0.5 ? back : text;
			context.fillText(brief(value), left + cell / 2, top + cell / 2, cell - 4);
		}
		if (marks.has(n)) {
			context.strokeStyle = bad;
			context.lineWidth = cell > 8 ? 2 : 1;
			context.strokeRect(left + 0.5, top + 0.5, cell - 2, cell - 2);
		}
	});
	tip.className = "tip";
	tip.hidden = true;
	canvas.addEventListener("mousemove", (event) => {
		const column = Math.floor((event.offsetX - room) / cell);
		const row = Math.floor((event.offsetY - room) / cell), n = row * count + column;
		const inside = column >= 0 && row >= 0 && column < count && row < count;
		tip.hidden = !inside || row === column;
		if (tip.hidden)
			return;
		const value = chart.values[n], mark = marks.has(n) ? ": " + marks.get(n) : "";
		tip.textContent = chart.names[row] + " to " + chart.names[column] + " " +
			(value == null ? "not known" : shown(value) + " " + chart.unit) + mark;
		tip.style.left = event.offsetX + 12 + "px";
		tip.style.top = event.offsetY + 30 + "px";
	});
	canvas.addEventListener("mouseleave", () => { tip.hidden = true; });
	const key = matrixKey(chart, low, high);
	figure.append(canvas, tip, key);
	return {destroy() { canvas.remove(); tip.remove(); key.remove(); }};
}

const drawers = {curves: drawCurves, course: drawCourse, matrix: drawMatrix};
let drawn = [];

function drawAll() {
	drawn.forEach((plot) => plot.destroy());
	drawn = [...document.querySelectorAll("figure[data-chart]")].map((figure) => {
		const chart = charts[Number(figure.dataset.chart)];
		return drawers[chart.kind](figure, chart, Math.max(320, figure.clientWidth));
	});
}
