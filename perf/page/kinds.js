// SPDX-License-Identifier: BSD-3-Clause
// Pages of each kind of result: headings, sentences, tables and charts from its JSON. C computes
// the members `page`; docs/perf-json.md describes the others.

function log(label) {
	return {label, scale: "log"};
}

// A run: `lat` and `bw`.

function runTiles(figures, isValid) {
	const rows = [0, 2, 3].map((place) => {
		const quantile = figures.quantiles[place];
		if (!isValid)
			return [quantile.name + ", us", "not valid", "saturated"];
		return [quantile.name + ", us", us(quantile.value_ns), quantile.low_ns == null ?
			quantile.note : within(quantile.low_ns, quantile.high_ns)];
	});
	tiles([...rows, ["max, us", us(figures.max_ns), "of " + figures.count]]);
}

function gbits(result, rate) {
	return rate == null ? "n/a" : general(rate * result.size_bytes * 8 / 1e9, 4);
}

function gbitsWithin(result, quantile) {
	return quantile.low_per_s == null ? "no interval" :
		gbits(result, quantile.low_per_s) + " to " + gbits(result, quantile.high_per_s);
}

function ratesTiles(result) {
	const rates = result.rates, p50 = rates.quantiles[0], p99 = rates.quantiles[2];
	tiles([
		["mean, Gbit/s", gbits(result, rates.mean_per_s),
			fixed(rates.mean_per_s, 0) + " messages/s"],
		["median of windows, Gbit/s", gbits(result, p50.messages_per_s),
			gbitsWithin(result, p50)],
		["99 % of windows, Gbit/s", gbits(result, p99.messages_per_s),
			gbitsWithin(result, p99)],
		["worst window, Gbit/s", gbits(result, rates.worst_per_s),
			"best " + gbits(result, rates.best_per_s)],
	]);
}

function ratesTable(result) {
	const rates = result.rates;
	const row = (name, rate) => [name, fixed(rate, 1), "", gbits(result, rate), "", ""];
	const rows = [row("mean", rates.mean_per_s), row("best window", rates.best_per_s)];
	result.times.figures.quantiles.forEach((quantile, n) => {
		const rate = rates.quantiles[n], known = quantile.low_ns != null;
		rows.push([general(quantile.per_million / 1e4, 6) + " %",
			fixed(rate.messages_per_s, 1),
			known ? fixed(rate.low_per_s, 1) + " to " + fixed(rate.high_per_s, 1) : "n/a",
			gbits(result, rate.messages_per_s), fixed(quantile.worth, 0),
			!known ? quantile.note : quantile.note === "" ? "" : "few effective windows"]);
	});
	rows.push(row("worst window", rates.worst_per_s));
	if (result.peer_messages > 0)
		rows.push(row("mean of the server", rates.peer_per_s),
			row("mean of both", rates.mean_per_s + rates.peer_per_s));
	table(["of windows", "messages/s", "95 % interval", "Gbit/s", "effective windows", ""], rows,
		"noted");
}

// The file keeps the words of its first schema.
function noteOf(quantile) {
	return quantile.note === "few samples beyond it" ? "few effective samples" : quantile.note;
}

// The table of a series; `half` adds halves of round trips.
function summary(what, figures, half) {
	const row = (name, value, interval, effective, note) => [name, us(value), interval,
		...half ? [value == null ? "n/a" : us(value / 2)] : [], effective, note];
	const plain = (name, value) => row(name, value, "", "", "");
	table(["", what + ", us", "95 % interval", ...half ? ["half, us"] : [], "effective samples",
		""], [plain("min", figures.min_ns), ...figures.quantiles.map((quantile) =>
		row(quantile.name, quantile.value_ns, quantile.low_ns == null ? "n/a" :
			within(quantile.low_ns, quantile.high_ns), fixed(quantile.worth, 0),
		noteOf(quantile))), plain("max", figures.max_ns), plain("mean", figures.mean_ns)], "noted");
}

