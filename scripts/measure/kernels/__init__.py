"""Norms on a GPU as kernels: what is timed, against whom, how, and whether it is right.

cells       operations and shapes: inputs, bytes moved, answers in float64
edges       inputs on which kernels go wrong, gated and not timed
providers   who computes them: ours, torch, Liger, quack
gate        how far a result is from float64; a cell that fails is not drawn
capture     one stream and its graphs, and what to do when a call has none
card        clock, temperature and power while the device works
launched    registers, spills and programs of the Triton kernels that ran
timing      device time with cold caches, and what the caller waits
ceilings    what a copy reaches on the same device in the same process
rows        one cell as rows of a record
steps       the steps of an experiment: its cells, with the streams beside them
report      from rows to shares of the copy rate
"""
