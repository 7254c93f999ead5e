"""Examples in docstrings: those of a method go on from the example of its class."""

import doctest
from importlib import import_module

import pytest


@pytest.fixture(autouse=True)
def class_example(request: pytest.FixtureRequest, doctest_namespace: dict[str, object]) -> None:
    """The names that the class's own example makes."""
    doctest_namespace.clear()
    example = getattr(request.node, "dtest", None)
    if example is None:
        return
    module = import_module(example.globs["__name__"])
    owner = example.name.removeprefix(f"{module.__name__}.").partition(".")[0]
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
