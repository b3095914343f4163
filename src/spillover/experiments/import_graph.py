"""The source files that a module depends on through imports, found by parsing the files; nothing is imported.

All imports count, also those inside of functions, except those for the type checker only. The package's own
`__init__.py` does not count: it collects names for users, and results do not depend on them. The same goes for the
`__init__.py` of a folder, unless a name is imported from the folder itself.
"""

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

PACKAGE = "spillover"
ROOT = Path(__file__).parents[1]
# Folders whose files are loaded by name, without import statements; they import nothing from the package.
LOADED_BY_NAME = (f"{PACKAGE}.kernels",)


def reachable(modules: Iterable[str], root: Path = ROOT) -> frozenset[Path]:
    """Files of these modules of the package, and of everything that they import, directly or indirectly.

    >>> names = {path.name for path in reachable(["spillover.mailbox"])}
    >>> "rng.py" in names, "render.py" in names
    (True, False)
    """
    found: set[Path] = set()
    waiting = list(modules)
    seen = set(waiting)
    while waiting:
        module = waiting.pop()
        found.update(files_of(module, root))
        new = imports(module_file(module, root), root) - seen if follows(module) else frozenset()
        seen |= new
        waiting += new
    return frozenset(found)


def with_neighbours(module: str, path: Path) -> dict[str, Path]:
    """A module that is not the package's and those of the same folder or package that it imports, directly or not."""
    depth = len(module.split(".")) - (path.name != "__init__.py")
    root = path.parents[min(depth, len(path.parents) - 1)]
    found: dict[str, Path] = {}
    waiting = {module: path}
    while waiting:
        name, file = waiting.popitem()
        found[name] = file
        package = name if file.name == "__init__.py" else name.rpartition(".")[0]
        for other in mentioned(file, package):
            base = root.joinpath(*other.split("."))
            for candidate in (base.with_suffix(".py"), base / "__init__.py"):
                if other not in found and candidate.is_file():
                    waiting[other] = candidate
    return found


@cache
def mentioned(path: Path, package: str) -> frozenset[str]:
    """Names that may be modules in the import statements of a file; `package` is what relative ones start from."""
    found: set[str] = set()
    for node in statements(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            found |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
    return frozenset(found - {""})


def follows(module: str) -> bool:
    """Whether to follow the imports of a module."""
    return not any(module == folder or module.startswith(f"{folder}.") for folder in LOADED_BY_NAME)


def files_of(module: str, root: Path) -> list[Path]:
    """The file of a module, or all files of a folder that loads them by name."""
    if follows(module):
        return [module_file(module, root)]
    top = module_file(".".join(module.split(".")[:2]), root)
    return sorted(top.parent.rglob("*.py")) if top.name == "__init__.py" else [top]


def module_file(module: str, root: Path) -> Path:
    """The file of a module of the package."""
    base = root.joinpath(*module.split(".")[1:])
    return base / "__init__.py" if base.is_dir() else base.with_suffix(".py")


@cache
def imports(path: Path, root: Path = ROOT) -> frozenset[str]:
    """Names of the package's modules that a file imports, as it was on the first call in this process."""
    return frozenset(name for node in statements(ast.parse(path.read_bytes())) for name in imported(node, root))


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes except those under `if TYPE_CHECKING`."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            waiting += node.orelse
        elif not isinstance(node, ast.expr):  # expressions contain no imports
            waiting += ast.iter_child_nodes(node)


def imported(node: ast.AST, root: Path) -> Iterator[str]:
    """The package's modules that one statement imports."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name.startswith(f"{PACKAGE}."))
    elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == PACKAGE and not node.level:
        base = str(node.module)
        for alias in node.names:
            inside = f"{base}.{alias.name}"
            if module_file(inside, root).is_file():
                yield inside
            elif base != PACKAGE:
                yield base
