"""Examples in docstrings: those of a method go on from the example of its class."""

import doctest
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a collector that asks the toy survey."""
    folder, toy = tmp_path_factory.mktemp("collector"), Path(__file__).parent / "data" / "toy.toml"
    discreet = Path(sys.executable).with_name("discreet")
    command = [str(x) for x in (discreet, "serve", toy, "--store", folder / "store", "--port", 0)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=folder, text=True) as process:
        assert process.stdout is not None
        try:
            addresses = (re.search(r"http://[\d.:]+", line) for line in process.stdout)
            yield next(address[0] for address in addresses if address)
        finally:
            process.terminate()


@pytest.fixture(autouse=True)
def class_example(request: pytest.FixtureRequest, doctest_namespace: dict[str, object]) -> None:
    """The names that the class's own example makes."""
    doctest_namespace.clear()
    example = getattr(request.node, "dtest", None)
    if example is None:
        return
    module = import_module(example.globs["__name__"])
    owner = example.name.removeprefix(f"{module.__name__}.").partition(".")[0]
    if owner == "Client":  # at a real collector, with a ledger of its own
        doctest_namespace["url"] = request.getfixturevalue("collector")
        ledger = request.getfixturevalue("tmp_path") / "ledger.json"
        request.getfixturevalue("monkeypatch").setenv("DISCREET_LEDGER", str(ledger))
    whole = getattr(getattr(module, owner, None), "__doc__", None) or ""
    if example.docstring == whole or not isinstance(getattr(module, owner, None), type):
        return
    doctest_namespace.update(vars(module))
    for step in doctest.DocTestParser().get_examples(whole):
        if not step.options.get(doctest.SKIP):
            try:
                exec(compile(step.source, example.name, "single"), doctest_namespace)
            except SyntaxError:
                exec(step.source, doctest_namespace)
