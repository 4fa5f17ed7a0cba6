// SPDX-License-Identifier: BSD-3-Clause
// Makes the elements of a page, and texts of numbers as printf() does, and starts the page. All
// texts of a result are untrusted, so each one becomes the textContent of an element, never HTML.

let parent = document.body; // of new elements: the page or a fold

function put(tag, words, className) {
	const element = document.createElement(tag);
	if (words != null)
		element.textContent = words;
	if (className)
		element.className = className;
	parent.append(element);
	return element;
}

function inside(element, fill) {
	const outer = parent;
	parent = element;
	fill();
	parent = outer;
}

function heading(words) {
	put("h2", words);
}

// `tone` is "good", "bad" or missing.
function paragraph(words, tone) {
	put("p", words, tone);
}

// Main figures in large letters: rows of name, value and a line below.
function tiles(rows) {
	inside(put("div", null, "tiles"), () => rows.forEach(([name, value, under]) =>
		inside(put("div"), () => {
			put("span", name);
			put("strong", value);
			put("small", under);
		})));
}

// A table. The first cell is the row's name. A table with two columns has keys and values, which
// are not aligned as numbers. The last column of a table of class "noted" is text.
function table(columns, rows, className) {
	const wide = put("div", null, "wide");
	inside(wide, () => inside(put("table", null,
		className || (columns.length === 2 ? "facts" : "numbers")), () => {
		inside(put("thead"), () => inside(put("tr"), () => columns.forEach((name) => {
			put("th", name).scope = "col";
		})));
		inside(put("tbody"), () => rows.forEach((cells) => inside(put("tr"), () =>
			cells.forEach((cell, n) => {
				const element = put(n === 0 ? "th" : "td", cell);
				if (n === 0)
					element.scope = "row";
			}))));
	}));
}

// A part that is folded until the reader opens it.
function fold(summary, fill) {
	inside(put("details"), () => {
		put("summary", summary);
		fill();
	});
}

function chart(caption, description) {
	const figure = put("figure");
	figure.dataset.chart = charts.length;
	charts.push(description);
	inside(figure, () => put("figcaption", caption));
}

function curves(caption, x, y, series, level) {
	chart(caption, {kind: "curves", x, y, series, level});
}

// The text of a member of an untrusted object; "" if it is none.
function text(value) {
	return typeof value === "string" ? value : "";
}

// A member, or an empty object, whatever the file has.
function member(object, key) {
	const value = object[key];
	return value != null && typeof value === "object" ? value : {};
}

// As "%.*f": a tie goes to the even digit, where toFixed() goes away from zero.
function fixed(value, digits) {
	if (value == null)
		return "n/a";
	const words = value.toFixed(digits);
	const isTie = Math.abs(value * Math.pow(2, digits + 1) % 2) === 1;
	if (!isTie || Number(words.slice(-1)) % 2 === 0)
		return words;
	return (value - Math.sign(value) * Math.pow(10, -digits) / 2).toFixed(digits);
}

// As "%+.*f".
function signed(value, digits) {
	const sign = value < 0 ? "" : Object.is(value, -0) ? "-" : "+";
	return sign + fixed(value, digits);
}

// As "%.*g".
function general(value, digits) {
	if (value === 0)
		return "0";
	const [mantissa, power] = value.toExponential(digits - 1).split("e");
	if (power < -4 || power >= digits)
		return Number(mantissa) + "e" + power[0] + power.slice(1).padStart(2, "0");
	return String(Number(value.toPrecision(digits)));
}

// Microseconds with at least three significant digits: 0.842, 8.42, 84.2, 8421.
function us(value_ns) {
	if (value_ns == null)
		return "n/a";
	const value = value_ns / 1e3;
	return fixed(value, value < 1 ? 3 : value < 100 ? 2 : value < 1000 ? 1 : 0);
}

function within(low_ns, high_ns) {
	return us(low_ns) + " to " + us(high_ns);
}

// Values times a factor; null stays null.
function times(values, factor) {
	return values.map((value) => value == null ? null : value * factor);
}

function plural(count) {
	return count === 1 ? "" : "s";
}

// A table of the keys and values of an object.
function facts(name, object) {
	const rows = [];
	for (const [key, value] of Object.entries(object)) {
		if (typeof value === "string")
			rows.push([key, value]);
		else if (typeof value === "number")
			rows.push([key, Number.isInteger(value) ? String(value) :
				general(value, 6)]);
		else if (typeof value === "boolean")
			rows.push([key, value ? "yes" : "no"]);
		else if (value === null)
			rows.push([key, "not known"]);
	}
	table([name, ""], rows);
}

// Make the elements from the JSON, then draw the charts.
function start() {
	const begin = performance.now(), data = document.getElementById("result");
	let width = document.body.clientWidth;

	try {
		kinds[data.dataset.kind](JSON.parse(data.textContent));
	} catch (error) {
		paragraph("The rest of this page cannot be shown: " + error.message, "bad");
	}
	drawAll();
	document.documentElement.dataset.drawnMs = Math.round(performance.now() - begin);
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
	addEventListener("resize", () => {
		if (document.body.clientWidth !== width) {
			width = document.body.clientWidth;
			drawAll();
		}
	});
}

start();
