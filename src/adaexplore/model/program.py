"""The code of captured modules, to tell if two compute the same."""

from __future__ import annotations

import ast


def program_of(source: str) -> str:
    """Return the code of a captured module's source without the values of its tensors."""
    tree = ast.parse(source.partition("def get_init_inputs")[0])
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            _WithoutTensors().visit(node)
    tree.body = tree.body[ast.get_docstring(tree) is not None :]  # it names the user's module
    return ast.dump(tree)


class _WithoutTensors(ast.NodeTransformer):
    """Takes the tensors out of a constructor: `torch.empty(...).uniform_(...)` and the like."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Return a constant in the place of a call of torch, and of one on its result."""
        root: ast.expr = node
        while isinstance(root, ast.Call | ast.Attribute):
            root = root.func if isinstance(root, ast.Call) else root.value
        if isinstance(root, ast.Name) and root.id == "torch":
            return ast.Constant(None)
        return self.generic_visit(node)
