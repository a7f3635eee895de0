from snippets.bugs.habits import show
from snippets.bugs.soft_cap import SOFT_CAP

show(SOFT_CAP)
