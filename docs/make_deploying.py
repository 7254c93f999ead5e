"""Writes the files of deploy/ into docs/deploying.md, each between its fences."""

import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE, FILES = HERE / "deploying.md", HERE.parent / "deploy"
# a file's name in the line above, then the fence with its content
_QUOTE = re.compile(r"(`deploy/([\w.-]+)`:\n\n```\w+\n).*?(?=^```$)", re.DOTALL | re.MULTILINE)


def with_files(page: str) -> str:
    """The page with the files as they are."""

    def quoted(found: re.Match[str]) -> str:
        return found[1] + (FILES / found[2]).read_text(encoding="utf-8")

    return _QUOTE.sub(quoted, page)


if __name__ == "__main__":
    PAGE.write_text(with_files(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
