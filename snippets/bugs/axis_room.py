from snippets.bugs.axis import AXIS
from snippets.bugs.habits import show

show(AXIS)
