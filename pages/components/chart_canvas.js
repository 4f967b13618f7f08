// Many lines in one chart: Plotly draws axes, marks and zoom, and the lines go on a canvas above them, which takes a
// hundredth of the time of as many SVG paths. Used by chart.js where `data.canvas` is set; a line tells its name under the pointer.

(() => {
  const DASHES = { solid: [], dash: [8, 5], dot: [2, 3], dashdot: [8, 4, 2, 4] };
  const NEAR_PX = 24;

  // Base64 of little-endian floats, or a list, as numbers; null is a gap.
  function numbers(values) {
    if (Array.isArray(values)) return Float64Array.from(values, (value) => value ?? NaN);
    const bytes = Uint8Array.from(atob(values.bdata), (letter) => letter.charCodeAt(0));
    return values.dtype === "f8" ? new Float64Array(bytes.buffer) : new Float32Array(bytes.buffer);
  }

  function plain(escaped) {
    const probe = document.createElement("textarea"); // its content is text, never elements
    probe.innerHTML = escaped ?? "";
    return probe.value;
  }

  const isLine = (trace) => trace.mode.includes("lines") && trace.yaxis !== "y2";

  // The traces that Plotly keeps, with a ghost that spans the lines so that the axes fit them; the lines stay at the host.
  function take(host, traces) {
    host.corlLines = traces.filter(isLine).map((trace) => ({
      x: numbers(trace.x),
      y: numbers(trace.y),
      color: trace.fill ? trace.fillcolor : trace.line.color,
      fill: Boolean(trace.fill),
      dash: DASHES[trace.line?.dash] ?? [],
      alpha: trace.opacity ?? 1,
      name: trace.hoverinfo === "skip" ? "" : plain(trace.name),
    }));
    const log = host.corlData.layout.yaxis?.type === "log";
    const x = span(host.corlLines.map((line) => line.x));
    const y = span(host.corlLines.map((line) => line.y), log ? 0 : -Infinity);
    const ghost = { type: "scatter", mode: "lines", x, y, line: { width: 0 }, hoverinfo: "skip", showlegend: false };
    return [{ ...ghost, uid: "ghost" }, ...traces.filter((trace) => !isLine(trace))];
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
    pen.lineWidth = 1; // thin enough to tell many apart, and a tenth of the time of a wider one
    const [toX, toY] = [scale(xaxis, false), scale(yaxis, true)];
    for (const line of host.corlLines) {
      pen.globalAlpha = line.alpha;
      pen.strokeStyle = pen.fillStyle = line.color;
      pen.setLineDash(line.dash);
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
      if (!line.name) continue;
      for (let place = 0; place < line.x.length; place += 1) {
        const across = Math.abs(toX(line.x[place]) + xaxis._offset - left);
        if (across >= best.away) continue;
        const away = Math.hypot(across, toY(line.y[place]) + yaxis._offset - top);
        if (away < best.away) best = { away, line, place };
      }
    }
    if (!best.line) return;
    const { x, y, name } = best.line;
    const short = (value) => Number(value.toPrecision(4)).toLocaleString("en");
    words.textContent = `${name}: ${short(y[best.place])} at ${short(x[best.place])}`;
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