function judgement(figures) {
	const last = figures.quantiles[figures.judged_quantiles - 1];
	if (figures.course === "changed while it ran")
		paragraph("Latency changed during the run: read its parts, not one figure for all.",
			"bad");
	else if (figures.course === "no change found")
		paragraph(`No change found over the run, up to ${last ? last.name : ""}.`, "good");
	else
		paragraph("The run is too short to judge whether it is steady.");
	return figures.course === "changed while it ran";
}

function percentiles(all) {
	curves("Percentiles, with their 95 % intervals as a band",
		{label: "percentile", scale: "tail"}, log("us"), all.map((of) => ({
			name: of.name, x: of.value_ns.map((_, n) => 1 - Math.pow(10, -n / of.steps)),
			y: times(of.value_ns, 1e-3), low: times(of.low_ns, 1e-3),
			high: times(of.high_ns, 1e-3)})));
}

function course(of) {
	chart("Over the run: the darker a cell, the more samples it has", {
		kind: "course", x_label: "seconds", y_label: "us", columns: of.columns, rows: of.rows,
		edges: of.edges_s, low: of.low_ns / 1e3, high: of.high_ns / 1e3, cells: of.cells,
		lines: [["p50", of.p50_ns], ["p99", of.p99_ns], ["max", of.max_ns]].map(
			([name, values]) => ({name, y: times(values, 1e-3)}))
			.filter((line) => line.y.some((value) => value != null)),
		cuts: of.begins_s.slice(1).filter((cut) => cut != null),
	});
}

function segments(figures, begins) {
	table(["from, s", "from sample", "samples", "p50, us", "p90, us", "p99, us"],
		figures.segments.map((segment, n) => [
			begins[n] == null ? "?" : fixed(begins[n], 3), segment.first_sample,
			segment.samples, us(segment.p50_ns), us(segment.p90_ns), us(segment.p99_ns)]));
}

function outliers(result) {
	const rows = [];
	result.page.outliers.forEach((says, n) => {
		const of = result.outliers[n];
		if (says != null)
			rows.push([us(of.took_ns), fixed(of.at_ns / 1e9, 3), of.sample,
				Number.isInteger(of.khz) && of.khz >= 0 ? fixed(of.khz / 1e6, 2) : "n/a",
				says]);
	});
	if (result.page.outliers.length > 0)
		table(["largest, us", "at, s", "sample", "GHz", "what the client's kernel counted"], rows,
			"noted");
}

function openLoad(load) {
	if (load.saturated)
		paragraph(`Not valid: saturated, ${text(load.reason)}.`, "bad");
	paragraph(`Offered load ${general(load.offered_per_s, 6)} operations a second; an operation ` +
		`was under way ${general(100 * load.occupied, 3)} % of the time. The sender was late by ` +
		`${us(load.lag_p99_ns)} us at p99.`);
}

function deviceTime(device) {
	const figures = device.device.figures, answers = device.server_answers;
	summary("device", figures, false);
	summary("host", device.host.figures, false);
	paragraph("Device: from submission to the device's completion stamp. Host: from the stamp " +
		`until the program saw the completion. The device's ${text(device.clock)} clock was off ` +
		`by at most ${us(device.off_ns)} us.`);
	if (answers != null)
		paragraph("Of the device's mean, the server's program took " +
			`${us(answers.mean_ns)} us to answer; the other ` +
			`${us(figures.mean_ns - answers.mean_ns)} us passed from NIC to NIC and back.`);
	if (device.outside > 0)
		paragraph((device.doubtful ? "Not valid: " : "") +
			`${device.outside} stamps lie outside of their operation.`,
		device.doubtful ? "bad" : "");
}

