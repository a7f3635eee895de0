"""Ways to match tensors that invent equations. Same signature as decompose."""

import torch

from snippets.norm_probe.matching import arranged


def all_candidates_at_once(target, candidates, most=4, shared="all", tolerance=1e-5):
    """Least squares on everything: no equation anyone would write."""
    columns = torch.stack([arranged(c, shared) for c in candidates.values()], -1)
    y = arranged(target, shared)[..., None]
    found = (torch.linalg.pinv(columns) @ y)[..., 0]
    return {name: found[:, i] for i, name in enumerate(candidates)}


def greedy(target, candidates, most=4, shared="all", tolerance=1e-5):
    """Takes what looks most alike first, and keeps it."""
    chosen = {}
    rest = target
    for _ in range(most):
        left = [n for n in candidates if n not in chosen]
        if not left:
            return None
        alike = {
            n: torch.cosine_similarity(
                rest.double().reshape(-1), candidates[n].double().reshape(-1), 0
            ).abs()
            for n in left
        }
        best = max(alike, key=alike.get)
        chosen[best] = candidates[best]
        found = all_candidates_at_once(target, chosen, most, shared)
        total = sum(found[n].mean() * chosen[n].double() for n in chosen)
        rest = target.double() - total
        if rest.norm() <= tolerance * target.norm():
            return found
    return None


def alike_taken_for_part(target, candidates, most=4, shared="all", tolerance=1e-5):
    """Every candidate that correlates is a term."""
    y = target.double().reshape(-1)
    found = {}
    for name, value in candidates.items():
        if torch.cosine_similarity(y, value.double().reshape(-1), 0) > 0.3:
            found[name] = torch.ones(1, dtype=torch.float64)
    return found or None
