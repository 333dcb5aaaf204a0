"""A value without its lines, of a text that is known to be sound."""

from typing import Any

from gateway.policies.nodes import Broken, Node


def plain(node: Node) -> Any:
    """The JSON value: of dict, list, str, int, float, bool and None; a float without a fraction becomes an int.

    What cannot be taken becomes None. The recursion is bounded by nodes.MAX_DEPTH.
    """
    value = node.value
    if isinstance(value, Broken):
        return None
    if isinstance(value, dict):
        return {name: plain(child) for name, child in value.items()}
    if isinstance(value, list):
        return [plain(child) for child in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