function runResult(plan, result) {
	const own = result.page, figures = result.times.figures;
	const messages = result.window_messages, isLoad = messages > 0, isOpen = "load" in result;
	const windows = isLoad ? `windows of ${messages} message${plural(messages)}` : "samples";
	const what = isLoad ? "time of a window" : text(result.what);
	paragraph(`${figures.count} ${windows} in ${own.took}, after ${result.warm_up.dropped} that ` +
		"were dropped as warm-up.");
	if (!result.complete)
		paragraph("Incomplete: the run ended early.", "bad");
	if (isLoad)
		ratesTiles(result);
	else
		runTiles(figures, !(isOpen && result.load.saturated));
	if (isOpen)
		openLoad(result.load);
	const changed = judgement(figures);
	for (const end of ["client", "server"]) {
		if (own.noise[end])
			paragraph(`Noise, ${end}: ${own.noise[end]}.`);
	}
	if (isLoad) {
		ratesTable(result);
		paragraph("What follows is the time of a window: a short time is a high rate.");
	}
	percentiles(own.percentiles);
	if (own.course)
		course(own.course);
	if (changed)
		segments(figures, own.course ? own.course.begins_s : []);
	outliers(result);
	summary(what, figures, plan.answered === true && !isOpen);
	if (isOpen)
		summary("service", result.service.figures, false);
	if (result.device_time)
		deviceTime(result.device_time);
}

// One curve for each of some quantiles over the sizes.
function sizesChart(caption, unit, results, names, figure) {
	const x = results.map((result) => result.size_bytes);
	curves(caption, log("bytes"), log(unit), names.map(([place, name]) => {
		const all = results.map((result) => figure(result, place));
		return {name, x, y: all.map((of) => of[0]), low: all.map((of) => of[1]),
			high: all.map((of) => of[2])};
	}));
}

function latencyOfSizes(results) {
	sizesChart("Latency by size, with 95 % intervals", "us", results,
		[[0, "p50"], [2, "p99"], [3, "p99.9"]], (result, place) => {
			const of = result.times ? result.times.figures.quantiles[place] : {};
			return times([of.value_ns, of.low_ns, of.high_ns], 1e-3);
		});
}

function ratesOfSizes(results) {
	sizesChart("Bandwidth by size, with 95 % intervals", "Gbit/s", results,
		[[0, "median"], [2, "99 % of windows"]], (result, place) => {
			const of = result.rates ? result.rates.quantiles[place] : {};
			return times([of.messages_per_s, of.low_per_s, of.high_per_s],
				result.size_bytes * 8 / 1e9);
		});
}

function bothMachines(environment) {
	facts("client", member(environment, "client"));
	facts("server", member(environment, "server"));
}

function runPage(root) {
	const plan = member(root, "plan"), results = root.results;
	paragraph(root.page.headline);
	if (text(root.incomplete) !== "")
		paragraph("Incomplete: " + root.incomplete, "bad");
	if (results.length > 1 && plan.command === "bw")
		ratesOfSizes(results);
	else if (results.length > 1)
		latencyOfSizes(results);
	for (const result of results) {
		heading(result.page.size);
		if (result.times)
			runResult(plan, result);
		else
			paragraph("No sample.", "bad");
	}
	heading("Setup");
	fold("Plan and both machines", () => {
		facts("plan", plan);
		bothMachines(member(root, "environment"));
	});
	fold("How to read this", () => {
		paragraph("A 95 % interval holds the true quantile with a probability of 95 %. It comes " +
			"from order statistics at the effective number of samples: samples in a row depend " +
			"on each other, so they are worth fewer independent ones. \"few effective samples\" " +
			"marks a quantile whose share of larger samples is not known within 10 %. An " +
			"interval is about this run, not about the next one: compare runs with tocsin-perf " +
			"compare.");
		paragraph("The band is interpolated between the quantiles of the table. Time over the " +
			"run is the sum of the samples; the rest of the run's time is spread evenly between " +
			"them. A red line marks a change.");
	});
}

// Idle policies.

const CPU_PERCENT_MIN = 0.1; // lower limit of the chart; the tick clock cannot measure less

// Processor time of both workers, in percent of one processor; NaN: not known.
function cpuPercent(row) {
	return row.cpu && row.cpu[0] != null && row.cpu[1] != null ?
		100 * (row.cpu[0] + row.cpu[1]) : NaN;
}

