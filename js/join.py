"""Join the JavaScript modules into the files that are served: discreet.js, answer.js,
results.js, desk.js.

`make js` runs it. A module starts with `import { … } from "…";` lines and exports declarations. The
join puts the modules one after the other, dependencies first, without their imports and exports.
Nothing else changes, so that a person can compare the two. All modules share one scope then, so two
top-level names that collide are refused.
"""

import re
from dataclasses import dataclass
from pathlib import Path

STATIC = Path(__file__).resolve().parent.parent / "src" / "discreet" / "collector" / "static"
TARGETS = ("discreet", "answer", "results", "desk")  # folders with a main.js; a file each
_IMPORT = re.compile(r'^import \{([^}]*)\} from "([^"]+)";\n', re.MULTILINE)
_DECLARED = re.compile(
    r"^(export )?(?:async )?(?:const|let|class|function) (?:([\w$]+)|[\[{]([\w$, ]+)[\]}])",
    re.MULTILINE,
)
_EXPORTED = re.compile(r"^export (?=async |const |let |class |function )", re.MULTILINE)


@dataclass(frozen=True)
class Module:
    """A module: what it imports from where, what it declares, and the text around the imports."""

    path: Path
    header: str  # comments before the imports
    body: str
    imports: list[tuple[Path, list[str]]]
    names: list[str]
    exports: set[str]

    @classmethod
    def read(cls, path: Path) -> "Module":
        """Read a module; anything that the join would not understand is refused."""
        text = path.read_text(encoding="utf-8")
        found = list(_IMPORT.finditer(text))
        header = text[: found[0].start()] if found else ""
        body = _IMPORT.sub("", text)[len(header) :].strip("\n")
        if re.search(r"^import\b|^export default|\bimport\(", body, re.MULTILINE):
            raise SystemExit(f'{path}: write an import as: import {{ names }} from "./file.js";')
        imports = [
            ((path.parent / match[2]).resolve(), re.findall(r"[\w$]+", match[1])) for match in found
        ]
        for _, names in imports:
            unused = [name for name in names if name not in re.findall(r"[\w$]+", body)]
            if unused:
                raise SystemExit(f"{path}: {', '.join(unused)} is imported but not used")
        declared = [
            (bool(export), re.findall(r"[\w$]+", single or several))
            for export, single, several in _DECLARED.findall(body)
        ]
        names = [name for _, some in declared for name in some]
        exports = {name for export, some in declared if export for name in some}
        return cls(path, header.strip("\n"), body, imports, names, exports)


def in_order(entry: Path, folder: Path) -> list[Module]:
    """The modules that the entry needs and the entry itself, every one after its imports."""
    done: dict[Path, Module] = {}
    open_paths: list[Path] = []

    def visit(path: Path) -> None:
        if path in done or not path.is_relative_to(folder):
            return
        if path in open_paths:
            raise SystemExit(f"{path}: these modules import each other in a circle")
        open_paths.append(path)
        module = Module.read(path)
        for target, names in module.imports:
            visit(target)
            missing = set(names) - done[target].exports if target in done else set()
            if missing:
                raise SystemExit(f"{path}: {target.name} does not export {', '.join(missing)}")
        done[open_paths.pop()] = module

    visit(entry)
    unused = {*folder.rglob("*.js")} - {*done}
    if unused:
        raise SystemExit(f"{entry}: nothing imports {', '.join(sorted(map(str, unused)))}")
    return list(done.values())


def code(body: str) -> str:
    """A module without its comments and texts; what stands in `${}` of a text is code."""
    body = re.sub(r"/\*.*?\*/|(?<![^\s])//[^\n]*", "", body, flags=re.DOTALL)
    body = re.sub(r'"(?:[^"\\\n]|\\.)*"', '""', body)
    text = r"`(?:[^`\\]|\\.)*`"
    return re.sub(text, lambda match: " ".join(re.findall(r"\$\{([^}]*)\}", match[0])), body)


def refuse_collisions(modules: list[Module]) -> None:
    """Raise if two modules declare the same top-level name, or one uses a name of another without
    importing it: as a module it would fail, and in the joined file it would mean something else.
    """
    owner: dict[str, Module] = {}
    for module in modules:
        for name in module.names:
            first = owner.setdefault(name, module)
            if first is not module:
                raise SystemExit(f"{name} is declared in {first.path} and in {module.path}")
    for module in modules:
        imported = {name for _, names in module.imports for name in names}
        # "$/" is the end of a regular expression
        used = set(re.findall(r"(?<![\w.#$])[\w$]+(?![\w$]|:|(?<=\$)/)", code(module.body)))
        for name in sorted(used & {*owner} - imported - {*module.names} - _methods(module.body)):
            raise SystemExit(f"{module.path} uses {name} of {owner[name].path}, not imported")


def _methods(body: str) -> set[str]:
    return set(re.findall(r"^  (?:static |async )*(\w+)\(", body, re.MULTILINE))


def join(folder: Path) -> str:
    """The modules of a folder as one: the text of the file of its name."""
    folder = folder.resolve()
    modules = in_order(folder / "main.js", folder)
    refuse_collisions(modules)
    outside: dict[str, set[str]] = {}
    for module in modules:
        for target, names in module.imports:
            if not target.is_relative_to(folder):
                place = f"./{target.relative_to(folder.parent).as_posix()}"
                outside.setdefault(place, set()).update(names)
    pieces = [
        f'import {{ {", ".join(sorted(names))} }} from "{place}";'
        for place, names in sorted(outside.items())
    ]
    pieces.append(f"// Joined from the modules in {folder.name}/ by `make js`: change those.")
    pieces.append(modules[-1].header)
    for module in modules[:-1]:
        title = f"// ---- {module.path.relative_to(folder).as_posix()} "
        pieces += [title.ljust(100, "-"), module.header, _EXPORTED.sub("", module.body)]
    pieces.append(modules[-1].body)
    return "\n\n".join(piece for piece in pieces if piece) + "\n"


if __name__ == "__main__":
    for target in TARGETS:
        (STATIC / f"{target}.js").write_text(join(STATIC / target), encoding="utf-8")
