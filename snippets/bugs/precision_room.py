from snippets.bugs.habits import show
from snippets.bugs.precision import PRECISION

show(PRECISION)