function loadName(row) {
	return row.rate_per_s === 0 ? "closed loop" : row.rate_per_s + "/s";
}

function policiesOfLoad(rows, load) {
	const valid = rows.filter((row) => !row.saturated && row.p50_ns != null &&
		isFinite(cpuPercent(row)));
	if (valid.length === 0) {
		paragraph(`${load}: no run has a valid median.`);
		return;
	}
	const fastest = valid.reduce((best, row) => row.p50_ns < best.p50_ns ? row : best);
	const cheapest = valid.reduce((best, row) =>
		cpuPercent(row) < cpuPercent(best) ? row : best);
	const words = (row) => `${text(row.policy)} (p50 ${us(row.p50_ns)} us at ` +
		`${fixed(cpuPercent(row), 1)} % of a processor)`;
	if (valid.length === 1)
		paragraph(`${load}: ${words(fastest)} alone has a valid median.`);
	else if (fastest === cheapest)
		paragraph(`${load}: ${words(fastest)} is the fastest and the cheapest.`, "good");
	else
		paragraph(`${load}: ${words(fastest)} is the fastest, ${words(cheapest)} the cheapest.`);
}

function policiesChart(rows, name) {
	const series = new Map();
	let count = 0;
	for (const row of rows) {
		const value = row[name + "_ns"], policy = text(row.policy);
		if (!series.has(policy))
			series.set(policy, {name: policy, x: [], y: [], labels: [], points: true});
		if (value == null || !isFinite(cpuPercent(row)))
			continue;
		const of = series.get(policy);
		of.x.push(Math.max(cpuPercent(row), CPU_PERCENT_MIN));
		of.y.push(value / 1e3);
		of.labels.push((row.rate_per_s === 0 ? "closed" : row.rate_per_s + "/s") +
			(row.saturated ? ", saturated" : ""));
		count++;
	}
	if (count === 0)
		paragraph(`No chart of ${name}: no run had enough samples.`);
	else
		curves(`${name} against processor time: lower left is better`,
			log("processor time of both workers, % of one processor"), log(name + ", us"),
			[...series.values()]);
}

function policiesPage(root) {
	const rows = root.rows, saturated = rows.filter((row) => row.saturated).length;
	for (const load of new Set(rows.map((row) => row.rate_per_s))) {
		const of = rows.filter((row) => row.rate_per_s === load);
		policiesOfLoad(of, loadName(of[0]));
	}
	if (saturated > 0)
		paragraph(`${saturated} of ${rows.length} runs ${saturated === 1 ? "is" : "are"} ` +
			"saturated, and so not valid: operations were due faster than they were served, or " +
			"the sender lagged.", "bad");
	policiesChart(rows, "p50");
	policiesChart(rows, "p99");
	heading("All runs");
	table(["load", "policy", "p50, us", "p99, us", "max, us", "client %", "server %",
		"sleeps a second", ""], rows.map((row) => [loadName(row), text(row.policy),
		us(row.p50_ns), us(row.p99_ns), us(row.max_ns), ...row.cpu ?
			[...row.cpu.map(share => share == null ? "n/a" : fixed(100 * share, 1)),
				fixed(row.sleeps_per_s[0], 0) + ", " + fixed(row.sleeps_per_s[1], 0),
				row.saturated ? "saturated" : ""] : ["", "", "", text(row.why)]]), "noted");
	heading("Setup");
	paragraph(root.page.headline);
	if (root.page.environment)
		fold("Both machines", () => bothMachines(root.page.environment));
	fold("How to read this", () => paragraph("Each point is one policy under one load. Its " +
		"height is the round trip in a closed loop, or the response time under Poisson arrivals. Its " +
		"place to the right is the cost: the share of a processor that the polling threads of " +
		"client and server used, together up to 200 %. spin always polls; window yields, then " +
		"sleeps longer and longer; event sleeps until the device signals; adaptive spins as long " +
		"as that pays."));
}

