// Prints the names that ES modules export, as TypeScript's compiler binds them: {path: [name]}.
//
// Arguments: a JSON file with the paths. `export *` is named "*"; imported modules are not read.

import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';

const require = createRequire(process.cwd() + '/');
const ts = require('typescript');
const paths = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const options = { allowJs: true, noResolve: true, noLib: true, jsx: ts.JsxEmit.Preserve, target: ts.ScriptTarget.Latest };
const program = ts.createProgram(paths, options);
const checker = program.getTypeChecker();
const found = {};
for (const path of paths) {
  const file = program.getSourceFile(path);
  // The compiler binds CommonJS modules only in part.
  if (!file || !ts.isExternalModule(file)) continue;
  const module = checker.getSymbolAtLocation(file);
  const names = module && module.exports ? [...module.exports.keys()].map(String) : [];
  found[path] = names.filter((name) => name !== 'export=').map((name) => (name === '__export' ? '*' : name));
}
process.stdout.write(JSON.stringify(found));
