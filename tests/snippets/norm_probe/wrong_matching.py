"""Ways to match tensors that invent equations. Same signature as decompose."""

from itertools import combinations

import torch

from snippets.norm_probe.matching import arranged, decompose


def near_misses_accepted(target, candidates, most=4, shared="all", tolerance=0.1):
    return decompose(target, candidates, most, shared, 0.1)


def coefficients_rounded(target, candidates, most=4, shared="all", tolerance=1e-5):
    found = decompose(target, candidates, most, shared, tolerance)
    return found and {name: value.round() for name, value in found.items()}


def coefficients_of_one_assumed(
    target, candidates, most=4, shared="all", tolerance=1e-5
):
    for k in range(1, most + 1):
        for names in combinations(candidates, k):
            total = sum(candidates[n].double().reshape(-1) for n in names)
            if torch.allclose(total, target.double().reshape(-1), rtol=1e-5):
                return {n: torch.ones(1, dtype=torch.float64) for n in names}
    return None


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


def at_most_two_terms(target, candidates, most=4, shared="all", tolerance=1e-5):
    return decompose(target, candidates, min(most, 2), shared, tolerance)


def first_fit_of_a_size(target, candidates, most=4, shared="all", tolerance=1e-5):
    """A near copy that comes first wins over the tensor itself."""
    for k in range(1, min(most, len(candidates)) + 1):
        for names in combinations(candidates, k):
            part = {n: candidates[n] for n in names}
            found = decompose(target, part, k, shared, tolerance)
            if found and len(found) == k:
                return found
    return None


def groups_ignored(target, candidates, most=4, shared="all", tolerance=1e-5):
    return decompose(target, candidates, most, "all", tolerance)


def negative_terms_lost(target, candidates, most=4, shared="all", tolerance=1e-5):
    found = decompose(target, candidates, most, shared, tolerance)
    return found and {name: value.abs() for name, value in found.items()}


VARIANTS = [
    near_misses_accepted,
    coefficients_rounded,
    coefficients_of_one_assumed,
    all_candidates_at_once,
    greedy,
    alike_taken_for_part,
    at_most_two_terms,
    first_fit_of_a_size,
    groups_ignored,
    negative_terms_lost,
]