// A comparison of A and B.

function claimOfRow(own, row) {
	const shifts = [row.low, row.high].map(Math.abs);
	switch (row.outcome) {
	case "no_value":
		return [": a run has too few samples for it"];
	case "too_few_runs":
		return [`: it needs ${own.runs_least} runs of each`];
	case "same":
		return [` within ${general(own.margin_ppm / 1e4, 6)} %`, "good"];
	case "undecided":
		return [`: B - A is ${signed(row.shift, 2)} %, between ${signed(row.low, 2)} and ` +
			`${signed(row.high, 2)} %`];
	default:
		return [` by ${fixed(Math.abs(row.shift), 2)} %, between ` +
			`${fixed(Math.min(...shifts), 2)} and ${fixed(Math.max(...shifts), 2)} %`,
		row.outcome === "slower" ? "bad" : "good"];
	}
}

function claim(own, row) {
	const [behind, tone] = claimOfRow(own, row);
	const changed = row.outcome === "slower" || row.outcome === "faster";
	paragraph(`${row.name}: ${changed ? "B is " : ""}${row.says}${behind}.`, tone);
}

function claimCounts(own) {
	const count = (...outcomes) =>
		own.rows.filter((row) => outcomes.includes(row.outcome)).length;
	paragraph(`Of ${own.claims} claims B is slower in ${count("slower")}, faster in ` +
		`${count("faster")}, not changed in ${count("same")}; ` +
		`${count("undecided", "too_few_runs")} are undecided.`,
	count("slower") > 0 ? "bad" : "good");
}

function shiftSeries(name, x, rows) {
	return {name, x, y: rows.map((row) => row.shift), low: rows.map((row) => row.low),
		high: rows.map((row) => row.high)};
}

function shiftsChart(x, series) {
	curves("By how much B is slower, with 95 % intervals over runs", x,
		{label: "%", scale: "linear"}, series, 0);
}

function shiftsOfSizes(own) {
	const names = [...new Set(own.rows.map((row) => row.name))];
	shiftsChart(log("bytes"), names.map((name) => {
		const rows = own.rows.filter((row) => row.name === name);
		return shiftSeries(name, rows.map((row) => row.size_bytes), rows);
	}));
}

function shiftsOfQuantiles(own) {
	if (own.rows.some((row) => row.shift != null))
		shiftsChart({label: "quantile", scale: "linear", ticks: own.rows.map((row) => row.name)},
			[Object.assign(shiftSeries("B against A", own.rows.map((_, n) => n), own.rows),
				{points: true})]);
}

// One quantile of each run; runs of one side are next to each other.
function runsOfSides(own, name) {
	curves(`${name} of each run`, {label: "runs, in the order given", scale: "linear",
		ticks: ["A", "B"]}, log("us"), [own.a, own.b].map((side, at) => {
		const values = side[name + "_ns"];
		return {name: "AB"[at], points: true, y: times(values, 1e-3),
			x: values.map((_, n) => at + 0.6 * ((n + 0.5) / values.length - 0.5))};
	}));
}

