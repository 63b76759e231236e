// The parts of the page, from the top.

recorded();
wrongs();
verdict();
missing();
if (lives > 0) timeOfThreads();
objectCards();
graph();
tables();
const links = [...page.querySelectorAll("h2[id]")].map((heading) => make("li", {}, make("a", { href: `#${heading.id}` }, heading.textContent)));
page.prepend(make("nav", { "aria-label": "Contents" }, make("ul", {}, links)));
