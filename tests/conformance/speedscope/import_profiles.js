// Prints what speedscope reads from a file, as JSON: a line for each profile, with its name and the weight of each stack.
//
//   node import_profiles.js SPEEDSCOPE.js FILE
"use strict";
const fs = require("fs");
const path = require("path");

const [program, file] = process.argv.slice(2);
const text = fs.readFileSync(program, "utf8");

function find(pattern) {
  const found = text.match(pattern);
  if (!found) throw new Error("this version of speedscope has another form");
  return found[1];
}

// The program is one function for a browser. At its end, it shows its page, which fails here; all of its functions exist
// by then. The inserted statement makes its import of files callable.
const begin = '"use strict";(()=>{';
const importer = find(/importProfileGroupFromText:\(\)=>(\w+)/);
const prepare = find(/return null\}async function \w+\(\w+\)\{return \w+\(\w+\)\}var (\w+)=\w+\(\(\)=>/);
const insert = `globalThis.importProfiles=(...all)=>{${prepare}();return ${importer}(...all)};`;
if (!text.startsWith(begin)) throw new Error("this version of speedscope has another form");

const print = console.log;
console.log = () => {};
const anything = new Proxy(function () {}, {
  get: (_, key) => (key === Symbol.toPrimitive ? () => "" : anything),
  set: () => true,
  apply: () => anything,
  construct: () => anything,
});
Object.assign(globalThis, { window: globalThis, document: anything, location: { hash: "" }, addEventListener() {} });
try {
  (0, eval)(begin + insert + text.slice(begin.length));
} catch (error) {
  // The start of the page fails, because there is no browser.
}

globalThis.importProfiles(path.basename(file), fs.readFileSync(file, "utf8")).then((group) => {
  for (const profile of group.profiles) {
    const stacks = [];
    const visit = (node, stack) => {
      if (node.getSelfWeight() !== 0) stacks.push([stack, node.getSelfWeight()]);
      for (const child of node.children) visit(child, [...stack, child.frame.name]);
    };
    visit(profile.getAppendOrderCalltreeRoot(), []);
    const merged = {};
    for (const [stack, weight] of stacks) {
      const key = JSON.stringify(stack);
      merged[key] = (merged[key] || 0) + weight;
    }
    print(JSON.stringify({ name: profile.getName(), total: profile.getTotalWeight(), stacks: merged }));
  }
}).catch((error) => {
  console.error(String(error.stack).slice(0, 2000));
  process.exitCode = 1;
});