function versusPage(root) {
	const own = root.page;
	paragraph(own.headline);
	if (own.a.plan === own.b.plan)
		paragraph(`Both: ${own.a.plan}.`);
	else
		["a", "b"].forEach((side) => paragraph(`${side.toUpperCase()}: ${own[side].plan}.`));
	if (own.same_runs)
		paragraph(own.same_runs_says);
	if (own.sizes === 1) {
		own.rows.forEach((row) => claim(own, row));
		shiftsOfQuantiles(own);
		runsOfSides(own, "p50");
		runsOfSides(own, "p99");
	} else {
		claimCounts(own);
		shiftsOfSizes(own);
	}
	const known = (value, words) => value == null ? "" : words;
	table(["size", "", "A, us", "B, us", "shift", "95 % interval", "p", "result"],
		own.rows.map((row) => [row.size, row.name, known(row.a_ns, fixed(row.a_ns / 1e3, 3)),
			known(row.b_ns, fixed(row.b_ns / 1e3, 3)),
			known(row.shift, signed(row.shift, 2) + " %"),
			known(row.shift, `${signed(row.low, 2)} to ${signed(row.high, 2)} %`),
			known(row.p, fixed(row.p, 4)), row.says]), "noted");
	fold("Files", () => table(["side", "file"], [...own.a.paths.map((path) => ["A", path]),
		...own.b.paths.map((path) => ["B", path])]));
	fold("How to read this", () => paragraph("The unit is a run: each file gives one value of " +
		"each quantile. The shift is the Hodges-Lehmann estimate; p is from the exact " +
		"Mann-Whitney test, adjusted by Holm's method over all claims. \"no change\" is a claim " +
		"of its own: the 90 % interval lies within the margin."));
}

// A history.

function historyChange(quantile) {
	const change = quantile.change;
	if (quantile.too_few) {
		paragraph(`${quantile.name}: too few runs to find a change.`);
	} else if (change == null) {
		paragraph(`${quantile.name}: ` + (quantile.parts !== 1 ? "changes all the time." :
			"no change found" + (quantile.detectable == null ? "." :
				`; a step of ${general(100 * quantile.detectable, 2)} % halfway would be.`)), quantile.parts === 1 ? "good" : "bad");
	} else {
		const slower = change.share > 0;
		paragraph(`${quantile.name}: ${slower ? "slower" : "faster"} by ` +
			`${fixed(100 * Math.abs(change.share), 2)} % since ${change.started} ` +
			`(${change.path})${change.within_margin ? ", within the margin" : ""}; ` +
			`${quantile.parts - 1} change${plural(quantile.parts - 1)} in all.`,
		!change.matters ? "" : slower ? "bad" : "good");
	}
}

function historyChart(history, quantile) {
	curves(`${quantile.name}, run after run`, {label: "run", scale: "linear"}, log("us"), [
		{name: "runs", points: true, x: quantile.value_ns.map((_, n) =>
			history.first_drawn + n + 1), y: times(quantile.value_ns, 1e-3),
		low: times(quantile.low_ns, 1e-3), high: times(quantile.high_ns, 1e-3)},
		{name: "median between changes", x: [].concat(...quantile.levels.map(
			([first, last]) => [first, last])), y: times([].concat(...quantile.levels.map(
			([, , value]) => [value, value])), 1e-3)},
	]);
}

function historyPage(root) {
	for (const history of root.page.histories) {
		heading(`${history.size}: ${history.key}`);
		paragraph(`${history.runs} run${plural(history.runs)} from ${history.started} to ` +
			`${history.ended}.${history.first_drawn > 0 ? " The charts show the newest." : ""}`);
		history.quantiles.forEach(historyChange);
		history.quantiles.forEach((quantile) => historyChart(history, quantile));
	}
	root.page.left_out.forEach((of) => paragraph(`Left out ${of.path}: ${of.why}`));
	fold("How to read this", () => paragraph("Each run gives one value of each quantile; its " +
		"interval is that of the run alone. A change is where the ranks of the runs before and " +
		"after differ by more than chance would, at 5 % for all quantiles of a history together. " +
		"A single odd run is no change. Three runs rarely show a change: a step of five deviations " +
		"after ten runs is found after three more in 17 % of histories, after five in all."));
}

// A mesh.

// A mesh of bw keeps the time of a MiB, and its page shows rates.
const isBandwidth = (plan) => plan.command === "bw";
const meshGbits = (ns) => ns ? (8388608 / ns).toPrecision(3) : "n/a";
const shareTitle = (plan) => isBandwidth(plan) ? "of the baseline" : "times the baseline";
const shareText = (plan, ratio) => isBandwidth(plan) ? fixed(100 / ratio, 0) + " %" : fixed(ratio, 2);
const medianText = (plan) => isBandwidth(plan) ? meshGbits : us;

