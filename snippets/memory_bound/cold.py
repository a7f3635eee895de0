from math import ceil

from snippets.memory_bound.prediction import KERNELS

L2 = 60 * 2**20  # bytes, assumed; torch.cuda.get_device_properties(0) knows


def sets_needed(moved: int, times: int = 4) -> int:
    """Sets of inputs and outputs that hold ``times`` the cache, at least 2."""
    return max(2, ceil(times * L2 / moved))


print("rows of 4096  bytes of a set  sets needed  touched by 100 launches")
for few in (32, 512, 2048, 16384):
    one_set = KERNELS["RMSNorm"].moved(few, 4096)
    needed = sets_needed(one_set)
    touched = min(needed, 100) * one_set / L2
    print(f"{few:12} {one_set:15,} {needed:12} {touched:14.1f} caches")
