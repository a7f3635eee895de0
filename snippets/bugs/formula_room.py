from snippets.bugs.formula import FORMULA
from snippets.bugs.habits import show

show(FORMULA)
