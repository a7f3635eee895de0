from itertools import combinations

from snippets.bugs.axis import AXIS
from snippets.bugs.formula import FORMULA
from snippets.bugs.gradient import GRADIENT
from snippets.bugs.habits import HABITS
from snippets.bugs.placement import PLACEMENT
from snippets.bugs.precision import PRECISION
from snippets.bugs.soft_cap import SOFT_CAP

MUSEUM = FORMULA | AXIS | PRECISION | GRADIENT | PLACEMENT | SOFT_CAP
right = {wrong: fixed for wrong, (fixed, _) in MUSEUM.items()}
catches = {
    habit: {wrong for wrong in MUSEUM if not habit(wrong, right[wrong])}
    for habit in HABITS
}

for letter, habit in zip("abcdefghijklmn", HABITS, strict=True):
    name = habit.__name__.replace("_", " ")
    print(f"{letter} {name:24}{len(catches[habit]):3}")
print(f"\n{'':20}a b c d e f g h i j k l m n")
for wrong in MUSEUM:
    marks = ("x" if wrong in catches[habit] else "." for habit in HABITS)
    print(f"{wrong.__name__.replace('_', ' '):20}{' '.join(marks)}")

correct = all(h(fixed, fixed) for h in HABITS for fixed in right.values())
print("\nevery right version passes every habit:", correct)
for size in range(1, len(HABITS)):
    covers = [
        group
        for group in combinations(HABITS, size)
        if set().union(*(catches[habit] for habit in group)) == set(MUSEUM)
    ]
    if covers:
        break
print(f"fewest habits that catch all {len(MUSEUM)}: {size}, in ways:", end=" ")
print(len(covers))
shared = [habit for habit in HABITS if all(habit in each for each in covers)]
print("in every one of them:")
for habit in shared:
    print(" ", habit.__name__.replace("_", " "))
