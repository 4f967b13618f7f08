// Draws one chart with Plotly.react, so that zoom and hidden lines outlive a refresh.
// Hidden lines last as long as `revision` is the same and a trace keeps its uid; the zoom is kept here and told to the server,
// which sends the points in view and writes it into the link.
// Points that don't move any more come once, in a base; what follows them comes with each refresh.

(() => {
  const INK = "#000000";
  const ON_DARK = { "#0072B2": "#2385CF", "#D55E00": "#EC7A2A", "#009E73": "#1FB88D" };
  const bases = new Map(); // a chart's file name → its settled points

  function script(src) {
    window.corlPlotly ??= new Promise((resolve, reject) => {
      const tag = document.createElement("script");
      tag.src = src;
      tag.onload = () => resolve(window.Plotly);
      tag.onerror = () => reject(new Error(`no script at ${src}`));
      document.head.appendChild(tag);
    });
    return window.corlPlotly;
  }

  function isDark(color) {
    const probe = document.createElement("canvas").getContext("2d");
    probe.fillStyle = color;
    const hex = parseInt(probe.fillStyle.slice(1, 7), 16);
    return 0.3 * (hex >> 16) + 0.6 * ((hex >> 8) & 255) + 0.1 * (hex & 255) < 128;
  }

  function theme(host) {
    const css = getComputedStyle(host);
    const read = (name, otherwise) => css.getPropertyValue(name).trim() || otherwise;
    const ground = read("--st-background-color", "#ffffff");
    return {
      dark: isDark(ground),
      ground,
      text: read("--st-text-color", "#222222"),
      grid: read("--st-border-color", "#e5e5e5"),
      font: read("--st-font", "sans-serif"),
      width: host.clientWidth,
      rows: legendRows(host.corlData, host.clientWidth),
    };
  }

  function onTheme(value, look) {
    if (Array.isArray(value)) return value.map((inner) => onTheme(inner, look));
    if (value === INK) return look.text;
    return (look.dark && ON_DARK[value]) || value;
  }

  // A trace with the settled points of the base before its own.
  function whole(trace, base) {
    const before = base?.[trace.uid];
    return before ? { ...trace, x: before.x.concat(trace.x), y: before.y.concat(trace.y) } : trace;
  }

  function traces(data, look) {
    const base = data.base && bases.get(data.file)?.settled; // without a base the data are whole
    return data.data.map((trace) => ({
      ...whole(trace, base),
      ...(trace.name && trace.showlegend !== false && data.layout.showlegend && { name: folded(trace.name, look.width) }),
      ...(trace.line && { line: { ...trace.line, color: onTheme(trace.line.color, look) } }),
      ...(trace.marker && { marker: { ...trace.marker, color: onTheme(trace.marker.color, look) } }),
    }));
  }

  function layout(host, look, height) {
    const data = host.corlData;
    const given = data.layout;
    const axis = {
      gridcolor: look.grid,
      linecolor: look.grid,
      zeroline: false,
      zerolinecolor: look.text,
      automargin: true,
      title: { standoff: 8 },
    };
    const merged = (own, range) => ({
      ...axis,
      ...own,
      ...(own?.range && { range: [...own.range] }), // Plotly writes a zoom into the list it is given
      ...(range && { range: [...range], autorange: false }),
      title: { ...axis.title, ...own?.title },
    });
    return {
      ...given,
      height,
      width: look.width,
      margin: { l: 8, r: 16, t: 8, b: look.rows ? TITLE_PX + ROW_PX * look.rows : 8 },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: look.text, family: look.font, size: 12 },
      xaxis: merged(given.xaxis, host.corlZoom?.x),
      yaxis: merged(given.yaxis, host.corlZoom?.y),
      legend: { orientation: "h", yref: "container", yanchor: "bottom", y: 0, x: 0, font: { size: 12 } },
      annotations: (given.annotations ?? []).map((one) => ({ ...one, arrowcolor: onTheme(one.arrowcolor, look) ?? look.text })),
      shapes: (given.shapes ?? []).map((one) => ({
        ...one,
        line: { ...one.line, color: onTheme(one.line?.color, look) ?? look.text },
      })),
      modebar: { bgcolor: "rgba(0,0,0,0)", color: look.text, activecolor: look.text },
      uirevision: data.revision,
    };
  }

  // The legend stands at the bottom, below the axis title; the chart grows by the rows it needs, up to a limit.
  const ROW_PX = 20;
  const TITLE_PX = 56;
  const MARK_PX = 46;
  const LETTER_PX = 6.6;

  // A name too long for a row of its own, in two lines; it is escaped already, so a space is never inside an entity.
  function folded(name, width) {
    if (!name || name.includes("<br>") || MARK_PX + LETTER_PX * name.length <= width - 60) return name;
    const middle = name.length / 2;
    const spaces = [...name.matchAll(/ /g)].map((found) => found.index);
    if (!spaces.length) return name;
    const at = spaces.reduce((best, place) => (Math.abs(place - middle) < Math.abs(best - middle) ? place : best));
    return `${name.slice(0, at)}<br>${name.slice(at + 1)}`;
  }

  function legendRows(data, width) {
    if (!data.layout.showlegend) return 0;
    let rows = 0;
    let used = Infinity;
    for (const trace of data.data) {
      if (!trace.name || trace.showlegend === false) continue;
      const own = MARK_PX + LETTER_PX * trace.name.length;
      if (used + own > width - 60) {
        rows += folded(trace.name, width) === trace.name ? 1 : 2;
        used = 0;
      }
      used += own;
    }
    return rows;
  }

  function fit(host) {
    const height = host.corlData.height + ROW_PX * legendRows(host.corlData, host.clientWidth);
    host.style.height = `${height}px`;
    return height;
  }

  const CONFIG = {
    displaylogo: false,
    responsive: false,
    doubleClick: false,
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d", "resetScale2d", "zoomIn2d", "zoomOut2d"],
  };

  async function draw(host) {
    const data = host.corlData;
    const Plotly = await script(data.src);
    if (host.corlData !== data || !host.isConnected || (data.base && bases.get(data.file)?.id !== data.base)) return;
    const look = theme(host);
    const drawn = JSON.stringify([data.stamp, look, host.corlZoom]);
    if (host.corlDrawn === drawn) return;
    host.corlDrawn = drawn;
    // One function for good: Plotly makes the chart anew, and shows hidden lines again, when anything in its config is another.
    host.corlHome ??= { name: "Whole range", icon: Plotly.Icons.home, click: () => zoomTo(Plotly, host, null) };
    const config = { ...CONFIG, displayModeBar: data.bar ? "hover" : false, modeBarButtonsToAdd: [host.corlHome] };
    config.toImageButtonOptions = { format: "svg", filename: data.file };
    if (data.canvas) {
      host.corlPicture ??= { name: "Download as SVG", icon: Plotly.Icons.camera, click: () => picture(Plotly, host) };
      config.modeBarButtonsToRemove = [...CONFIG.modeBarButtonsToRemove, "toImage"]; // it would lack the lines
      config.modeBarButtonsToAdd = [host.corlPicture, host.corlHome];
    }
    const canvas = window.corlCanvas;
    const all = traces(data, look);
    if (!data.canvas && host.corlLines) canvas.clear(host);
    const held = data.canvas ? canvas.take(host, all) : all;
    const frame = layout(host, look, fit(host));
    const shown = data.canvas && JSON.stringify([held, frame]);
    if (!shown || host.corlShown !== shown) await Plotly.react(host, held, frame, config);
    host.corlShown = shown;
    if (data.canvas) canvas.paint(host);
    host.corlWatch ??= watch(Plotly, host);
    host.dataset.drawn = data.stamp;
  }

  // The chart as a file with its lines in it, which Plotly does not hold.
  function picture(Plotly, host) {
    const data = traces(host.corlData, theme(host));
    const { width, height } = host.layout;
    const figure = { data, layout: { ...host.layout, paper_bgcolor: theme(host).ground } };
    return Plotly.downloadImage(figure, { format: "svg", filename: host.corlData.file, width, height });
  }

  function watch(Plotly, host) {
    let width = host.clientWidth;
    const observer = new ResizeObserver(() => {
      if (!host.clientWidth || host.clientWidth === width) return;
      width = host.clientWidth;
      const { margin } = layout(host, theme(host), 0);
      Plotly.relayout(host, { height: fit(host), width, margin });
    });
    observer.observe(host);
    host.on("plotly_restyle", () => host.corlLines && window.corlCanvas.paint(host)); // a line hidden in the legend
    host.on("plotly_relayouting", () => host.corlLines && window.corlCanvas.paint(host));
    host.on("plotly_relayout", (change) => {
      if (host.corlLines) window.corlCanvas.paint(host);
      if (Object.keys(change).some((name) => /^[xy]axis\.(range|autorange)/.test(name))) tell(host);
    });
    host.on("plotly_doubleclick", () => zoomTo(Plotly, host, null));
    host.addEventListener("keydown", (event) => onKey(Plotly, host, event));
    return observer;
  }

  // The zoom as it is now: x and y each as [from, to], or null where the axis shows what it showed at first.
  function tell(host) {
    const { xaxis, yaxis } = host.layout;
    const pinned = host.corlData.layout.yaxis?.range;
    const same = pinned && yaxis.range.every((end, place) => Math.abs(end - pinned[place]) < 1e-9);
    const x = xaxis.autorange ? null : [...xaxis.range];
    const y = yaxis.autorange || same ? null : [...yaxis.range];
    host.corlZoom = x || y ? { x, y } : null;
    clearTimeout(host.corlTimer);
    host.corlTimer = setTimeout(() => host.corlTell?.("zoom", { x, y }), 250);
  }

  function zoomTo(Plotly, host, x) {
    const given = host.corlData.layout.yaxis?.range;
    const y = given ? { "yaxis.range": [...given] } : { "yaxis.autorange": true };
    return Plotly.relayout(host, x ? { "xaxis.range": x } : { "xaxis.autorange": true, ...y });
  }

  // Arrow keys move along x, + and - zoom in and out of its middle, 0 shows everything.
  function onKey(Plotly, host, event) {
    const moves = { ArrowLeft: [-0.2, -0.2], ArrowRight: [0.2, 0.2], "+": [0.2, -0.2], "=": [0.2, -0.2], "-": [-0.3, 0.3] };
    if (event.key === "0") return zoomTo(Plotly, host, null);
    const move = moves[event.key];
    if (!move || event.ctrlKey || event.metaKey || event.altKey) return undefined;
    event.preventDefault();
    const [from, to] = host.layout.xaxis.range;
    return zoomTo(Plotly, host, [from + move[0] * (to - from), to + move[1] * (to - from)]);
  }

  function show({ data, parentElement, setStateValue }) {
    if (data.settled) {
      bases.set(data.file, data);
      for (const host of document.querySelectorAll(".corl-chart")) {
        if (host.corlData?.base === data.id) draw(host);
      }
      return undefined;
    }
    const host = parentElement.querySelector(".corl-chart");
    if (host.corlData?.revision !== data.revision) host.corlZoom = data.zoom;
    host.corlData = data;
    host.corlTell = setStateValue;
    fit(host);
    host.setAttribute("role", "img");
    host.setAttribute("aria-label", data.alt);
    if (data.bar) host.setAttribute("tabindex", "0");
    draw(host).catch((error) => {
      host.textContent = `The chart can't be drawn: ${error.message}`;
    });
    return () => {
      if (host.isConnected) return; // it is called for each new data too
      host.corlWatch?.disconnect();
      window.Plotly?.purge(host);
    };
  }

  window.corlChart = show;
})();
