from snippets.bugs.habits import show
from snippets.bugs.placement import PLACEMENT

show(PLACEMENT)
