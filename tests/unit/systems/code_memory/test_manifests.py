"""Dependencies in manifests, and operations in API descriptions."""

from __future__ import annotations

import pytest

from rag_assets.systems.code_memory.reading import read_code
from rag_assets.systems.code_memory.settings.reader import read_json, read_yaml
from rag_assets.systems.code_memory.sources.repositories.names import find_repository_type

MANIFESTS = {
    "composer.json": (
        '{"require": {"php": "^8.2", "laravel/framework": "^11.0"}, "require-dev": {"a/b": "*"}}',
        {"php", "laravel/framework", "a/b"},
    ),
    "package.json": (
        '{"dependencies": {"@a/b": "1", "react": "^18"}, "devDependencies": {"c": "2"}}',
        {"@a/b", "react", "c"},
    ),
    "pyproject.toml": (
        (
            '[project]\ndependencies = ["Django>=4,<5", "x[y]~=1; python_version < \'3\'"]\n'
            '[project.optional-dependencies]\ndev = ["z"]\n'
            '[tool.poetry.dependencies]\nq = {version = "1"}\n'
        ),
        {"Django", "x", "z", "q"},
    ),
    "Cargo.toml": (
        '[dependencies]\na = "1"\nb = {version = "2"}\n[dev-dependencies.d]\npath = "."\n',
        {"a", "b", "d"},
    ),
    "requirements-dev.txt": (
        "# why\n-r base.txt\na==1 # why\nb[c]>=2,<3 ; python_version < '4'\nd\n",
        {"a", "b", "d"},
    ),
    "setup.cfg": ("[options]\ninstall_requires =\n  a>=1\n  b\n", {"a", "b"}),
    "go.mod": (
        (
            "module x.y/z\n\nrequire a.b/c v1.2.3\nrequire (\n\td.e/f v0.1.0 // indirect\n)\n"
            "replace (\n\tg.h/i v1.0.0 => ../i\n)\n"
        ),
        {"a.b/c", "d.e/f"},
    ),
    "Gemfile": (
        "source 'https://x'\ngem 'rails', '~> 7.1'\ngroup :test do\n  gem \"a\"\nend\n",
        {"rails", "a"},
    ),
    "ios/Podfile": ("target 'X' do\n  pod 'A/B', '~> 1'\nend\n", {"A/B"}),
    "Package.swift": (
        (
            "import PackageDescription\n"
            'let p = Package(dependencies: [\n .package(url: "https://x/y.git", from: "1.0.0"),\n])'
        ),
        {"https://x/y.git"},
    ),
    "pom.xml": (
        (
            "<project><dependencies><dependency><groupId>org.springframework.boot</groupId>"
            "<artifactId>b</artifactId><scope>test</scope></dependency></dependencies></project>"
        ),
        {"org.springframework.boot:b"},
    ),
    "build.gradle.kts": ('dependencies {\n  implementation("a.b:c:1.0")\n}\n', {"a.b:c"}),
    "packages.xml": ('<Project><PackageReference Include="A" Version="1" /></Project>', {"A"}),
    "mix.exs": ('use Mix.Project\ndefp deps do\n [\n  {:phoenix, "~> 1.7"},\n ]\nend', {"phoenix"}),
    "pubspec.yaml": (
        "name: x\nenvironment:\n  sdk: 3\ndependencies:\n  a: ^1\n  b:\n    version: 2\n",
        {"a", "b"},
    ),
    "README.txt": ("a is needed\n", set()),
}


@pytest.mark.parametrize("path", sorted(MANIFESTS))
def test_a_manifest_tells_its_packages(path: str) -> None:
    text, expected = MANIFESTS[path]
    facts = read_code(text, find_repository_type(path) or "").facts
    facts = [fact for fact in facts if fact.kind == "depends_on"]
    assert {fact.values["package"] for fact in facts} == expected
    for fact in facts:
        assert fact.values["package"].rpartition(":")[2] in text[fact.start : fact.end]
    laravel = {"package": "laravel/framework", "constraint": "^11.0"}
    assert path != "composer.json" or laravel in [fact.values for fact in facts]


SWAGGER = """swagger: "2.0"
basePath: /v1
paths:
  /a/{id}:
    parameters: []
    get:
      operationId: showA
      tags: [things]
      parameters:
      - {name: id, in: path}
      responses:
        200: {schema: {$ref: '#/definitions/A'}}
    delete:
      operationId: dropA
definitions:
  A: {type: object}
"""
OPENAPI = (
    '{"openapi": "3.1.0", "servers": [{"url": "https://x.example/api/"}], "paths": {"/a": {"post": '
    '{"operationId": "makeA", "requestBody": {"content": {"application/json": {"schema": '
    '{"$ref": "#/components/schemas/A"}}}}}}}, "components": {}}'
)


def test_each_operation_is_a_unit_with_its_facts() -> None:
    reading = read_yaml(SWAGGER)
    units = {unit.symbol: SWAGGER[unit.start : unit.end] for unit in reading.units}
    assert units["GET /v1/a/{id}"].lstrip().startswith("get:\n      operationId: showA")
    assert units["GET /v1/a/{id}"].endswith("'#/definitions/A'}}")
    assert set(units) >= {"swagger", "basePath", "DELETE /v1/a/{id}", "definitions"}
    first = next(fact.values for fact in reading.facts if fact.kind == "operation")
    expected = {"method": "GET", "path": "/v1/a/{id}", "operation_id": "showA", "tags": ["things"]}
    assert first == expected
    assert "POST /api/a" in {unit.symbol for unit in read_json(OPENAPI).units}
    others = read_yaml("paths:\n  /a:\n    get: {}\n").units
    assert "operation" not in {unit.role for unit in others}
