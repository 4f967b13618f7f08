// Draws one chart with Plotly.react, so that zoom and hidden lines outlive a refresh.
// They last as long as `revision` is the same and a trace keeps its uid.

const INK = "#000000";
const ON_DARK = { "#0072B2": "#2385CF", "#D55E00": "#EC7A2A", "#009E73": "#1FB88D" };

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

function traces(data, look) {
  return data.map((trace) => ({
    ...trace,
    ...(trace.line && { line: { ...trace.line, color: onTheme(trace.line.color, look) } }),
    ...(trace.marker && { marker: { ...trace.marker, color: onTheme(trace.marker.color, look) } }),
  }));
}

function layout(data, look, height) {
  const given = data.layout;
  const axis = {
    gridcolor: look.grid,
    linecolor: look.grid,
    zeroline: false,
    automargin: true,
    title: { standoff: 8 },
  };
  const merged = (own) => ({ ...axis, ...own, title: { ...axis.title, ...own?.title } });
  return {
    ...given,
    height,
    width: look.width,
    margin: { l: 8, r: 8, t: 8, b: look.rows ? TITLE_PX + ROW_PX * look.rows : 8 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: look.text, family: look.font, size: 12 },
    xaxis: merged(given.xaxis),
    yaxis: merged(given.yaxis),
    legend: { orientation: "h", yref: "container", yanchor: "bottom", y: 0, x: 0, font: { size: 12 } },
    annotations: (given.annotations ?? []).map((one) => ({ ...one, arrowcolor: look.text })),
    shapes: (given.shapes ?? []).map((one) => ({
      ...one,
      line: { ...one.line, color: look.text },
    })),
    uirevision: data.revision,
  };
}

// The legend stands at the bottom, below the axis title; the chart grows by the rows it needs.
const ROW_PX = 20;
const TITLE_PX = 56;
const MARK_PX = 46;
const LETTER_PX = 6.6;

function legendRows(data, width) {
  let rows = 0;
  let used = Infinity;
  for (const trace of data.data) {
    if (!trace.name || trace.showlegend === false) continue;
    const own = MARK_PX + LETTER_PX * trace.name.length;
    if (used + own > width - 60) {
      rows += 1;
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
  modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d", "zoomIn2d", "zoomOut2d"],
};

async function draw(host, data) {
  const Plotly = await script(data.src);
  if (host.corlData !== data || !host.isConnected) return;
  const look = theme(host);
  const config = { ...CONFIG, displayModeBar: data.bar ? "hover" : false };
  config.toImageButtonOptions = { format: "svg", filename: data.file };
  await Plotly.react(host, traces(data.data, look), layout(data, look, fit(host)), config);
  host.corlWatch ??= watch(Plotly, host);
}

function watch(Plotly, host) {
  let width = host.clientWidth;
  const observer = new ResizeObserver(() => {
    if (!host.clientWidth || host.clientWidth === width) return;
    width = host.clientWidth;
    const { margin } = layout(host.corlData, theme(host), 0);
    Plotly.relayout(host, { height: fit(host), width, margin });
  });
  observer.observe(host);
  return observer;
}

export default function (component) {
  const { data, parentElement } = component;
  const host = parentElement.querySelector(".corl-chart");
  host.corlData = data;
  fit(host);
  host.setAttribute("role", "img");
  host.setAttribute("aria-label", data.alt);
  draw(host, data).catch((error) => {
    host.textContent = `The chart can't be drawn: ${error.message}`;
  });
  return () => {
    host.corlWatch?.disconnect();
    window.Plotly?.purge(host);
  };
}
