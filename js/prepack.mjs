// Copies what the package shares with the repository: the module as the pages have it, and the
// license. `npm pack` and `npm publish` run it.
import { copyFileSync } from "node:fs";

for (const source of ["../src/discreet/collector/static/discreet.js", "../LICENSE"]) {
  const place = source.split("/").at(-1);
  copyFileSync(new URL(source, import.meta.url), new URL(place, import.meta.url));
}
