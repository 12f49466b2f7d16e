"""A parsed page, and cheap answers to what it may hold."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, NamedTuple

from kernels.names import slot

Tree = Any  # resiliparse HTMLTree
Node = Any  # resiliparse ElementNode


class Page(NamedTuple):
    tree: Tree
    html: str  # as it came; `tree` is changed on the way to its text
    names: bytes  # kernels.names.names_in

    def may_hold(self, selector: str) -> bool:
        """False only where no element of the page can match a CSS selector."""
        return any(self.names[place] for place in _slots(selector))


@cache
def _slots(selector: str) -> tuple[int, ...]:
    """Of each alternative the last name: that of a tag, a class, an id or an attribute's value,
    without which it cannot match."""
    return tuple(slot(re.findall(r"[\w-]+", part)[-1]) for part in selector.split(","))


def select(node: Node, selector: str) -> tuple[Node, ...]:
    """Matches below `node` as a tuple: going through resiliparse's own list is quadratic (2.0; 600
    rows take 2 s), its slice is not."""
    found: tuple[Node, ...] = node.query_selector_all(selector)[:]
    return found
