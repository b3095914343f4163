"""Give tests the parts that docs/write-your-own.md shows."""

import re
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

PAGE = Path(__file__).parents[1] / "docs" / "write-your-own.md"
FILES = {
    name: text
    for name, text in re.findall(r"^```(?:python|toml)\n# ([\w.]+)\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)
}
FOLDER = TemporaryDirectory(prefix="own-parts-")  # removed when the process ends


def load(name: str) -> ModuleType:
    """Import a Python file of the page, with the files of the page beside it."""
    if name in sys.modules:
        return sys.modules[name]
    for file, text in FILES.items():
        Path(FOLDER.name, file).write_text(text, encoding="utf-8")
    spec = spec_from_file_location(name, Path(FOLDER.name, f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
