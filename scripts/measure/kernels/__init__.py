"""Norms on a GPU as kernels: what is timed, against whom, how, and whether it is right.

cells       operations and shapes: inputs, bytes moved, answers in float64, edge cases
providers   who computes them: ours, torch, the chain, compiled, Liger; plain streams
gate        how far a result is from float64; a cell that fails is not drawn
timing      device time with cold caches, and what the caller waits
launched    the kernels that ran, as the profiler names them
rows        one cell as rows of a record
steps       the steps of an experiment, in the order of their worth
report      from rows to shares of the copy rate
compiled    what the compiler makes of a launch, without a GPU
"""
