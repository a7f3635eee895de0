from snippets.bugs.gradient import GRADIENT
from snippets.bugs.habits import show

show(GRADIENT)
