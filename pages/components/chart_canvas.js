// Lines on a canvas above what Plotly draws (axes, legend, words, zoom): a hundredth of the time of as many SVG paths, and where
// only lines have moved, Plotly need not draw at all. Used by chart.js where `data.canvas` is set; a line tells its name under
// the pointer, in the words of its trace's `meta.hover` if it has some.

(() => {
  const DASHES = { solid: [], dash: [8, 5], dot: [2, 3], dashdot: [8, 4, 2, 4] };
  const NEAR_PX = 24;

  const CROWD = 24; // lines; more are drawn thin enough to tell apart, in a tenth of the time

  // Base64 of little-endian floats, or a list, as numbers; null is a gap.
  function numbers(values) {
    if (Array.isArray(values)) return Float64Array.from(values, (value) => value ?? NaN);
    const text = atob(values.bdata);
    const bytes = new Uint8Array(text.length);
    for (let place = 0; place < text.length; place += 1) bytes[place] = text.charCodeAt(place);
    return values.dtype === "f8" ? new Float64Array(bytes.buffer) : new Float32Array(bytes.buffer);
  }

  function plain(escaped) {
    const probe = document.createElement("textarea"); // its content is text, never elements
    probe.innerHTML = escaped ?? "";
    return probe.value;
  }

  const isLine = (trace) => trace.mode?.includes("lines") && trace.yaxis !== "y2";
  const isDots = (trace) => trace.mode === "markers" && [trace.marker.symbol].flat().every((name) => /^circle(-open)?$/.test(name));
  const onCanvas = (trace) => trace.yaxis !== "y2" && (isLine(trace) || isDots(trace));
  const group = (trace) => trace.legendgroup ?? trace.uid ?? trace.name;

  // The traces that Plotly keeps: what is no line, a stub for each name in the legend, and a ghost that spans the lines so that
  // the axes fit them. The lines stay at the host.
  function take(host, traces) {
    const { xaxis, yaxis, showlegend } = host.corlData.layout;
    const drawn = traces.filter(onCanvas);
    host.corlLines = drawn.map((trace) => ({
      x: numbers(trace.x),
      y: numbers(trace.y),
      color: trace.fill ? trace.fillcolor : (trace.line?.color ?? trace.marker.color),
      width: drawn.length > CROWD ? 1 : (trace.line?.width ?? 2),
      fill: Boolean(trace.fill),
      dots: isDots(trace) && trace.marker,
      dash: DASHES[trace.line?.dash] ?? [],
      alpha: trace.opacity ?? 1,
      name: trace.hoverinfo === "skip" ? "" : plain(trace.name),
      hover: trace.meta?.hover,
      text: trace.text,
      group: group(trace),
    }));
    const log = yaxis?.type === "log";
    const x = xaxis?.range ? [1, 1] : span(host.corlLines.map((line) => line.x));
    const y = yaxis?.range ? [1, 1] : span(host.corlLines.map((line) => line.y), log ? 0 : -Infinity);
    const ghost = { type: "scatter", mode: "lines", x, y, line: { width: 0 }, hoverinfo: "skip", showlegend: false };
    const named = showlegend ? drawn.filter((trace) => trace.name && trace.showlegend !== false) : [];
    const stubs = named.map(({ text, hovertemplate, meta, ...trace }) => ({ ...trace, meta: group(trace), x: [null], y: [null] }));
    return [{ ...ghost, uid: "ghost" }, ...traces.filter((trace) => !onCanvas(trace)), ...stubs];
  }

  function span(arrays, above = -Infinity) {
    let low = Infinity;
    let high = -Infinity;
    for (const array of arrays) {
      for (const value of array) {
        if (value < low && value > above) low = value;
        if (value > high && value < Infinity) high = value;
      }
    }
    return low <= high ? [low, high] : [];
  }

  // From a value to the pixel of an axis that Plotly has laid out.
  function scale(axis, upwards) {
    const [from, to] = axis.range;
    const factor = axis._length / (to - from);
    const at = axis.type === "log" ? (value) => (Math.log10(value) - from) * factor : (value) => (value - from) * factor;
    return upwards ? (value) => axis._length - at(value) : at;
  }

  function paint(host) {
    const { xaxis, yaxis } = host._fullLayout;
    const canvas = overlay(host, "canvas");
    const ratio = window.devicePixelRatio || 1;
    Object.assign(canvas, { width: xaxis._length * ratio, height: yaxis._length * ratio });
    const box = { left: xaxis._offset, top: yaxis._offset, width: xaxis._length, height: yaxis._length };
    for (const [side, size] of Object.entries(box)) canvas.style[side] = `${size}px`;
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const [toX, toY] = [scale(xaxis, false), scale(yaxis, true)];
    const hidden = new Set(host._fullData.filter((trace) => trace.visible === "legendonly").map((trace) => trace.meta));
    for (const line of host.corlLines) {
      line.hidden = hidden.has(line.group);
      if (line.hidden) continue;
      pen.globalAlpha = line.alpha;
      pen.strokeStyle = pen.fillStyle = line.color;
      pen.lineWidth = line.width;
      pen.setLineDash(line.dash);
      if (line.dots) dots(pen, line, toX, toY);
      else trail(pen, line, toX, toY);
    }
  }

  function trail(pen, line, toX, toY) {
    pen.beginPath();
    let down = false;
    for (let place = 0; place < line.x.length; place += 1) {
      const [x, y] = [toX(line.x[place]), toY(line.y[place])];
      const there = Number.isFinite(x) && Number.isFinite(y);
      if (there && down) pen.lineTo(x, y);
      else if (there) pen.moveTo(x, y);
      down = there;
    }
    if (line.fill) pen.fill();
    else pen.stroke();
  }

  function dots(pen, { x, y, dots: { size, symbol, line } }, toX, toY) {
    pen.lineWidth = line?.width ?? 1;
    for (let place = 0; place < x.length; place += 1) {
      const at = (list) => (Array.isArray(list) ? list[place] : list);
      pen.beginPath();
      pen.arc(toX(x[place]), toY(y[place]), at(size) / 2, 0, 2 * Math.PI);
      if (at(symbol) === "circle") pen.fill();
      else pen.stroke();
    }
  }

  function overlay(host, kind) {
    let made = host.querySelector(`:scope > ${kind}.corl-over`);
    if (!made) {
      made = document.createElement(kind);
      made.className = "corl-over";
      Object.assign(made.style, { position: "absolute", pointerEvents: "none" });
      host.style.position = "relative";
      host.appendChild(made);
      if (kind === "canvas") {
        host.addEventListener("mousemove", (event) => point(host, event));
        host.addEventListener("mouseleave", () => (overlay(host, "div").hidden = true));
      }
    }
    return made;
  }

  // The line nearest to the pointer, told in a small box.
  function point(host, event) {
    const words = overlay(host, "div");
    words.hidden = true;
    if (!host.corlLines) return;
    const { xaxis, yaxis } = host._fullLayout;
    const frame = host.getBoundingClientRect();
    const [left, top] = [event.clientX - frame.left, event.clientY - frame.top];
    const [toX, toY] = [scale(xaxis, false), scale(yaxis, true)];
    let best = { away: NEAR_PX };
    for (const line of host.corlLines) {
      if (!line.name || line.hidden) continue;
      for (let place = 0; place < line.x.length; place += 1) {
        const across = Math.abs(toX(line.x[place]) + xaxis._offset - left);
        if (across >= best.away) continue;
        const away = Math.hypot(across, toY(line.y[place]) + yaxis._offset - top);
        if (away < best.away) best = { away, line, place };
      }
    }
    if (!best.line) return;
    const { x, y, name, hover, text } = best.line;
    const short = (value) => Number(value.toPrecision(4)).toLocaleString("en");
    const told = { name, x: short(x[best.place]), y: short(y[best.place]), text: text?.[best.place] };
    words.textContent = (hover ?? "{name}: {y} at {x}").replace(/{(\w+)}/g, (_, field) => told[field]);
    const css = getComputedStyle(host);
    const look = { background: css.getPropertyValue("--st-background-color") || "#fff", color: "inherit" };
    Object.assign(words.style, look, { padding: "2px 8px", border: `1px solid ${best.line.color}`, fontSize: "13px" });
    words.hidden = false;
    words.style.left = `${Math.max(0, Math.min(left + 12, frame.width - words.offsetWidth - 4))}px`;
    words.style.top = `${Math.max(0, top - 30)}px`;
  }

  function clear(host) {
    host.corlLines = null;
    for (const made of host.querySelectorAll(":scope > .corl-over")) made.remove();
  }

  window.corlCanvas = { take, paint, clear };
})();
