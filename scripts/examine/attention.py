"""What attention is given, where the code spells it out or calls torch's own."""

from scripts.examine.tape import tensors_in
from scripts.experiments.atlas.trace import Attended, Seen, seen

PRODUCTS = {"matmul", "__matmul__", "bmm", "baddbmm", "einsum"}
STEPS = 60  # of autograd's graph, between a product and its softmax


class Products:
    """Told of every function, it answers with what attended: q, k and v."""

    def __init__(self, tape):
        self.tape = tape
        self.known: dict = {}  # node of a product -> (q, k)
        self.shares: dict = {}  # node of a softmax -> what attended by it

    def __call__(self, name: str, args, kwargs, out, tick) -> list[Attended]:
        self.tape.stamp(tick())
        if name == "scaled_dot_product_attention":
            named = ("query", "key", "value")[len(args) :]
            q, k, v = [*args, *(kwargs[n] for n in named)][:3]
            return [Attended(tick(), seen(q), seen(k), seen(v))]
        if name in PRODUCTS and getattr(out, "grad_fn", None) is not None:
            pair = _operands(name, (*args, *kwargs.values()))
            if pair:
                self.known[out.grad_fn, out.output_nr] = pair
            self._note_values(args, kwargs)
        if name == "softmax" and args and args[0].grad_fn is not None:
            found = _behind(args[0], self.known)
            if found:
                q, k = found
                unseen = Seen(k.value, None)  # v comes later
                attended = Attended(tick(), q, k, unseen)
                self.shares[out.grad_fn, out.output_nr] = attended
                return [attended]
        return []

    def _note_values(self, args, kwargs) -> None:
        """Note v, which a product weighs by a softmax."""
        pair = tensors_in((args, kwargs))[-2:]
        for shares, values in (pair, pair[::-1]) if len(pair) == 2 else ():
            attended = _behind(shares, self.shares, 8)
            if attended and attended.v.node is None and values.grad_fn is not None:
                attended.v = seen(values)


def _behind(tensor, known: dict, steps: int = STEPS):
    """What is known of the nearest node that a tensor was made from; None if none."""
    todo, visited = [(tensor.grad_fn, tensor.output_nr)], set()
    while todo and len(visited) < steps:
        node = todo.pop(0)
        if node in known:
            return known[node]
        if node[0] is None or node in visited:
            continue
        visited.add(node)
        todo += node[0].next_functions
    return None


def _operands(name: str, args):
    """(q, k) of a product, what they share in the last axis; None if it is no such."""
    if name == "einsum" and not isinstance(args[0], str):
        return None  # axes as numbers
    if name == "einsum":
        operands = args[1] if isinstance(args[1], (list, tuple)) else args[1:]
        if len(operands) != 2:
            return None
        left, arrow, out = args[0].replace(" ", "").partition("->")
        names = left.split(",")
        shared = [c for c in names[0] if c in names[1] and c not in out]
        if not arrow or len(shared) != 1 or "." in left:
            return None
        pair = (
            t.movedim(n.index(shared[0]), -1)
            for t, n in zip(operands, names, strict=True)
        )
    else:
        many = [t for t in args if getattr(t, "ndim", 0) > 2]
        if len(many) < 2:
            return None
        a, b = many[-2:]  # of baddbmm the first is added
        pair = a, b.mT
    return tuple(map(seen, pair))
