"""Norms on a GPU as kernels: what is timed, against whom, how, and whether it is right.

cells       operations and shapes: inputs, bytes moved, answers in float64
providers   who computes them: ours, torch, Liger, quack, JAX
gate        how far a result is from float64; a cell that fails is not drawn
timing      device time with cold caches, and what the caller waits
ceilings    what a copy reaches on the same device in the same process
"""