function meshOutliers(own, summed, processes, plan) {
	if (own.known === 0) {
		paragraph("No direction has enough samples for a median.");
		return;
	}
	if (processes.length === 2) {
		paragraph("Two processes: neither of two directions can stand out from the other.");
		return;
	}
	const beyond = isBandwidth(plan) ? "below 80 % of the baseline" :
		"more than a quarter above the baseline";
	if (summed.outliers === 0) {
		paragraph(`Nothing stands out: no direction is ${beyond}` +
			(summed.undecided > 0 ? `, but ${summed.undecided} are undecided.` : "."),
		summed.undecided > 0 ? "" : "good");
		return;
	}
	paragraph(`${summed.outliers} of ${summed.measured} directions ` +
		`${summed.outliers === 1 ? "stands" : "stand"} out: ${beyond}.`, "bad");
	table(["what stands out", "directions", shareTitle(plan)], own.subjects.map((subject, n) => {
		const cause = summed.causes[n];
		return [subject, cause.kind === "pair" ? "1" : `${cause.cells} of ${cause.of}`,
			shareText(plan, cause.ratio)];
	}));
	if (summed.causes.length > own.subjects.length)
		paragraph(`${summed.causes.length - own.subjects.length + summed.unexplained} more are ` +
			"framed below.");
}

function meshHead(root, plan) {
	const summed = root.summary, atOnce = root.at_once;
	meshOutliers(root.page, summed, root.processes, plan);
	if (text(root.incomplete) !== "")
		paragraph("Incomplete: " + root.incomplete, "bad");
	if (summed.measured < summed.wanted)
		paragraph(`Not measured: ${summed.wanted - summed.measured} of ${summed.wanted} ` +
			"directions.", "bad");
	if (plan.policy === "agent")
		paragraph("Measured by agents: the worker of each reads the memory of the others, beside " +
			"its own probes.");
	if (root.shared_host === true)
		paragraph("Shared host: processes share a machine, so the figures describe this machine " +
			`more than a fabric. At most ${atOnce} pair${atOnce === 1 ? " was" : "s were"} ` +
			"measured at a time.");
}

function meshTiles(root, plan) {
	const own = root.page, summed = root.summary, shown = medianText(plan);
	const unit = isBandwidth(plan) ? "Gbit/s" : "p50, us";
	const who = (cell) => `${own.names[cell.from]} to ${own.names[cell.to]}`;
	const tile = (name, cell) => cell ? [name, shown(cell.p50_ns), who(cell)] : [name, "n/a", ""];
	tiles([
		["baseline " + unit, own.known > 0 ? shown(summed.median_ns) : "n/a",
			own.known > 0 ? "median of the directions that no group explains" : ""],
		tile("fastest " + unit, own.fastest), tile("slowest " + unit, own.slowest[0]),
		["directions", `${summed.measured} of ${summed.wanted}`, `in ${own.took}`],
	]);
	return who;
}

function meshMatrices(root, plan) {
	const bandwidth = isBandwidth(plan), own = root.page, none = {texts: [], places: []};
	const texts = [...root.summary.causes.map((cause) => text(cause.says)), "stands out"];
	const matrix = (caption, values, marks) => values && chart(caption,
		{kind: "matrix", unit: bandwidth ? "Gbit/s" : "us", names: own.names, values, marks});
	matrix((bandwidth ? "Rate of each direction" : "p50 of each direction") + (root.summary.outliers > 0 ?
		"; what stands out is framed" : ""), own.p50, {texts, places: own.marks});
	matrix(bandwidth ? "Rate that 99 % of its windows reached" : "p99 of each direction", own.known > 0 && own.p99, none);
}

