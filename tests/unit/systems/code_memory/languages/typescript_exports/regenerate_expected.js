// Writes expected.json: the names that TypeScript's compiler says each sample exports.
// Usage: npm install typescript, then NODE_PATH=node_modules node regenerate_expected.js
const fs = require('fs')
const path = require('path')
const ts = require('typescript')

const files = fs
  .readdirSync(__dirname)
  .filter((name) => /\.(ts|tsx|js)$/.test(name) && name !== path.basename(__filename))
const program = ts.createProgram(
  files.map((name) => path.join(__dirname, name)),
  { allowJs: true, noResolve: true, noLib: true, types: [], jsx: ts.JsxEmit.Preserve,
    target: ts.ScriptTarget.ESNext, module: ts.ModuleKind.CommonJS },
)
const checker = program.getTypeChecker()
const expected = {}
for (const name of files) {
  const source = program.getSourceFile(path.join(__dirname, name))
  const symbol = checker.getSymbolAtLocation(source) || source.symbol
  const names = symbol && symbol.exports ? [...symbol.exports.keys()] : []
  expected[name] = names.map(ts.unescapeLeadingUnderscores).filter((one) => one !== '__export').sort()
}
fs.writeFileSync(path.join(__dirname, 'expected.json'), JSON.stringify(expected, null, 2) + '\n')
