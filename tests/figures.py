"""The size of the package: `python tests/figures.py` prints it, test_architecture.py limits it."""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def sources(folder):
    """The text of each Python file by its path from the root."""
    return {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted((ROOT / folder).rglob("*.py"))
    }


def longest_file(texts):
    """The number of lines of the longest file, and its path."""
    return max((len(text.splitlines()), name) for name, text in texts.items())


def functions(texts):
    """Pairs (place, node) of all functions and methods."""
    for name, text in texts.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, FUNCTIONS):
                yield f"{name}:{node.lineno}", node


def longest_function(texts):
    """The number of lines of the longest function without its docstring, and its place."""
    lengths = []
    for place, node in functions(texts):
        begin = node.body[1].lineno if ast.get_docstring(node) and len(node.body) > 1 else node.body[0].lineno
        lengths.append((node.end_lineno - begin + 1, place))
    return max(lengths)


def share_typed(texts):
    """The share of functions with a hint on each argument and on the result; `__init__` needs none on the result."""
    total = typed = 0
    for _, node in functions(texts):
        found = node.args
        given = [*found.posonlyargs, *found.args, *found.kwonlyargs, found.vararg, found.kwarg]
        arguments = [argument for argument in given if argument and argument.arg not in ("self", "cls")]
        is_full = all(argument.annotation for argument in arguments)
        total += 1
        typed += is_full and (node.returns is not None or node.name == "__init__")
    return typed / total


def public_names():
    """The names that pages list: `__all__` of the folders and of the files beside them, without kcrf.bert4keras."""
    names = {}
    for path in [*(ROOT / "kcrf").glob("*/__init__.py"), *(ROOT / "kcrf").glob("*.py")]:
        if path.parent.name == "bert4keras":  # the names of bert4keras, for its scripts
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
                names[path.relative_to(ROOT).as_posix()] = ast.literal_eval(node.value)
    return names


def main():
    package, tests, pages = sources("kcrf"), sources("tests"), public_names()
    count = sum(map(len, pages.values()))
    print(f"package: {sum(len(text.splitlines()) for text in package.values()):,} lines in {len(package)} files")
    print(f"tests: {sum(len(text.splitlines()) for text in tests.values()):,} lines in {len(tests)} files")
    print("longest file: {} lines, {}".format(*longest_file(package)))
    print("longest function: {} lines, {}".format(*longest_function(package)))
    print(f"functions with full hints: {share_typed(package):.0%}")
    print(f"public names: {count}", *(f"  {page}: {len(names)}" for page, names in sorted(pages.items())), sep="\n")


if __name__ == "__main__":
    main()