function meshProcesses(root, plan) {
	const shown = medianText(plan), bandwidth = isBandwidth(plan);
	const medians = (of) => of ?
		`${shown(of[0])}, ${bandwidth ? "least" : "most"} ${shown(of[1])}` : "n/a";
	table(["process", "host", "rack", "device", "processors",
		"from it: median " + (bandwidth ? "Gbit/s" : "p50, us"), "to it"],
		root.processes.map((process, n) => [n + (process.lost ? " (lost)" : ""),
			text(process.host), text(process.rack), text(process.device),
			Number(process.processors) || 0, medians(root.page.medians_from[n]),
			medians(root.page.medians_to[n])]));
}

// Rates of several flows at once, in Gbit/s. The worst rows come first.
function meshFlows(root) {
	const own = root.page, rate = (value) => value == null ? "n/a" : value.toPrecision(3);
	const share = (part, whole) => part && whole ? fixed(100 * part / whole, 0) + " %" : "n/a";
	const worstFirst = (rows, part) => [...rows].sort((one, other) => part(one) - part(other));
	if (root.congestion) {
		heading("Congestion: the pairs of a round at once");
		table(["direction", "alone, Gbit/s", "at once, Gbit/s", "share"],
			worstFirst(root.congestion, (row) => row.together_gbits / row.alone_gbits).map((row) =>
				[`${own.names[row.from]} to ${own.names[row.to]}`, rate(row.alone_gbits),
					rate(row.together_gbits), share(row.together_gbits, row.alone_gbits)]));
	}
	if (root.incast) {
		heading("Incast: all to one at once");
		table(["to", "flows", "sum, Gbit/s", "of the best rate alone", "slowest flow, Gbit/s"],
			worstFirst(root.incast, (row) => row.gbits / row.best_pair_gbits).map((row) =>
				[own.names[row.to], String(row.flows), rate(row.gbits),
					share(row.gbits, row.best_pair_gbits), rate(row.slowest_gbits)]));
	}
}

function meshPage(root) {
	const own = root.page, plan = member(root, "plan");
	const failed = root.summary.wanted - root.summary.measured;
	meshHead(root, plan);
	const who = meshTiles(root, plan);
	meshMatrices(root, plan);
	if (own.known > 0) {
		heading("The slowest directions");
		const shown = medianText(plan), bandwidth = isBandwidth(plan);
		table(bandwidth ? ["direction", "Gbit/s", "95 % interval", "99 % of windows", "worst window",
			shareTitle(plan)] :
			["direction", "p50, us", "95 % interval", "p99, us", "max, us", shareTitle(plan)],
		own.slowest.map((cell) => [who(cell), shown(cell.p50_ns), bandwidth ?
			`${meshGbits(cell.p50_high_ns)} to ${meshGbits(cell.p50_low_ns)}` :
			within(cell.p50_low_ns, cell.p50_high_ns), shown(cell.p99_ns), shown(cell.max_ns),
		shareText(plan, cell.ratio)]));
	}
	meshFlows(root);
	if (failed > 0) {
		heading("What was not measured");
		table(["from", "to", "why it was not measured"], own.failed.map((cell) =>
			[own.names[cell.from], own.names[cell.to], cell.why || "nobody tried"]), "noted");
		if (own.failed.length < failed)
			paragraph(`And ${failed - own.failed.length} more.`);
	}
	heading("Setup");
	paragraph(`Started ${text(root.started)} by ${text(root.program)}.`);
	fold("Processes", () => meshProcesses(root, plan));
	fold("Plan", () => facts("plan", plan));
	fold("How to read this", () => paragraph("Each cell is a direction: the process of the row " +
		"measured, that of the column answered. A direction stands out if its median is more " +
		"than 25 % above the baseline and its 95 % interval lies above it" +
		(isBandwidth(plan) ? "; of bandwidth the time of a message, so a rate below 80 %" : "") +
		". The baseline is the median " +
		"of the directions that no named group explains. " +
		"The largest group that explains it is named: a process, its row or column, racks, " +
		"devices of one name, else the pair. A group explains what stands out if three quarters of its " +
		"cells do."));
}

const kinds = {run: runPage, policies: policiesPage, versus: versusPage, history: historyPage,
	mesh: meshPage};
