// Draws one agent's answers to one question: a row an answer with its count as a bar, and under each the rollouts
// that gave it, closed until asked for. Everything people or models wrote goes in as text nodes, never as HTML.

function el(tag, name, ...inside) {
  const made = document.createElement(tag);
  if (name) made.className = name;
  made.append(...inside.filter((part) => part !== null && part !== undefined && part !== ""));
  return made;
}

function badge(words) {
  return el("span", `badge ${words.replace(/ .*/, "")}`, words);
}

function completion(rollout) {
  const text = el("pre", "text");
  if (rollout.before) text.append(el("span", "cut", rollout.before), "\n");
  if (rollout.span) {
    const [start, end] = rollout.span;
    const marked = el("mark", "", rollout.text.slice(start, end));
    marked.title = "The answer that was read";
    text.append(rollout.text.slice(0, start), marked, rollout.text.slice(end));
  } else {
    text.append(rollout.text);
  }
  text.tabIndex = 0;
  return text;
}

function rolloutBox(rollout) {
  return el("div", "rollout", el("div", "worth", ...rollout.facts.map((fact) => el("span", "", fact))), completion(rollout));
}

function row(answer, most) {
  const bar = el("span", "bar");
  bar.style.width = `${Math.max(2, (100 * answer.count) / most)}%`;
  const head = el(
    "summary",
    "",
    el("span", "key", answer.shown),
    el("span", "badges", ...answer.badges.map(badge)),
    el("span", "count", answer.words),
    el("span", "track", bar),
  );
  head.classList.toggle("right", answer.badges.includes("right"));
  const made = el("details", "answer", head);
  made.dataset.key = answer.shown;
  let drawn = false;
  made.addEventListener("toggle", () => {
    if (drawn || !made.open) return;
    drawn = true;
    made.append(...answer.rollouts.map(rolloutBox));
  });
  return made;
}

export default function (component) {
  const { data, parentElement } = component;
  const host = parentElement.querySelector(".corl-answers");
  const now = JSON.stringify(data);
  if (host.corlDrawn === now) return;
  host.corlDrawn = now;
  const most = Math.max(1, data.total);
  host.setAttribute("aria-label", data.alt);
  host.replaceChildren(...data.answers.map((answer) => row(answer, most)));
}
